#!/usr/bin/env python3
"""The memory of a mount goes back to the system when what it was for is gone."""
import os
import pathlib
import re
import shutil

import rig

FILES = int(os.environ.get('PLAYFS_TEST_MEMORY_FILES', '40000'))  # many times what nodes take that are let go unnoticed
FOLDER = 1000


@rig.needs_fuse
class Memory(rig.Rig):
    @staticmethod
    def resident(mount):
        status = pathlib.Path(f'/proc/{mount.process.pid}/status').read_text()
        return int(re.search(r'VmRSS:\s+(\d+) kB', status)[1])

    def test_files_that_were_made_and_removed(self):
        mount = self.mount('local:default', options=())
        self.playfs('init', 'notes')
        work = mount.project('notes') / 'work'
        (work / 'stays').write_text('stays\n')
        before = self.resident(mount)
        for folder in range(FILES // FOLDER):
            (work / f'd{folder}').mkdir()
            for number in range(FOLDER):
                os.close(os.open(work / f'd{folder}/f{number}', os.O_CREAT | os.O_WRONLY))
        (work / 'stays too').write_text('stays\n')
        most = self.resident(mount)
        for folder in range(FILES // FOLDER):
            shutil.rmtree(work / f'd{folder}')
        self.eventually(lambda: self.resident(mount) - before < (most - before) / 2,
                        f'most of what came is gone: {before} kB before, {most} kB with them')
        print(f'{FILES} files: {before} kB before, {most} kB with them, {self.resident(mount)} kB after')
        self.assertEqual(sorted(os.listdir(work)), ['stays', 'stays too'])


if __name__ == '__main__':
    rig.main()
