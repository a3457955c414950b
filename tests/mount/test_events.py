#!/usr/bin/env python3
"""A mount that is told of changes: it asks nothing while idle, sees what others do, and misses nothing."""
import json
import os
import shutil
import subprocess
import threading
import time
import urllib.error

import clocks
import fixture
import proxy
from projects import publish

# So long that nothing is seen by asking.
NEVER = ('refresh=3600',)


def requests(mount):
    """How many the mount has sent to the service."""
    text = (mount.directory / '.playfs/metrics').read_text()
    return int(text.split('\nplayfs_requests_total ')[1].split()[0])


def status(mount):
    return json.loads((mount.directory / '.playfs/status.json').read_text())


@fixture.needs_fuse
class Events(clocks.Clocks, fixture.Fixture):
    def live(self, mount):
        os.listdir(mount.directory / 'threads')  # the first use connects
        self.eventually(lambda: status(mount)['events'] == 'live', 'events are live')

    def settled(self, mount):
        """Number of requests once no more are sent."""
        before = -1
        while before != (before := requests(mount)):
            time.sleep(1)
        return before

    def server(self, port):
        """`playfs serve` as a process that the test may kill."""
        process = subprocess.Popen([self.playfs_path, 'serve', '--listen', f'127.0.0.1:{port}', '--store',
                                    str(self.home / 'own-store'), '--limits', 'off'],
                                   env=self.environment('server'), stdin=subprocess.DEVNULL)
        self.addCleanup(process.wait, fixture.COMMAND_LIMIT)
        self.addCleanup(process.terminate)
        api = fixture.Api(f'http://127.0.0.1:{port}')

        def answers():
            try:
                return api.request('GET', '/projects')[0] == 200
            except (urllib.error.URLError, ConnectionError):
                return False

        self.eventually(answers, 'the service answers')
        return process, api

    def stop(self, process):
        process.terminate()
        process.wait(fixture.COMMAND_LIMIT)

    def test_one_mount_sees_what_another_does(self):
        api = self.serve()
        ann, bob = (self.mount(api.origin, who, NEVER) for who in ('ann', 'bob'))
        thread = api.create('threads', title='Hello', kind='intro', agent='x')['id']
        self.live(ann)
        self.live(bob)
        seen = bob.directory / 'threads' / thread
        self.assertEqual(os.listdir(seen / 'messages'), [])
        self.assertIn('Hello', (seen / 'thread.json').read_text())
        before = self.settled(bob)
        with open(ann.directory / 'threads' / thread / 'reply', 'w') as reply:
            reply.write('I am here')
        self.eventually(lambda: len(os.listdir(seen / 'messages')) == 1, 'the message is listed')
        self.assertIn('I am here', (seen / 'messages.md').read_text())
        self.assertLessEqual(requests(bob) - before, 3, 'the list, the message, and one to spare')
        before = self.settled(bob)
        for _ in range(5):
            self.assertIn('I am here', (seen / 'messages.md').read_text())
        self.assertEqual(requests(bob), before, 'what is known needs no request')
        api.call('PATCH', f'/threads/{thread}', {'title': 'Another'})
        self.eventually(lambda: 'Another' in (seen / 'thread.json').read_text(), 'the record is shown as it is now')
        kinds = [json.loads(line)['kind'] for line in (bob.directory / '.playfs/events').read_text().splitlines()]
        self.assertIn('message', kinds)
        self.assertIn('thread', kinds)

    def test_heads_and_new_projects_come_by_themselves(self):
        api = self.serve()
        project = publish(api, 'p', {'a': 'one\n'})
        mount = self.mount(api.origin, 'ann', NEVER)
        self.live(mount)
        self.assertEqual((mount.directory / 'projects' / project / 'head/a').read_text(), 'one\n')
        self.assertIn('p', os.listdir(mount.directory / 'projects/by-name'))
        self.settled(mount)
        publish(api, 'moved', {'a': 'two\n'}, project, [api.get('projects', project)['latest_revision']])
        self.eventually(lambda: (mount.directory / 'projects' / project / 'head/a').read_text() == 'two\n', 'head moves')
        publish(api, 'q', {'a': 'one\n'})
        self.eventually(lambda: 'q' in os.listdir(mount.directory / 'projects/by-name'), 'a new project is listed')

    def test_nothing_is_asked_while_idle(self):
        api = self.serve()
        project = publish(api, 'p', {'a': 'one\n'})
        thread = api.create('threads', title='Hello', kind='intro', agent='x')['id']
        mount = self.mount(api.origin, 'ann', ('refresh=1',))
        self.assertEqual(requests(mount), 0, 'mounting asks nothing')
        self.live(mount)
        (mount.directory / 'projects' / project / 'head/a').read_text()
        (mount.directory / 'threads' / thread / 'messages.md').read_text()
        os.listdir(mount.directory / 'projects/by-name')
        before = self.settled(mount)
        time.sleep(20)
        self.assertEqual(requests(mount), before)
        os.listdir(mount.directory / 'threads')
        (mount.directory / 'threads' / thread / 'messages.md').read_text()
        self.assertEqual(requests(mount), before, 'what is known is current')

    def test_a_lost_connection_loses_nothing(self):
        api = self.serve()
        slow = proxy.SlowProxy(int(api.origin.rsplit(':', 1)[1]))
        self.addCleanup(slow.close)
        mount = self.mount(slow.url, 'ann', NEVER)
        thread = api.create('threads', title='Hello', kind='intro', agent='x')['id']
        self.live(mount)
        seen = mount.directory / 'threads' / thread / 'messages'
        for count in range(1, 4):
            os.listdir(seen)
            slow.drop()
            api.create('messages', thread=thread, body='missed', agent='x', parent='', mentions=[], links=[])
            self.eventually(lambda: len(os.listdir(seen)) == count, f'message {count} is listed')
        self.eventually(lambda: status(mount)['events'] == 'live', 'events are live again')

    def test_a_restart_of_the_service_loses_nothing(self):
        port = fixture.free_port()
        process, api = self.server(port)
        thread = api.create('threads', title='Hello', kind='intro', agent='x')['id']
        mount = self.mount(api.origin, 'ann', NEVER)
        self.live(mount)
        seen = mount.directory / 'threads' / thread / 'messages'
        self.assertEqual(os.listdir(seen), [])
        process.kill()
        process.wait(fixture.COMMAND_LIMIT)
        self.eventually(lambda: status(mount)['events'] == 'polling', 'the mount notices')
        self.assertTrue(status(mount)['events_trouble'])
        _, api = self.server(port)
        api.create('messages', thread=thread, body='missed', agent='x', parent='', mentions=[], links=[])
        self.eventually(lambda: len(os.listdir(seen)) == 1, 'the message is listed')
        self.eventually(lambda: status(mount)['events'] == 'live', 'events are live again')

    def test_a_service_that_was_put_back_to_a_copy_is_shown_as_it_is(self):
        store, copy, port = self.home / 'own-store', self.home / 'copy', fixture.free_port()
        stop = self.stop

        def say(api, *bodies):
            return {api.create('messages', thread=thread, body=body, agent='x', parent='', mentions=[],
                               links=[])['id'] + '.json' for body in bodies}

        process, api = self.server(port)
        thread = api.create('threads', title='Before', kind='intro', agent='x')['id']
        kept = say(api, 'one', 'two')
        stop(process)
        shutil.copytree(store, copy)
        process, api = self.server(port)
        way = proxy.CountingProxy(port)
        way.tells = True
        self.addCleanup(way.close)
        mount = self.mount(way.url, 'ann', NEVER)
        titles, seen = mount.directory / 'threads/by-title', mount.directory / 'threads' / thread
        self.live(mount)
        # At once, and when as much has been written as before.
        for written in ((), [str(number) for number in range(9)]):
            api.call('PATCH', f'/threads/{thread}', {'title': 'After'})
            lost = say(api, 'three', 'four')
            others = say(api, *written)
            self.eventually(lambda: lost | others <= set(os.listdir(seen / 'messages')), 'all is seen')
            self.eventually(lambda: os.listdir(titles) == ['After'], 'and the new title')
            way.away = True
            way.cut()
            stop(process)
            shutil.rmtree(store)
            shutil.copytree(copy, store)
            process, api = self.server(port)
            others = say(api, *written, *written)
            way.away = False
            self.eventually(lambda: set(os.listdir(seen / 'messages')) == kept | others, 'what was lost is gone')
            self.eventually(lambda: os.listdir(titles) == ['Before'], 'and the title is what it was')
            text = (seen / 'messages.md').read_text()
            self.assertIn('two', text)
            self.assertNotIn('three', text)
            self.assertIn('"reset"', (mount.directory / '.playfs/events').read_text())
            stop(process)
            shutil.rmtree(copy)
            shutil.copytree(store, copy)
            kept |= others
            process, api = self.server(port)

    def test_what_a_service_has_lost_is_gone_though_nothing_tells_of_it(self):
        """A mount that polls, and one whose proxy keeps the connection of the events alive and passes on none."""
        self.let_clocks_jump()
        store, copy, port = self.home / 'own-store', self.home / 'copy', fixture.free_port()
        way = proxy.CountingProxy(port)
        self.addCleanup(way.close)
        for way.tells in (False, True):
            way.buffers = way.tells
            process, api = self.server(port)
            thread = api.create('threads', title='Before', kind='help', agent='x')['id']

            def say(body, api=api, thread=thread):
                return api.create('messages', thread=thread, body=f'{body} @ann', agent='x', parent='', mentions=['ann'],
                                  links=[])['id']

            kept = say('kept')
            self.stop(process)
            shutil.copytree(store, copy)
            process, api = self.server(port)
            mount = self.mount(way.url, 'ann', ('refresh=1',))
            inbox, threads = mount.directory / 'inbox', mount.directory / 'threads'
            os.listdir(inbox / 'new')
            (inbox / f'new/{kept}.json').rename(inbox / f'seen/{kept}.json')
            if way.tells:
                self.live(mount)

            def shown(inbox=inbox, threads=threads, thread=thread):
                text = (threads / thread / 'messages.md').read_text() + (inbox / 'messages.ndjson').read_text()
                return (sorted(os.listdir(threads / 'by-title')), len(os.listdir(threads / thread / 'messages')),
                        {word: text.count(word + ' @ann') for word in ('kept', 'lost', 'after')},
                        len(os.listdir(inbox / 'new')), os.listdir(inbox / 'seen'))

            seen = [f'{kept}.json']
            api.call('PATCH', f'/threads/{thread}', {'title': 'After'})
            api.create('threads', title='Another', kind='help', agent='x')
            say('lost')
            self.within_minutes(lambda: shown() == (['After', 'Another'], 2, {'kept': 2, 'lost': 2, 'after': 0}, 1, seen),
                                'all is seen')
            self.stop(process)
            shutil.rmtree(store)
            copy.rename(store)
            process, api = self.server(port)
            self.within_minutes(lambda: shown() == (['Before'], 1, {'kept': 2, 'lost': 0, 'after': 0}, 0, seen),
                                'what was lost is gone')
            say('after')
            self.within_minutes(lambda: shown() == (['Before'], 2, {'kept': 2, 'lost': 0, 'after': 2}, 1, seen),
                                'what comes is seen')
            mount.unmount()
            self.stop(process)
            shutil.rmtree(store)

    def test_a_list_that_is_being_read_has_what_a_record_of_it_has_become(self):
        api, way = proxy.before_a_service(self)
        way.tells = True
        thread = api.create('threads', title='Old', kind='help', agent='x')['id']
        mount = self.mount(way.url, 'ann', ('refresh=1',))
        names, record = mount.directory / 'threads/by-title', mount.directory / 'threads' / thread / 'thread.json'
        self.assertEqual(os.listdir(names), ['Old'])
        self.assertIn('Old', record.read_text())
        self.live(mount)
        self.settled(mount)
        way.set_hanging(lambda path: '/threads?' in path)
        api.call('PATCH', f'/threads/{thread}', {'title': 'New'})
        # Its answer comes first, and is no older than what the list will say.
        looking = threading.Thread(target=self.eventually, args=(lambda: os.listdir(names) == ['New'], 'the new name'))
        looking.start()
        self.eventually(way.hung, 'the list is being read')
        self.eventually(lambda: 'New' in record.read_text(), 'the record is read')
        way.set_hanging(None)
        looking.join()
        self.assertEqual(os.listdir(names), ['New'])

    def test_lists_are_read_again_now_and_then_though_no_event_comes(self):
        """Through a proxy that keeps the connection alive and passes on no event."""
        self.let_clocks_jump()
        api, way = proxy.before_a_service(self)
        way.tells = way.buffers = True
        thread = api.create('threads', title='Old', kind='help', agent='x')['id']
        mount = self.mount(way.url, 'ann', ('refresh=1',))
        names, seen = mount.directory / 'threads/by-title', mount.directory / 'threads' / thread
        self.live(mount)

        def say(body):
            api.create('messages', thread=thread, body=body, agent='x', parent='', mentions=['ann'], links=[])

        def shown():
            return (os.listdir(names), len(os.listdir(seen / 'messages')), (seen / 'messages.md').read_text().count('hello'),
                    len(os.listdir(mount.directory / 'inbox/new')))

        say('hello 1')
        self.within_minutes(lambda: shown() == (['Old'], 1, 1, 1), 'all is seen')
        time.sleep(3)  # whoever looked lately may still check
        before = self.settled(mount)
        with self.time_runs():
            time.sleep(10)
        if self.clocks:
            self.assertEqual(requests(mount), before, 'nothing is asked while nobody reads')
        say('hello 2')
        api.call('PATCH', f'/threads/{thread}', {'title': 'New'})
        self.within_minutes(lambda: shown() == (['New'], 2, 2, 2), 'what no event has told')
        self.assertEqual(status(mount)['events'], 'live')

    def test_a_service_without_events_is_polled(self):
        api, counting = proxy.before_a_service(self)
        thread = api.create('threads', title='Hello', kind='intro', agent='x')['id']
        mount = self.mount(counting.url, 'ann', ('refresh=1',))
        seen = mount.directory / 'threads' / thread / 'messages'
        self.assertEqual(os.listdir(seen), [])
        api.create('messages', thread=thread, body='here', agent='x', parent='', mentions=[], links=[])
        self.eventually(lambda: len(os.listdir(seen)) == 1, 'the message is listed')
        self.assertEqual(status(mount)['events'], 'polling')


if __name__ == '__main__':
    fixture.main()
