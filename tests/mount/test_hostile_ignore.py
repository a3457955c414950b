#!/usr/bin/env python3
"""Ignore files published to slow others down: ls, write, status and commit in such a work tree still work."""
import json
import subprocess
import time

import fixture
from projects import publish

NEW = 30
NAME = 'a' * 200
# One line longer than any path; and as many rules as allowed, each slow to match against NAME.
LONG_LINE = '*a' * 300_000 + '\n'
COSTLY_RULES = ('*' + 'a' * 8 + 'b*\n') * 10_000
TOO_MANY_RULES = 'one of many\n' * 10_001


@fixture.needs_fuse
class HostileIgnore(fixture.Fixture):
    def setUp(self):
        super().setUp()
        self.api = self.serve()

    def begin(self, name, rules):
        """The work tree of a project whose base ignores by `rules`, with new names to judge."""
        project = publish(self.api, name, {'.gitignore': rules, 'other/file': 'published\n', 'src/file': 'published\n'})
        work = self.mounted.directory / 'projects' / project / 'work'
        for path in ('other/file', '.gitignore'):
            (work / path).read_text()  # everything is cached from here on
        for number in range(NEW):
            (work / 'src' / f'{NAME}{number}').write_text('new\n')
        return work

    def longest_wait_while(self, work, process):
        """The longest ls, stat, write or creation in another folder while the process runs, or right after it if it is
        that fast; and its own duration. In seconds."""
        began, longest, ended = time.monotonic(), 0.0, False
        operations = [lambda: list((work / 'other').iterdir()), (work / 'src/file').stat,
                      lambda: (work / 'other/file').write_text('changed\n'), (work / 'other/new').touch,
                      (work / 'other/new').unlink]
        while not ended:
            ended = process.poll() is not None
            for operation in operations:
                before = time.monotonic()
                operation()
                longest = max(longest, time.monotonic() - before)
            time.sleep(0.01)
        self.assertEqual(process.returncode, 0)
        return longest, time.monotonic() - began

    def start(self, *words):
        process = subprocess.Popen([self.playfs_path, *map(str, words)], env=self.environment('ann'),
                                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def told(self):
        lines = (self.mounted.directory / '.playfs/errors.ndjson').read_text().splitlines()
        return [json.loads(line) for line in lines if 'gitignore' in line]

    def all_of_it(self, work):
        """Seconds: the longest wait during a status, the status, and a commit."""
        longest, status = self.longest_wait_while(work, self.start('status', work))
        before = time.monotonic()
        outcome = json.loads(self.playfs('commit', '-m', 'mine', '--json', work).stdout)
        self.assertEqual(outcome['outcome'], 'published')
        self.assertIn(outcome['files_changed'], (NEW, NEW + 1), outcome)
        return longest, status, time.monotonic() - before

    def test_one_long_line_is_no_rule(self):
        self.mounted = self.mount(self.api.origin)
        calm = self.all_of_it(self.begin('calm', '*.o\n'))
        self.assertEqual(self.told(), [])
        hostile = self.all_of_it(self.begin('hostile', LONG_LINE))
        print('wait, status, commit:', *(f'{each:.2f}' for each in calm + hostile))
        self.assertLess(sum(hostile), 10 * sum(calm))
        self.assertEqual(len(self.told()), 1, self.told())

    def test_costly_rules_keep_nobody_waiting_who_asks_for_no_verdict(self):
        self.mounted = self.mount(self.api.origin)
        work = self.begin('hostile', COSTLY_RULES)
        longest, status, commit = self.all_of_it(work)
        print(f'wait, status, commit: {longest:.2f} {status:.2f} {commit:.2f}')
        self.assertLess(longest, status / 4, 'they wait for the judging')
        # Verdicts are cached.
        self.assertLess(commit, status)

    def test_a_commit_beyond_the_bounds_says_what_to_do(self):
        self.mounted = self.mount(self.api.origin)
        work = self.begin('hostile', TOO_MANY_RULES)
        refused = self.playfs('commit', '-m', 'mine', work, check=False)
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn('.gitignore', refused.stderr)
        self.assertIn('more than 10000 rules', refused.stderr)
        self.assertTrue(self.told())
        (work / '.gitignore').write_text('*.o\n')
        self.playfs('commit', '-m', 'mine', work)


if __name__ == '__main__':
    fixture.main()
