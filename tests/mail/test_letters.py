#!/usr/bin/env python3
"""Letters with hostile texts, as Python's mail libraries read them. Usage: test_letters.py PRINT-LETTERS"""
import collections
import contextlib
import email
import email.policy
import mailbox
import pathlib
import subprocess
import sys
import tempfile
import unittest

PROGRAM = sys.argv.pop(1)
ONCE = {'from', 'subject', 'date', 'message-id', 'mime-version', 'content-type', 'content-transfer-encoding'}
LETTERS = 309  # one plain one; each of 28 texts in each of 10 fields, and in all of them


class Letters(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.text = subprocess.run([PROGRAM], capture_output=True, check=True).stdout
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / 'mbox'
            path.write_bytes(cls.text)
            with contextlib.closing(mailbox.mbox(path)) as box:
                cls.letters = [email.message_from_bytes(letter.as_bytes(), policy=email.policy.default)
                               for letter in box]

    def test_the_mailbox_has_each_letter_once(self):
        self.assertEqual(len(self.letters), LETTERS)

    def test_letters_have_no_defects(self):
        for letter in self.letters:
            self.assertEqual(letter.defects, [])
            for name, value in letter.items():
                self.assertEqual(getattr(value, 'defects', ()), (), name)

    def test_each_header_is_there_once_and_none_was_injected(self):
        for letter in self.letters:
            counts = collections.Counter(name.lower() for name in letter.keys())
            self.assertEqual(set(counts.values()), {1})
            self.assertLessEqual(ONCE, set(counts))
            self.assertNotIn('bcc', counts)

    def test_an_address_is_one_address(self):
        for letter in self.letters:
            self.assertEqual(len(letter['From'].addresses), 1)
            self.assertEqual(letter['From'].addresses[0].domain, 'example.org')
            self.assertIn(letter['To'] and letter['To'].addresses[0].username,
                          {None, 'discussion', 'help', 'steward'})

    def test_texts_are_shown_as_they_were_written(self):
        subjects = {str(letter['Subject']) for letter in self.letters}
        bodies = {letter.get_content() for letter in self.letters}
        # Python wrongly keeps the spaces between the encoded words of a name.
        names = {letter['From'].addresses[0].display_name.replace(' ', '') for letter in self.letters}
        for text in ('=?utf-8?q?evil=0ABcc:_eve?=', 'a"b\\c <x@y>, (comment) ; :', 'zażółć gęślą jaźń 日本語 🎉', '"<@>'):
            self.assertIn(text, subjects)
            self.assertIn(text.replace(' ', '').replace('=?', '\\x3d?'), names)
            self.assertIn(f'{text}\n', bodies)
        self.assertIn('a Bcc: eve@example.org', subjects)
        self.assertIn('x' * 16384, subjects)


if __name__ == '__main__':
    unittest.main()
