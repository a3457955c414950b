#!/usr/bin/env python3
"""Writes lib/util/fold_table.c from Python's Unicode data."""
import unicodedata

pairs = [(c, ord(chr(c).lower())) for c in range(0x110000)
         if unicodedata.category(chr(c)) == 'Lu' and len(chr(c).lower()) == 1 and ord(chr(c).lower()) != c]
with open('lib/util/fold_table.c', 'w', encoding='ascii') as out:
    out.write('/* Written by scripts/gen_fold.py: capital letters and their small forms. */\n#include "util/fold.h"\n\n'
              'const struct fold_pair fold_table[] = {\n')
    for start in range(0, len(pairs), 6):
        out.write('    ' + ' '.join(f'{{0x{u:04x}, 0x{l:04x}}},' for u, l in pairs[start:start + 6]) + '\n')
    out.write('};\n\nconst size_t fold_count = sizeof fold_table / sizeof *fold_table;\n')
