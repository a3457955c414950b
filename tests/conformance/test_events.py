"""`GET /.site/events` of the real server, read with nothing but sockets: order, resuming across restarts, several servers
on one store, limits, and readers that do not read."""
import contextlib
import http.client
import json
import os
import select
import shutil
import socket
import sqlite3
import threading
import time

import fixture
from fixture import COMMAND_LIMIT
from serve_fixture import BASE, Server, ServeTest

EVENTS = '/.site/events'


class Stream:
    """A watcher: what the server sends, as events."""

    def __init__(self, server, after=None, headers=(), source=None):
        place, port = server.address.rsplit(':', 1)
        self.connection = http.client.HTTPConnection(place, int(port), timeout=COMMAND_LIMIT,
                                                     source_address=(source, 0) if source else None)
        server.case.addCleanup(self.close)
        self.connection.request('GET', EVENTS + (f'?after={after}' if after else ''), headers=dict(headers))
        self.answer = self.connection.getresponse()
        self.status = self.answer.status

    def close(self):
        self.connection.close()
        self.answer.close()

    def next(self):
        """(event, cursor, data) of the next event; None at the end."""
        fields = {}
        while line := self.answer.readline():
            line = line.decode().rstrip('\n')
            if line:
                name, _, value = line.partition(': ')
                fields[name] = value
            elif 'event' in fields:
                return fields['event'], fields['id'], json.loads(fields['data'])
        return None

    def read_until(self, record):
        """The cursor and the ids of all changes up to that record's."""
        ids = []
        while True:
            event, cursor, data = self.next()
            assert event == 'change', event
            ids.append(data['id'])
            if data['id'] == record:
                return cursor, ids

    def ended(self):
        """Waits for the end of the body."""
        with contextlib.suppress(OSError):
            while self.answer.read1(65536):
                pass
        return True


