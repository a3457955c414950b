#!/usr/bin/env python3
"""playfs bugreport has what a maintainer needs and no secret, whatever state this machine and its mounts are in."""
import json
import os
import signal
import socket

import fixture

SECRETS = {
    'stored key': 'pk_live_4f9a8b7c6d5e4f3a2b1c', 'short key': 'k3y-short', 'e-mail': 'ada.lovelace@example.org',
    'password in a URL': 'hunter2xyz', 'user in a URL': 'svc-account', 'token in a log': 'tok4711', 'bearer': 'Zm9vYmFy',
    'code': '482913', 'password of two words': 'horse battery', 'value in a query': 'divorce', 'handle': 'sibylla',
    'other handle': 'cassandra', 'path': 'secretplans', 'file name': 'acquisition.xlsx', 'content': 'launch on friday'}


class BugReport(fixture.Fixture):
    def environment(self, who):
        return {**super().environment(who), 'PLAYFS_AGENT': SECRETS['handle']}

    def report(self, *words, **options):
        """The sections, and all that was printed."""
        done = self.playfs('bugreport', '--json', *words, **options)
        return json.loads(done.stdout), done.stdout + done.stderr

    def own(self, report):
        """Its mounts that are this test's."""
        return [each for each in report['mounts'] if each['mount_point'].startswith(str(self.home))]

    def plant(self):
        home = self.home / 'ann'
        for kind in ('config', 'state'):
            (home / kind / 'playfs').mkdir(parents=True)
            (home / kind / 'playfs').chmod(0o700)
        keys = home / 'config/playfs/credentials.toml'
        keys.write_text(f'["https://example.org"]\napi_key = "{SECRETS["stored key"]}"\nemail = "{SECRETS["e-mail"]}"\n'
                        f'["https://second.example"]\napi_key = "{SECRETS["short key"]}"\n'
                        f'agent = "{SECRETS["other handle"]}"\n')
        keys.chmod(0o600)
        (home / 'config/playfs/config.toml').write_text(
            f'site = "https://{SECRETS["user in a URL"]}:{SECRETS["password in a URL"]}@example.org"\n'
            f'refresh = 7\nsmtp_password = "correct {SECRETS["password of two words"]}"\n')
        log = home / 'state/playfs/log'
        log.mkdir(mode=0o700)
        (log / 'mount.log').write_text(
            'GET /.site/data/threads?q=' + SECRETS['value in a query'] + ' failed\n'
            f'Authorization: Bearer {SECRETS["bearer"]}\ntoken {SECRETS["token in a log"]} refused, code {SECRETS["code"]}\n'
            f'mail to <{SECRETS["e-mail"]}> by @{SECRETS["other handle"]} with {SECRETS["stored key"]}\n'
            f'write projects/1m8gn0nat1feqmk7kvmg/work/{SECRETS["path"]}/my {SECRETS["file name"]}: no space\n'
            f'read {SECRETS["path"]}/{SECRETS["file name"]} for {home}/thesis, on {socket.gethostname()}\n')

    def assert_no_secret(self, printed, but=()):
        for what, secret in SECRETS.items():
            if what not in but:
                self.assertNotIn(secret, printed, what)

    def test_with_nothing_at_all_there_is_a_report(self):
        report, printed = self.report()
        self.assertEqual(report['schema_version'], 1)
        self.assertEqual((self.own(report), report['logs']), ([], {}))
        self.assertRegex(report['program']['version'], r'^\d+\.\d+')
        for library in ('libfuse', 'libcurl', 'sqlite'):
            self.assertRegex(report['program']['libraries'][library], r'\d+\.\d+', library)
        self.assertIn('findings', report['doctor'])
        self.assertEqual(report['sizes']['cache'], {'files': 0, 'bytes': 0})
        self.assertIn('Nothing was sent. Read it', printed)
        self.assertFalse((self.home / 'ann/state').exists(), 'and nothing was made')

    def test_secrets_are_taken_out_of_every_source(self):
        self.plant()
        report, printed = self.report()
        self.assert_no_secret(printed)
        self.assertNotIn(str(self.home / 'ann'), json.dumps(report))
        log = next(iter(report['logs'].values()))
        self.assertRegex(log[0], r'^GET /.site/data/threads\?q=VALUE-\d+ failed$')
        self.assertRegex(log[3], r'^mail to <EMAIL-\d+> by @HANDLE-\d+ with KEY-\d+$')
        self.assertRegex(log[5], r'^read PATH-\d+ for PATH-\d+, on HOST-\d+$')
        self.assertTrue(log[-2].startswith('write projects/1m8gn0nat1feqmk7kvmg/work/PATH-'), log)
        self.assertTrue(log[-2].endswith(': no space'), log)
        config = next(lines for path, lines in report['configuration'].items() if path.endswith('config.toml'))
        self.assertIn('refresh = 7', config)
        self.assertGreaterEqual(report['removed']['key'], 5)
        # For people: the same, and what was taken out.
        shown = self.playfs('bugreport')
        self.assert_no_secret(shown.stdout + shown.stderr)
        self.assertRegex(shown.stderr, r'Taken out.*EMAIL \(\d+\)')

    def test_paths_are_shown_if_asked_for(self):
        self.plant()
        _, printed = self.report('--paths')
        self.assert_no_secret(printed, but=('path', 'file name'))
        self.assertIn(f'{SECRETS["path"]}/{SECRETS["file name"]}', printed)

    def test_the_file_is_private_and_never_another(self):
        file = self.home / 'report.txt'
        old = os.umask(0)
        self.addCleanup(os.umask, old)
        self.playfs('bugreport', '-o', file)
        self.assertEqual(file.stat().st_mode & 0o777, 0o600)
        before = file.read_text()
        self.assertIn('== doctor', before)
        again = self.playfs('bugreport', '-o', file, check=False)
        self.assertNotEqual(again.returncode, 0)
        self.assertIn('exists already', again.stderr)
        self.assertEqual(file.read_text(), before)
        link = self.home / 'link'
        link.symlink_to(self.home / 'target')
        self.assertNotEqual(self.playfs('bugreport', '-o', link, check=False).returncode, 0)
        self.assertFalse((self.home / 'target').exists())

    def test_a_damaged_store_of_keys_gives_away_none(self):
        self.plant()
        keys = self.home / 'ann/config/playfs/credentials.toml'
        keys.write_text(f'[[["broken\napi_key = "{SECRETS["short key"]}"\n')
        (self.home / 'ann/state/playfs/log/mount.log').write_text(f'sent {SECRETS["short key"]}\n')
        self.assertNotIn(SECRETS['short key'], self.report()[1])

    @fixture.needs_fuse
    def test_a_mount_that_answers_and_one_that_hangs(self):
        api = self.serve()
        mount = self.mount(api.origin, options=('refresh=1', f'agent={SECRETS["handle"]}'))
        self.playfs('init', SECRETS['path'], '--site', api.origin)
        work = mount.project(SECRETS['path']) / 'work'
        (work / SECRETS['file name']).write_text(SECRETS['content'])
        for text in ('{"handle": 7}', json.dumps({'name': SECRETS['content'], 'nothing': 1})):
            try:
                (mount.directory / 'agents/new').write_text(text)
            except OSError:
                pass
        report, printed = self.report()
        self.assert_no_secret(printed)
        about, = self.own(report)
        self.assertTrue(about['options'][0].startswith('refresh=1'), about['options'])
        self.assertEqual(about['status.json']['pid'], mount.process.pid)
        self.assertIn('record_bytes', about['limits.json'])
        self.assertTrue(any('playfs_operations_total' in line for line in about['metrics']))
        self.assertTrue(about['errors.ndjson'])
        self.assertTrue(report['sizes']['stages_and_queues'])

        mount.process.send_signal(signal.SIGSTOP)
        self.addCleanup(mount.process.send_signal, signal.SIGCONT)
        report, _ = self.report(cwd='/')
        about, = self.own(report)
        self.assertIn('no answer in time', about['status.json']['unread'])
        self.assertNotIn('metrics', about, 'which would take as long')
        self.assertIn('does not answer', json.dumps(report['doctor']))
        mount.process.send_signal(signal.SIGCONT)

        mount.kill()
        report, _ = self.report()
        about, = self.own(report)
        self.assertIn('unread', about['status.json'])


if __name__ == '__main__':
    fixture.main()
