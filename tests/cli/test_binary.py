#!/usr/bin/env python3
"""The built program's hardening against exploits."""
import shutil
import subprocess
import unittest

import fixture


@unittest.skipUnless(shutil.which('readelf'), 'readelf is missing')
class Binary(unittest.TestCase):
    def read(self, *what):
        return subprocess.run(['readelf', '--wide', *what, fixture.Fixture.playfs_path], check=True, text=True,
                              stdout=subprocess.PIPE).stdout

    def test_it_lies_where_nobody_knows_and_its_tables_cannot_be_written(self):
        self.assertRegex(self.read('--file-header'), r'Type:\s+DYN ')
        self.assertRegex(self.read('--dynamic'), r'\(FLAGS_1\)\s+Flags: NOW PIE\b')
        segments = self.read('--program-headers')
        self.assertRegex(segments, r'\n\s+GNU_RELRO ')
        self.assertRegex(segments, r'\n\s+GNU_STACK .* RW  ', 'no stack that can be executed')

    def test_its_stack_and_its_calls_are_checked(self):
        symbols = self.read('--dyn-syms')
        self.assertIn(' __stack_chk_fail@', symbols)
        self.assertRegex(symbols, r' __\w+_chk@', 'by _FORTIFY_SOURCE')


if __name__ == '__main__':
    fixture.main()
