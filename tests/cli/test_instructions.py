#!/usr/bin/env python3
"""Files that give instructions to agents, in clones and for harnesses: left out, named, and carried forward."""
import json

import fixture
import mcp_client
from instructed import HIDDEN, OTHERS, Instructions

USAGE = 2


class Clones(Instructions):
    def clone(self, *words, name='clone', who='ann'):
        self.tree = self.home / name
        return self.playfs('clone', self.project, self.tree, '--site', self.api.origin, *words, who=who)

    def test_it_says_what_it_leaves_out_and_commits_carry_it_forward(self):
        said = self.clone('--json')
        self.assertEqual(json.loads(said.stdout)['hidden'], HIDDEN)
        self.assertEqual(self.shown(self.tree), {'README.md', 'src', 'src/x.c'}, 'nor directories of nothing else')
        self.assertEqual(self.status()['hidden'], HIDDEN)
        before = self.entries()
        (self.tree / 'src/x.c').unlink()
        (self.tree / 'src').rmdir()
        (self.tree / 'mine').write_text('mine\n')
        self.assertEqual(self.staged(), ['mine', 'src/x.c'])
        self.commit_here()
        self.assert_carried(before)
        self.set_head(self.revision([self.head()], {**OTHERS, 'AGENTS.md': 'changed\n', 'new/CLAUDE.md': 'new\n', 'more': 'more\n'}))
        self.playfs('update', cwd=self.tree)
        self.assertEqual(self.shown(self.tree), {'README.md', 'src', 'src/x.c', 'more'})
        (self.tree / 'more').write_text('edited\n')
        before = self.entries()
        self.commit_here()
        self.assert_carried(before, [*HIDDEN, 'new/CLAUDE.md'])
        self.assertEqual(self.playfs('diff', f'{self.first}..head', cwd=self.tree).stdout.count('diff '), 1)
        said = self.clone(name='loud').stderr
        self.assertIn('files are hidden, since they give instructions to agents', said)

    def test_with_them(self):
        said = self.clone('--show-instructions').stderr
        self.assertIn('4 files by others give instructions to agents', said)
        self.assertEqual((self.tree / 'AGENTS.md').read_text(), OTHERS['AGENTS.md'])
        (self.tree / 'AGENTS.md').write_text('edited\n')
        self.commit_here()
        self.assertEqual(self.head_texts(), {**OTHERS, 'AGENTS.md': 'edited\n'})
        self.set_head(self.revision([self.head()], {**OTHERS, 'AGENTS.md': 'again\n'}))
        self.playfs('update', cwd=self.tree)
        self.assertEqual((self.tree / 'AGENTS.md').read_text(), 'again\n', 'it is remembered')

    def test_without_even_ones_own(self):
        self.clone('--show-instructions')
        (self.tree / 'AGENTS.md').write_text('mine\n')
        self.commit_here()
        self.clone(name='own')
        self.assertEqual((self.tree / 'AGENTS.md').read_text(), 'mine\n')
        self.clone('--hide-instructions', name='none')
        self.assertFalse((self.tree / 'AGENTS.md').exists())
        (self.tree / 'only').mkdir()
        (self.tree / 'only/AGENTS.md').write_text('from here\n')
        self.commit_here()
        self.playfs('status', cwd=self.tree)
        self.playfs('update', cwd=self.tree)
        self.assertEqual((self.tree / 'only/AGENTS.md').read_text(), 'from here\n', 'nothing vanishes by being published')
        self.assertEqual(self.head_texts()['only/AGENTS.md'], 'from here\n')
        said = self.playfs('clone', self.project, self.home / 'both', '--site', self.api.origin, '--hide-instructions',
                           '--show-instructions', check=False)
        self.assertEqual(said.returncode, USAGE)

    def test_ones_file_at_a_hidden_path_stays_and_is_named(self):
        self.clone()
        (self.tree / 'AGENTS.md').write_text('mine\n')
        (self.tree / '.claude').mkdir()
        (self.tree / '.claude/mine').write_text('mine\n')
        before = self.entries()
        for _ in range(2):
            self.assertEqual(self.staged(), [])
            self.assertEqual(sorted(each['path'] for each in self.status()['unread']), ['.claude', 'AGENTS.md'])
        (self.tree / 'mine').write_text('mine\n')
        self.commit_here()
        self.assert_carried(before)
        self.assertEqual((self.tree / 'AGENTS.md').read_text(), 'mine\n')

    def test_a_clone_of_an_earlier_version_keeps_what_it_has(self):
        self.clone('--show-instructions')
        self.assertNotIn('instructions', (self.tree / '.playfs/clone.json').read_text())
        self.playfs('update', cwd=self.tree)
        self.assertEqual(self.staged(), [])
        self.assertTrue((self.tree / 'AGENTS.md').exists())


class Harnesses(mcp_client.Mcp):
    def test_they_get_none_of_others(self):
        files = {path: {'inline': text} for path, text in OTHERS.items()}
        revision = self.api.create('revisions', project=self.project, parents=[], state={}, manifest={'files': files})['id']
        self.api.call('PATCH', f'/projects/{self.project}', {'latest_revision': revision})
        self.playfs('update', cwd=self.work)
        client = self.client()
        said = client.call('list')[0]
        self.assertIn('README.md', said)
        for name in 'AGENTS.md', 'settings.json', '.envrc', 'CLAUDE.md':
            self.assertNotIn(name, said)
        client.fail('read', path='AGENTS.md')
        self.assertIn('gives instructions to agents', client.fail('read', path='AGENTS.md', revision='head'))
        self.assertEqual(client.call('read', path='README.md', revision='head')[0], OTHERS['README.md'])
        self.assertEqual(client.close(), 0)


if __name__ == '__main__':
    fixture.main()
