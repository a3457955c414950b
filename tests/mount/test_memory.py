#!/usr/bin/env python3
"""A mount returns memory to the system when what used it is gone."""
import os
import shutil
import unittest

import fixture

FILES = int(os.environ.get('PLAYFS_TEST_MEMORY_FILES', '40000'))  # far more than nodes that go unnoticed take
FOLDER = 1000


@fixture.needs_fuse
class Memory(fixture.Fixture):
    @unittest.skipIf(fixture.IS_SANITIZED, 'sanitizers keep what was freed')
    def test_files_that_were_made_and_removed(self):
        mount = self.mount('local:default', options=())
        self.playfs('init', 'notes')
        work = mount.project('notes') / 'work'
        (work / 'stays').write_text('stays\n')
        before = fixture.memory(mount.process)
        for folder in range(FILES // FOLDER):
            (work / f'd{folder}').mkdir()
            for number in range(FOLDER):
                os.close(os.open(work / f'd{folder}/f{number}', os.O_CREAT | os.O_WRONLY))
        (work / 'stays too').write_text('stays\n')
        most = fixture.memory(mount.process)
        for folder in range(FILES // FOLDER):
            shutil.rmtree(work / f'd{folder}')
        self.eventually(lambda: fixture.memory(mount.process) - before < (most - before) / 2,
                        f'most of what came is gone: {before >> 10} kB before, {most >> 10} kB with them')
        print(f'{FILES} files: {before >> 10} kB before, {most >> 10} kB with them, '
              f'{fixture.memory(mount.process) >> 10} kB after')
        self.assertEqual(sorted(os.listdir(work)), ['stays', 'stays too'])


if __name__ == '__main__':
    fixture.main()
