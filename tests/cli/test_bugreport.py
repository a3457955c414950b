#!/usr/bin/env python3
"""playfs bugreport has what a maintainer needs and no text that somebody chose, whatever state this machine is in."""
import json
import os
import resource
import signal
import subprocess

import fixture

SECRETS = {
    'stored key': 'pk_live_4f9a8b7c6d5e4f3a2b1c', 'short key': 'k3y"sho\\rt', 'e-mail': 'ada.lovelace@example.org',
    'comment': 'oldkey', 'user in a URL': 'svc-account', 'password in a URL': 'hunter2xyz', 'bearer': 'Zm9vYmFy',
    'code': '482913', 'words': 'horse', 'handle': 'sibylla', 'other handle': 'cassandra', 'path': 'secretplans',
    'file name': 'acquisition', 'content': 'launch', 'unknown setting': 'divorce', 'variable': 'zebra',
    'variable name': 'ACME_MERGER'}
KEPT = ('stored key', 'e-mail', 'other handle')
TIME = r'^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d'


class BugReport(fixture.Fixture):
    def environment(self, who):
        return {**super().environment(who), 'PLAYFS_AGENT': SECRETS['handle'],
                f'PLAYFS_{SECRETS["variable"]}': SECRETS['code'], f'PLAYFS_{SECRETS["variable name"]}': '1'}

    def setUp(self):
        super().setUp()
        self.config, self.state = (self.home / 'ann' / kind / 'playfs' for kind in ('config', 'state'))
        self.log = self.state / 'log'

    def report(self, *words, **options):
        """The sections, and all that was printed."""
        done = self.playfs('bugreport', '--json', *words, **options)
        return json.loads(done.stdout), done.stdout + done.stderr

    def own(self, report, mount):
        """What it says of this test's mount; other tests may have theirs."""
        return next(each for each in report['mounts'] if each.get('status', {}).get('pid') == mount.process.pid)

    @staticmethod
    def children(process):
        with open(f'/proc/{process}/task/{process}/children') as file:
            return file.read().split()

    def plant(self):
        for folder in (self.config, self.log):
            folder.mkdir(parents=True)
            folder.chmod(0o700)
        self.state.chmod(0o700)
        keys = self.config / 'credentials.toml'
        keys.write_text(f'["https://example.org"]\napi_key = "{SECRETS["stored key"]}" # not {SECRETS["comment"]}\n'
                        f'email = """\n{SECRETS["e-mail"]}"""\n["https://second.example"]\n'
                        f"api_key = '{SECRETS['short key']}'\nagent = '{SECRETS['other handle']}'\n")
        keys.chmod(0o600)
        (self.config / 'config.toml').write_text(
            f'site = "https://{SECRETS["user in a URL"]}:{SECRETS["password in a URL"]}@example.org"\n'
            f'refresh = 7\ncache_size = "2G"\n{SECRETS["unknown setting"]} = {SECRETS["code"]}\n'
            f'smtp_password = "correct {SECRETS["words"]} battery"\n')
        (self.log / 'mount.log').write_text(
            f'pwd={SECRETS["words"]} https://u:{SECRETS["password in a URL"]}@h/?otp={SECRETS["code"]}\n'
            f'Authorization: Bearer {SECRETS["bearer"]}\n{SECRETS["stored key"]}, '
            f'{json.dumps({"key": SECRETS["short key"]})}\nmail to <{SECRETS["e-mail"]}> by @{SECRETS["other handle"]}\n'
            f'write {SECRETS["path"]}/{SECRETS["file name"]}: no space\n')

    def assert_no_secret(self, printed, of=SECRETS):
        for what in of:
            for form in (SECRETS[what], json.dumps(SECRETS[what])[1:-1], json.dumps(json.dumps(SECRETS[what]))[3:-3]):
                self.assertNotIn(form, printed, what)

    def assert_only_known_words(self, facts):
        """Every text is a stand-in, or is in one of these fields."""
        known = {'about', 'version', 'commit', 'distribution', 'release', 'kernel', 'machine', 'libfuse', 'libcurl',
                 'sqlite', 'glibc', 'environment', 'check', 'finding', 'unread', 'code', 'time', 'started', 'metric',
                 'operation', 'kernel_option', 'source_kind', 'events', 'last_success',
                 'last_failure', 'last_refused', 'paused_until', 'instructions'}

        def look(value, field):
            if isinstance(value, dict):
                for name, each in value.items():
                    self.assertRegex(name, r'^([a-z0-9_]{1,40}|TEXT-\d+)$')
                    look(each, name)
            elif isinstance(value, list):
                for each in value:
                    look(each, field)
            elif isinstance(value, str) and value and field not in known:
                self.assertRegex(value, r'^TEXT-\d+$', field)

        look(facts, '')

    def test_with_nothing_at_all_there_is_a_report(self):
        report, printed = self.report()
        self.assertEqual(report['schema_version'], 1)
        self.assertEqual(report['logs'], [])
        self.assertRegex(report['program']['version'], r'^\d+\.\d+')
        self.assertRegex(report['program']['kernel'], r'^\d+\.\d+[\d.-]*$')
        for library in ('libfuse', 'libcurl', 'sqlite', 'glibc'):
            self.assertRegex(report['program']['libraries'][library], r'\d+\.\d+', library)
        self.assertEqual(report['doctor']['findings'][0]['check'], 'fuse')
        self.assertEqual(report['sizes']['cache'], {'files': 0, 'bytes': 0})
        self.assertIn('PLAYFS_AGENT', report['configuration']['environment'])
        self.assertIn('Nothing was sent', printed)
        self.assertNotIn('texts', report)
        self.assertFalse((self.home / 'ann/state').exists(), 'and nothing was made')

    def test_no_source_gives_away_a_text(self):
        self.plant()
        report, printed = self.report()
        self.assert_no_secret(printed)
        self.assertNotIn(str(self.home), printed)
        self.assert_only_known_words(report)
        settings = report['configuration']['settings']
        self.assertEqual((settings['user']['refresh'], settings['user']['cache_size']), (7, 2 << 30))
        self.assertEqual(settings['unknown'], 2)
        self.assertEqual(report['configuration']['unknown_variables'], 2)
        self.assertIn('PLAYFS_AGENT', report['configuration']['environment'])
        self.assertEqual([each['bytes'] for each in report['logs']], [(self.log / 'mount.log').stat().st_size])
        shown = self.playfs('bugreport')
        self.assert_no_secret(shown.stdout + shown.stderr)
        self.assertIn('== doctor', shown.stdout)

    def test_logs_are_shown_if_asked_for_but_not_the_keys(self):
        self.plant()
        report, printed = self.report('--logs')
        self.assert_no_secret(printed, (*KEPT, 'short key', 'bearer'))
        log, = report['texts']['logs']
        self.assertEqual(log['lines'], [
            f'pwd={SECRETS["words"]} https://u:{SECRETS["password in a URL"]}@h/?otp={SECRETS["code"]}',
            'Authorization: Bearer KEY', 'KEY, {"key": "KEY"}', 'mail to <KEY> by @KEY',
            f'write {SECRETS["path"]}/{SECRETS["file name"]}: no space'])
        self.assertIn('Read it before you give it to anybody', report['about'])
        self.assert_only_known_words({name: each for name, each in report.items() if name != 'texts'})

    def test_of_a_damaged_store_of_keys_every_value_is_taken_out(self):
        self.plant()
        (self.config / 'credentials.toml').write_text(
            f'[[["broken\napi_key = "{SECRETS["stored key"]}" # new\nagent={SECRETS["other handle"]} # mine\n'
            f'text = """\n{SECRETS["e-mail"]}\n')
        self.assert_no_secret(self.report('--logs')[1], KEPT)

    def test_without_the_store_of_keys_no_logs_are_shown(self):
        self.plant()
        keys, report = self.config / 'credentials.toml', self.home / 'report'
        keys.rename(self.home / 'elsewhere')
        for make in (lambda: keys.symlink_to(self.home / 'elsewhere'), lambda: os.mkfifo(keys, 0o600), keys.mkdir):
            make()
            done = self.playfs('bugreport', '--logs', '-o', report, check=False)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn('--logs is refused', done.stderr)
            self.assertFalse(report.exists())
            self.playfs('bugreport')
            if keys.is_dir():
                keys.rmdir()
            else:
                keys.unlink()
        # What an interrupted login left has keys, too.
        (self.config / 'credentials.toml.new').write_text(f'["s"]\napi_key = "{SECRETS["path"]}"\n')
        (self.config / 'credentials.toml.new').chmod(0o600)
        self.assertNotIn(SECRETS['path'], self.report('--logs')[1])

    def test_only_plain_files_of_this_user_are_read(self):
        self.plant()
        other = self.home / 'other'
        other.write_text('not-yours\n')
        (self.log / 'a-link').symlink_to(other)
        os.mkfifo(self.log / 'b-fifo')
        with open(self.log / 'c-huge', 'wb') as file:
            file.truncate(100 << 30)
            file.seek(0, os.SEEK_END)
            file.write(b'\nthe end\n')
        if os.geteuid() == 0:
            (self.log / 'd-theirs').write_text('not-yours\n')
            os.chown(self.log / 'd-theirs', 1, -1)
        report, printed = self.report('--logs')
        self.assertNotIn('not-yours', printed)
        lines = {each['file']: each['lines'] for each in report['texts']['logs']}
        self.assertEqual(set(lines), {'c-huge', 'mount.log'})
        self.assertEqual(lines['c-huge'], ['the end'])
        unread = [each['unread'] for each in report['logs'] if 'unread' in each]
        self.assertEqual(unread, ['loop'] + ['not_permitted'] * (2 if os.geteuid() == 0 else 1))
        self.assertIn('b-fifo: b-fifo is not a regular file', report['texts']['unread'])
        for number in range(40):
            (self.log / f'n-{number}').write_text('')
        self.assertEqual(len(self.report()[0]['logs']), 16)
        # The folder itself, too.
        self.log.rename(self.home / 'logs')
        self.log.symlink_to(self.home / 'logs')
        report, printed = self.report('--logs')
        self.assertIn('unread', report['logs'])
        self.assertNotIn('no space', printed)

    def test_settings_that_cannot_be_read(self):
        self.plant()
        settings = self.config / 'config.toml'
        settings.write_text(f'refresh = [{SECRETS["words"]}\n')
        self.assertNotEqual(self.playfs('whoami', check=False).returncode, 0, 'they are broken')
        report, printed = self.report()
        self.assertEqual(report['configuration']['settings'], {'unread': 'invalid_argument'})
        self.assert_no_secret(printed)
        self.assertTrue(any('config.toml, line 1' in each for each in self.report('--logs')[0]['texts']['unread']))
        settings.unlink()
        os.mkfifo(settings)
        self.assertEqual(self.report()[0]['configuration']['settings'], {'unread': 'not_permitted'})

    def test_the_file_is_private_complete_and_never_another(self):
        file = self.home / 'report.txt'
        old = os.umask(0)
        self.addCleanup(os.umask, old)
        self.playfs('bugreport', '-o', file)
        self.assertEqual(file.stat().st_mode & 0o777, 0o600)
        before = file.read_text()
        self.assertTrue(before.startswith('Names, ids, paths'), before[:80])
        self.assertIn('\n== doctor\n', before)
        again = self.playfs('bugreport', '-o', file, check=False)
        self.assertNotEqual(again.returncode, 0)
        self.assertIn('exists already', again.stderr)
        self.assertEqual(file.read_text(), before)
        link = self.home / 'link'
        link.symlink_to(self.home / 'target')
        self.assertNotEqual(self.playfs('bugreport', '-o', link, check=False).returncode, 0)
        self.assertFalse((self.home / 'target').exists())
        self.assertIn('-o needs the name of a file', self.playfs('bugreport', '-o', '', check=False).stderr)
        odd = self.playfs('bugreport', '-o', "-o'dd name", cwd=self.home).stderr
        self.assertEqual(self.command('sh', '-c', f'cat {odd[odd.index("less") + 4:]}').returncode, 0)

        def no_space():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))

        full = self.playfs('bugreport', '-o', self.home / 'full', check=False, preexec_fn=no_space)
        self.assertNotEqual(full.returncode, 0)
        self.assertFalse((self.home / 'full').exists())

    def test_standard_output_is_full(self):
        for words in ((), ('--json',)):
            with open('/dev/full', 'w') as full:
                done = subprocess.run([self.playfs_path, 'bugreport', *words], env=self.environment('ann'), stdout=full,
                                      stderr=subprocess.PIPE, text=True, timeout=fixture.COMMAND_LIMIT)
            self.assertEqual(done.returncode, 1)
            self.assertIn('could not be written to standard output', done.stderr)

    @fixture.needs_fuse
    def test_a_mount_that_answers_and_one_that_hangs(self):
        api = self.serve()
        mount = self.mount(api.origin, options=('refresh=1', f'agent={SECRETS["handle"]}', f'comment={SECRETS["code"]}'))
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
        self.assertNotIn(str(self.home), printed)
        self.assert_only_known_words(report)
        about = self.own(report, mount)
        self.assertEqual((about['source_kind'], about['options']['settings']['refresh']), ('local', 1))
        self.assertIn({'kernel_option': 'user_id', 'value': os.geteuid()}, about['kernel_options'])
        self.assertIn('record_bytes', about['limits'])
        self.assertTrue(any(each['metric'] == 'playfs_operations_total' and each['operation'] == 'write'
                            and each['value'] > 0 for each in about['metrics']), about['metrics'])
        self.assertRegex(about['status']['started'], TIME)
        self.assertTrue(about['errors'])
        for each in about['errors']:
            self.assertRegex(each['time'], TIME)
            self.assertRegex(each['code'], '^[a-z_]+$')
            self.assertRegex(each['message'], r'^TEXT-\d+$')
        self.assertTrue(report['sizes']['stages_and_queues'])
        self.assertRegex(about['status']['projects_in_use'][0], r'^TEXT-\d+$', 'whoever has the id knows the project')
        texts = self.report('--logs')[0]['texts']
        self.assertTrue(any(each['errors'] and 'agents/new' in json.dumps(each['errors']) for each in texts['mounts']
                            if each['mount_point'] == str(mount.directory)))

        # With the working directory in it, where libraries look for files of theirs.
        waits = subprocess.Popen(['sh', '-c', 'echo; read line; exec "$0" bugreport --json', self.playfs_path], text=True,
                                 cwd=mount.directory, env=self.environment('ann'), stdin=subprocess.PIPE,
                                 stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.addCleanup(waits.kill)
        waits.stdout.readline()
        mount.process.send_signal(signal.SIGSTOP)
        self.addCleanup(mount.process.send_signal, signal.SIGCONT)
        report = json.loads(waits.communicate('\n', timeout=fixture.COMMAND_LIMIT)[0])
        self.assertIn({'unread': 'timed_out'}, [each.get('control_files') for each in report['mounts']])
        self.assertRegex(report['program']['libraries']['libcurl'], r'^libcurl/\d')
        self.assertGreaterEqual(report['doctor']['wrong'], 1)
        done = self.playfs('bugreport', '-o', mount.directory / 'report', check=False)
        self.assertIn('does not answer', done.stderr)
        # It takes seconds, for the mount does not answer: whoever does not wait has no file.
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
            file = self.home / f'interrupted-{number}'
            stopped = subprocess.Popen([self.playfs_path, 'bugreport', '-o', file], env=self.environment('ann'), cwd='/',
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            self.addCleanup(stopped.kill)
            self.eventually(lambda child=stopped.pid: self.children(child), 'it collects')
            stopped.send_signal(number)
            self.assertEqual(stopped.wait(fixture.COMMAND_LIMIT), -number)
            self.assertEqual(list(self.home.glob('interrupted*')), [])
        mount.process.send_signal(signal.SIGCONT)

        mount.kill()
        report, _ = self.report()
        # The kernel may still know the folder.
        self.assertTrue(any('unread' in each.get('control_files', each.get('status', {})) for each in report['mounts']))


if __name__ == '__main__':
    fixture.main()
