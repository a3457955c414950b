#!/usr/bin/env python3
"""What a service says does not speak to the terminal through the ioctls' `error`, which programs print as it is."""
import json
import struct
import subprocess
import sys

import projects
import proxy
import fixture
import site_of_lies
import trees

ID, ERROR = 208, 1544  # bytes in <playfs/ioctl.h>
TEXTS = ('code', 0, 32), ('message', 32, 1024), ('hint', 1056, 480)
UPDATE = 0x73, 16 + ID + ERROR + 32, 16 + ID
MERGE = 0x74, 16 + 2 * ID + ERROR + 32, 16 + 2 * ID
COMMIT = 0x70, 16 + 128 + 4096 + 24 + 2 * ID + ERROR + 40 + 24, 16 + 128 + 4096 + 24 + 2 * ID
DRY_RUN = 8


# In a process of its own: Python keeps its lock during an ioctl, and the service is in this one.
CALL = """
import fcntl, os, struct, sys
path, number, size, text = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), bytes.fromhex(sys.argv[4])
request = bytearray(size)
struct.pack_into('II', request, 0, size, 1)
request[8:8 + len(text)] = text
try:
    fcntl.ioctl(os.open(path, os.O_RDONLY), (3 << 30) | (size << 16) | (ord('P') << 8) | number, request)
except OSError:
    sys.stdout.buffer.write(request)
"""


def failure(path, call, text):
    """The texts of the `error` in which an ioctl fails, as bytes; None if it does not fail."""
    number, size, error = call
    said = subprocess.run([sys.executable, '-c', CALL, path, str(number), str(size), text.hex()], check=True,
                          capture_output=True).stdout
    if not said:
        return None
    return {name: said[error + at:error + at + length].split(b'\0')[0] for name, at, length in TEXTS}


@fixture.needs_fuse
class IoctlText(fixture.Fixture):
    def test_reasons(self):
        api, service = proxy.before_a_service(self)
        project = projects.publish(api, 'p', {'f': 'x\n'})
        first = api.get('projects', project)['latest_revision']
        evil = ''.join(trees.CONTROLS) + 'x\x1b]0;owned\x07\x1b[2J\n\tplayfs: published'
        answers = {f'projects/{project}': {'id': evil, 'name': 'p', 'latest_revision': first},
                   'revisions/other': {'id': evil, 'project': project, 'parents': [first]}}
        lies = set()

        def raw(method, path, headers, body, ask):
            place = path.split('?')[0].removeprefix(f'{site_of_lies.BASE}/')
            if method != 'GET' or place not in lies:
                return None
            return site_of_lies.http(json.dumps({'record': answers[place]}))

        work = self.mount(service.url, options=('refresh=600',)).directory / 'projects' / project / 'work'
        self.assertEqual((work / 'f').read_text(), 'x\n')
        (work / 'g').write_text('g\n')
        service.raw = raw
        cases = [('merge', MERGE, bytes(8) + b'other', 'revisions/other'),
                 ('update', UPDATE, b'', f'projects/{project}'),
                 ('commit', COMMIT, struct.pack('II', DRY_RUN, 0) + bytes(128) + b'message', f'projects/{project}')]
        for name, call, text, lie in cases:
            with self.subTest(name):
                lies.clear()
                lies.add(lie)
                said = failure(work / 'f', call, text)
                self.assertIsNotNone(said, 'it fails')
                self.assertIn(b'owned', said['message'], 'it has what the service said')
                for part in said.values():
                    self.assertIsNone(trees.UNSAFE.search(part.decode()), part)
                    self.assertFalse(set(part) & set(b'\n\t\r\x1b'), part)
        # playfs itself escapes what it prints, and does not escape it twice.
        lies.clear()
        lies.add(f'projects/{project}')
        code, shown = self.on_terminal(self.playfs_path, 'update', work)
        self.assertNotEqual(code, 0)
        self.assertIsNone(trees.UNSAFE.search(shown), shown)
        self.assertIn('\\x1b[2J', shown.replace('\n', ''))
        self.assertNotIn('\\\\x1b', shown)


if __name__ == '__main__':
    fixture.main()
