#!/usr/bin/env python3
"""The guide for people and agents: one text in a mount, the skill and `playfs help agents`; what it names exists."""
import json
import re

import fixture

GUIDE = fixture.ROOT / 'src/vfs/guide.md'


class Guide(fixture.Fixture):
    def help_of(self, *words):
        return self.playfs(*words, '--help').stdout

    def test_all_forms_are_the_one_text(self):
        guide = GUIDE.read_text()
        self.assertEqual(self.playfs('help', 'agents').stdout, guide)
        document = json.loads(self.playfs('help', 'agents', '--json').stdout)
        self.assertEqual((document['schema_version'], document['text']), (1, guide))
        front, body = re.fullmatch(r'---\n(.*?)\n---\n\n(.*)', self.playfs('--generate', 'skill').stdout, re.S).groups()
        self.assertEqual(body, guide)
        fields = dict(line.split(': ', 1) for line in front.split('\n'))
        self.assertEqual((set(fields), fields['name']), ({'name', 'description'}, 'playfs'))
        self.assertIn('Use it when', fields['description'])
        self.assertLess(len(fields['description']), 1024, 'what readers of skills accept')
        self.assertIn('(src/vfs/guide.md)', (fixture.ROOT / 'AGENTS.md').read_text())

    @fixture.needs_fuse
    def test_a_mount_shows_it(self):
        self.assertEqual((self.mount('local:default').directory / 'README.md').read_text(), GUIDE.read_text())

    def test_every_command_and_flag_in_it_exists(self):
        """A command is `playfs` and one or two words; flags that come later in the line are its own."""
        commands = set(re.findall(r'^  ([a-z]+)(?:, [a-z]+)*  ', self.help_of(), re.M))
        self.assertIn('fsck', commands)
        named = set()
        for line in GUIDE.read_text().split('\n'):
            for words, rest in re.findall(r'playfs ((?:[a-z]+ ?)+)([^`]*)', line):
                if not re.search(r'^    |`', line):
                    continue  # prose
                command, *action = words.split()
                with self.subTest(line=line):
                    shown = self.help_of(command)
                    self.assertIn(command, commands | {'publish'})
                    named.add(command)
                    if action and re.search(rf'^  {action[0]}  ', shown, re.M):
                        shown = self.help_of(command, action[0])
                    for flag in re.findall(r'(?<!\S)(--?[a-z][a-z-]*)', rest):
                        self.assertRegex(shown, rf'(?<!\S){flag}\b')
        self.assertGreaterEqual(len(named), 20)

    def test_help_is_also_that_of_a_command(self):
        self.assertEqual(self.playfs('help', 'commit').stdout, self.help_of('commit'))
        self.assertEqual(self.playfs('help', 'thread', 'list').stdout, self.help_of('thread', 'list'))
        self.assertEqual(self.playfs('help').stdout, self.help_of())
        unknown = self.playfs('help', 'comit', check=False)
        self.assertEqual(unknown.returncode, 2)
        self.assertIn("did you mean 'commit'", unknown.stderr)

    def test_words_of_git_lead_to_what_does_it_here(self):
        for words, command in ((('push',), 'commit -m'), (('pull',), 'update'), (('add', 'f'), 'commit -m'),
                               (('checkout', 'f'), 'restore --from'), (('stash',), 'checkpoint restore'),
                               (('reset',), 'discard'), (('--json', 'undo'), 'revert'), (('nonsense',), '--help')):
            said = self.playfs(*words, check=False)
            self.assertEqual(said.returncode, 2)
            word = next(each for each in words if not each.startswith('-'))
            self.assertIn(f"there is no command 'playfs {word}'", said.stdout + said.stderr)
            self.assertIn(f'playfs {command}', said.stdout + said.stderr)


if __name__ == '__main__':
    fixture.main()
