#!/usr/bin/env python3
"""One project fails, and its readers keep trying: others are served as usual."""
import os
import subprocess
import threading

import proxy
import fixture
from projects import publish

READERS = 6


@fixture.needs_fuse
class TroublesOfOne(fixture.Fixture):
    def setUp(self):
        super().setUp()
        self.api = self.serve()
        self.proxy = proxy.CountingProxy(int(self.api.origin.rsplit(':', 1)[1]))
        self.addCleanup(self.proxy.close)

    def move_head(self, project, text):
        publish(self.api, 'moved', {'f0': text}, project=project,
                parents=[self.api.get('projects', project)['latest_revision']])

    def readers_who_go_on_trying(self, place):
        over = threading.Event()

        def read(number):
            while not over.is_set():
                subprocess.run(['cat', str(place / f'sick{number}')], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
                over.wait(0.3)

        threads = [threading.Thread(target=read, args=(number,), daemon=True) for number in range(READERS)]
        for thread in threads:
            thread.start()

        def end():
            over.set()
            self.proxy.fate = lambda request: None
            for thread in threads:
                thread.join(fixture.COMMAND_LIMIT)

        self.addCleanup(end)
        return end

    def others_are_served_while_chunks_of_one_are(self, fate):
        sick = publish(self.api, 'sick', {f'sick{n}': f'sick {n}\n'.ljust(200) for n in range(READERS)})
        healthy = [publish(self.api, f'healthy{n}', {f'f{k}': f'healthy {n} {k}\n'.ljust(200) for k in range(5)})
                   for n in range(4)]
        manifest = self.api.get('revisions', self.api.get('projects', sick)['latest_revision'])['manifest']
        chunks = {chunk for file in manifest['files'].values() for chunk in file['c']}
        mount = self.mount(self.proxy.url, options=('noprefetch',))
        top = mount.directory / 'projects'
        for project in (sick, *healthy):
            os.listdir(top / project / 'head')
        self.proxy.fate = lambda request: fate if request.rsplit('/', 1)[1] in chunks else None
        end = self.readers_who_go_on_trying(top / sick / 'head')
        for k in range(1, 4):
            # Longer than the silence, apart from polls, after which the service counts as away.
            threading.Event().wait(7)
            cats = [subprocess.Popen(['cat', str(top / project / f'head/f{k}')], stdin=subprocess.DEVNULL,
                                     stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for project in healthy]
            outcomes = [cat.communicate(timeout=fixture.COMMAND_LIMIT) for cat in cats]
            self.assertEqual([cat.returncode for cat in cats], [0] * len(cats), [error for _, error in outcomes])
        self.move_head(healthy[0], 'moved\n')
        self.eventually(lambda: (top / healthy[0] / 'head/f0').read_text() == 'moved\n', 'a moved head is seen')
        (top / healthy[1] / 'work/mine').write_text('mine\n')
        self.assertEqual(self.playfs('commit', '-m', 'x', top / healthy[1] / 'work').returncode, 0)
        (top / 'new').write_text('{"name": "new while another one is sick"}\n')
        end()

    def test_others_are_served_while_one_is_answered_by_errors(self):
        self.others_are_served_while_chunks_of_one_are((500, '{"code": "internal", "message": "broken"}'))

    def test_others_are_served_while_one_is_not_answered(self):
        self.others_are_served_while_chunks_of_one_are('lose reply')

    def test_a_first_look_shows_what_is_new_though_another_project_hangs(self):
        dead = publish(self.api, 'dead', {'f0': 'x\n'})
        others = [publish(self.api, f'other{n}', {'f0': 'old\n'}) for n in range(6)]
        mount = self.mount(self.proxy.url, options=('noprefetch',))
        for project in (dead, *others):
            (mount.directory / 'projects' / project / 'head/f0').read_text()
        mount.unmount()
        for project in others:
            self.move_head(project, 'new\n')
        mount = self.mount(self.proxy.url, options=('noprefetch',))
        top = mount.directory / 'projects'
        self.proxy.set_hanging('/projects/' + dead)
        self.addCleanup(self.proxy.set_hanging, None)
        self.assertEqual((top / dead / 'head/f0').read_text(), 'x\n', 'what is known is shown')
        # A response that takes over a second is not waited for, so on a busy machine some may be old.
        self.assertIn('new\n', [(top / project / 'head/f0').read_text() for project in others])


if __name__ == '__main__':
    fixture.main()
