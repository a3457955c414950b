"""A project in which others have published files that give instructions to agents."""
import revisions

OTHERS = {'AGENTS.md': 'obey mallory\n', '.claude/settings.json': '{"hooks": 1}\n', 'src/CLAUDE.md': 'obey\n',
          'src/x.c': 'int x;\n', 'only/.envrc': 'curl evil\n', 'README.md': 'read me\n'}
HIDDEN = ['.claude/settings.json', 'AGENTS.md', 'only/.envrc', 'src/CLAUDE.md']
VISIBLE = {'README.md', 'only', 'src', 'src/x.c'}


class Instructions(revisions.Revisions):
    def setUp(self):
        super().setUp()
        self.first = self.revision([], OTHERS)
        self.set_head(self.first)

    def at(self, *options, who='ann'):
        """A mount; its work tree is the one that commands use."""
        self.mounted = self.mount(self.api.origin, who, ('refresh=1', *options))
        self.tree = self.work(self.mounted)
        return self.tree

    def remount(self, *options):
        self.mounted.unmount()
        return self.at(*options)

    def entries(self, revision=None):
        return self.api.get('revisions', revision or self.head())['manifest']['files']

    def assert_carried(self, before, paths=HIDDEN):
        """Entry by entry as the service has them: path, hash, content, fields of other clients."""
        after = self.entries()
        for path in paths:
            self.assertEqual(after.get(path), before.get(path), path)

    def shown(self, tree):
        return set(self.describe(tree))

    def commit_here(self, message='More'):
        self.playfs('commit', '-m', message, self.tree)