class Events(ServeTest):
    def test_greeting_then_each_change_in_order(self):
        server = Server(self)
        old = server.create('threads', {'title': 'old'})
        stream = Stream(server)
        self.assertEqual(stream.status, 200)
        self.assertEqual(stream.answer.getheader('Content-Type'), 'text/event-stream')
        self.assertEqual(stream.answer.getheader('Cache-Control'), 'no-store')
        self.assertIsNone(stream.answer.getheader('Content-Length'))
        self.assertIsNone(stream.answer.getheader('Content-Encoding'))
        self.assertEqual(stream.answer.readline(), b'retry: 1000\n')
        kind, start, data = stream.next()
        self.assertEqual((kind, data), ('hello', {}))

        message = server.create('messages', {'thread': old['id'], 'body': 'x'})
        kind, cursor, data = stream.next()
        self.assertEqual((kind, data), ('change', {'collection': 'messages', 'id': message['id'],
                                                   'updated_at': message['updated_at'], 'thread': old['id']}))
        server.create('file_chunks', {'content': 'nobody waits for it'})
        _, answer = server.send('PATCH', f'/threads/{old["id"]}', {'title': 'new'})
        self.assertEqual(stream.next()[2], {'collection': 'threads', 'id': old['id'],
                                            'updated_at': answer['record']['updated_at']})
        revision = server.create('revisions', {'project': 'p"\n\ndata: x'})
        self.assertEqual(stream.next()[2]['project'], 'p"\n\ndata: x')
        # From a cursor, and as a browser does it.
        for again in (Stream(server, cursor), Stream(server, start, {'Last-Event-ID': cursor})):
            self.assertEqual(again.next()[:2], ('hello', cursor))
            self.assertEqual(again.read_until(revision['id'])[1], [old['id'], revision['id']])
        again = Stream(server, start)
        again.next()
        self.assertEqual(again.read_until(revision['id'])[1], [message['id'], old['id'], revision['id']])

    def test_what_it_refuses_and_says_of_itself(self):
        server = Server(self, '--host', 'play.example.org')
        server.create('threads', {})
        self.assertEqual(server.send('GET', '')[1]['events'], EVENTS)
        site, _, number = Stream(server).next()[1].partition('.')
        for name, ahead in (('0' * len(site), 0), (site, 1)):
            stream = Stream(server, f'{name}.{int(number.partition(".")[0]) + ahead}')
            self.assertEqual(stream.next(), ('reset', f'{site}.{number}', {}))
            record = server.create('threads', {})['id']
            number = stream.read_until(record)[0].partition('.')[2]
        for bad in ('nonsense', 'p1', f'{site}.x', f'{site}.-1', f'{site}.1.x'):
            stream = Stream(server, bad)
            answer = json.loads(stream.answer.read())
            self.assertEqual((stream.status, answer['code'], answer['details']),
                             (400, 'invalid_request', {'parameter': 'after'}))
        url = server.url + EVENTS
        for method in ('HEAD', 'POST', 'PATCH', 'DELETE'):
            words = ('--head',) if method == 'HEAD' else ('-X', method)
            status, headers, _ = self.curl(*words, url)
            self.assertEqual((status, headers['allow']), (405, 'GET, OPTIONS'), method)
        self.assertEqual(self.curl('-H', 'Host: elsewhere.example', url)[0], 421)
        stream = Stream(server, headers={'Host': 'play.example.org', 'Accept-Encoding': 'gzip'})
        self.assertEqual(stream.answer.getheader('Access-Control-Allow-Origin'), '*')
        self.assertIsNone(stream.answer.getheader('Content-Encoding'))

    def test_lists_and_records_are_not_sent_again(self):
        """For those who poll."""
        server = Server(self)
        thread = server.create('threads', {'title': 'a'})['id']
        for path in ('/threads', f'/threads/{thread}'):
            tag = self.curl(f'{server.url}{BASE}{path}')[1]['etag']
            self.assertEqual(self.curl('-H', f'If-None-Match: {tag}', f'{server.url}{BASE}{path}')[0], 304)
            server.send('PATCH', f'/threads/{thread}', {'title': path})
            self.assertEqual(self.curl('-H', f'If-None-Match: {tag}', f'{server.url}{BASE}{path}')[0], 200)

    def test_resuming_across_restarts_loses_nothing(self):
        server = Server(self, '--limits', 'off')
        cursor = Stream(server).next()[1]
        written, seen = [], []
        for way in (server.stop, server.kill, server.kill):
            stop = threading.Event()

            def write(stop=stop):
                connection = server.connect()
                with contextlib.suppress(OSError, http.client.HTTPException):
                    while not stop.is_set():
                        written.append(server.create('messages', {'n': len(written)}, connection=connection)['id'])

            writers = [threading.Thread(target=write) for _ in range(4)]
            stream = Stream(server, cursor)
            self.assertEqual(stream.next()[:2], ('hello', cursor))
            for writer in writers:
                writer.start()
            while len(seen) < len(written) + 20:  # mid-flow
                event = stream.next()
                if event is None:
                    break
                cursor = event[1]
                seen.append(event[2]['id'])
                if len(seen) % 100 == 99:
                    break
            way()
            stop.set()
            for writer in writers:
                writer.join()
            while event := self._next(stream):
                cursor = event[1]
                seen.append(event[2]['id'])
            server.start()
        last = server.create('messages', {})['id']
        stream = Stream(server, cursor)
        self.assertEqual(stream.next()[:2], ('hello', cursor))
        seen += stream.read_until(last)[1]
        self.assertEqual(len(seen), len(set(seen)), 'each change once')
        self.assertEqual(set(written) - set(seen), set())
        self.assertEqual(set(seen), {record['id'] for record in server.all('messages')})

    @staticmethod
    def _next(stream):
        """What was on its way; a last event that was cut short does not count."""
        with contextlib.suppress(OSError, http.client.HTTPException, KeyError):
            return stream.next()
        return None

    def test_two_servers_on_one_store_tell_the_same(self):
        one = Server(self, '--limits', 'off')
        two = object.__new__(Server)
        two.__dict__.update(one.__dict__, process=None, address=f'127.0.0.1:{fixture.free_port()}')
        two.url = f'http://{two.address}'
        self.addCleanup(two.kill)
        two.start()
        streams = [Stream(server) for server in (one, two)]
        self.assertEqual(len({stream.next()[1] for stream in streams}), 1)
        ids = []
        for number in range(40):
            ids.append((one, two)[number % 2].create('messages', {'n': number})['id'])
        cursors = []
        for stream in streams:
            cursor, seen = stream.read_until(ids[-1])
            self.assertEqual(seen, ids)
            cursors.append(cursor)
        self.assertEqual(cursors[0], cursors[1])
        # A cursor of one is good at the other.
        last = two.create('messages', {})['id']
        stream = Stream(one, cursors[1])
        stream.next()
        self.assertEqual(stream.read_until(last)[1], [last])

    def test_a_record_that_changes_often_comes_once_while_one_waits(self):
        server = Server(self, '--limits', 'off')
        project = server.create('projects', {'name': 'p'})['id']
        cursor = Stream(server).next()[1]
        connection = server.connect()
        for number in range(200):
            server.send('PATCH', f'/projects/{project}', {'n': number}, connection=connection)
        last = server.create('messages', {})['id']
        stream = Stream(server, cursor)
        stream.next()
        self.assertEqual(stream.read_until(last)[1], [project, last])

    def test_a_missed_history_of_thousands_comes_in_order(self):
        server = Server(self, '--limits', 'off')
        cursor = Stream(server).next()[1]
        connection = server.connect()
        ids = [server.create('messages', {'thread': 't' * 100}, connection=connection)['id'] for _ in range(2000)]
        stream = Stream(server, cursor)
        stream.next()
        self.assertEqual(stream.read_until(ids[-1])[1], ids)

    def test_an_older_store_is_upgraded(self):
        server = Server(self)
        ids = [server.create(collection, {})['id'] for collection in ('threads', 'file_chunks', 'messages')]
        server.stop()
        with contextlib.closing(sqlite3.connect(server.store / 'playground.db')) as database:
            database.executescript('ALTER TABLE site DROP COLUMN closed; DROP INDEX records_by_change;'
                                   'ALTER TABLE records DROP COLUMN changed; PRAGMA user_version = 5')
        server.start()
        kind, cursor, _ = Stream(server).next()
        self.assertEqual(kind, 'hello')
        stream = Stream(server, cursor.partition('.')[0] + '.0')
        stream.next()
        new = server.create('messages', {})['id']
        self.assertEqual(stream.read_until(new)[1], [ids[0], ids[2], new])

    def test_a_store_that_was_put_back_to_a_copy_says_so(self):
        server, copy = Server(self, '--limits', 'off'), self.home / 'copy'
        server.create('threads', {})
        start = Stream(server).next()[1]
        server.stop()
        shutil.copytree(server.store, copy)
        server.start()
        lost = [server.create('messages', {})['id'] for _ in range(3)]
        stream = Stream(server, start)
        stream.next()
        cursor, _ = stream.read_until(lost[-1])
        server.stop()
        shutil.rmtree(server.store)
        shutil.copytree(copy, server.store)
        server.start()
        self.assertEqual(Stream(server, cursor).next()[:2], ('reset', start))
        new = [server.create('messages', {})['id'] for _ in range(5)]
        kind, now, _ = Stream(server, cursor).next()
        self.assertEqual(kind, 'reset', 'its number was given again')
        last = server.create('messages', {})['id']
        for after, missed in ((start, [*new, last]), (now, [last])):
            stream = Stream(server, after)
            self.assertEqual(stream.next()[:2], ('hello', after))
            self.assertEqual(stream.read_until(last)[1], missed)

    def test_stopping_ends_streams_at_once(self):
        server = Server(self)
        streams = [Stream(server) for _ in range(20)]
        begin = time.monotonic()
        self.assertEqual(server.stop(), 0)
        self.assertLess(time.monotonic() - begin, 10, 'it did not wait until its patience ended')
        for stream in streams:
            self.assertTrue(stream.ended())

    def test_one_client_does_not_take_all_places(self):
        server = Server(self)
        streams = [Stream(server, source='127.0.0.2') for _ in range(512)]
        refused = Stream(server, source='127.0.0.2')
        self.assertEqual((refused.status, refused.answer.getheader('Retry-After')), (503, '30'))
        self.assertEqual(json.loads(refused.answer.read())['code'], 'unavailable')
        self.assertEqual(Stream(server, source='127.0.0.3').status, 200)
        self.assertEqual(server.send('GET', '/projects')[0], 200)
        streams.pop().close()
        self.eventually(lambda: Stream(server, source='127.0.0.2').status == 200, 'a place is free again')
        # All of them hear of one change.
        record = server.create('threads', {})['id']
        for stream in streams:
            stream.next()
            self.assertEqual(stream.read_until(record)[1], [record])

    def test_readers_that_do_not_read_cost_others_nothing_and_are_cut_off(self):
        server = Server(self, '--limits', 'off')
        deaf = []
        for _ in range(50):
            peer = socket.socket()
            self.addCleanup(peer.close)
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            peer.connect(('127.0.0.1', int(server.address.rpartition(':')[2])))
            peer.sendall(f'GET {EVENTS} HTTP/1.1\r\nHost: {server.address}\r\n\r\n'.encode())
            deaf.append(peer)
        stream = Stream(server)
        stream.next()
        before = fixture.memory(server.process)
        connection = server.connect()
        server.create('threads', {}, connection=connection)
        stream.next()
        before_end = self._connections(server)

        def cut_off():
            for _ in range(100):
                record = server.create('messages', {'thread': 't' * 250}, connection=connection)['id']
                self.assertEqual(stream.read_until(record)[1][-1], record)
            return self._connections(server) <= before_end - 50

        self.eventually(cut_off, 'all of them are closed', limit=200)
        self.assert_memory(fixture.memory(server.process) - before, 24 << 20)

    @staticmethod
    def _connections(server):
        folder, count = f'/proc/{server.process.pid}/fd', 0
        for name in os.listdir(folder):
            with contextlib.suppress(FileNotFoundError):
                count += os.readlink(f'{folder}/{name}').startswith('socket:')
        return count

    def test_silence_is_broken_by_comments(self):
        server = Server(self)
        stream = Stream(server)
        stream.next()
        self.assertEqual(stream.answer.readline(), b':\n')

    def test_nothing_is_sent_while_nothing_happens(self):
        server = Server(self)
        stream = Stream(server)
        stream.next()
        self.assertEqual(select.select([stream.connection.sock or stream.answer.fp.raw._sock], [], [], 2)[0], [])


if __name__ == '__main__':
    fixture.main()
