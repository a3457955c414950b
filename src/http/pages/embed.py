"""Embeds text files in the program: embed.py OUTPUT HEADER FUNCTION=FILE… writes C++ with a function for each."""
import pathlib
import sys

output, header, *files = sys.argv[1:]
lines = [f'#include "{header}"', '', 'namespace playfs::http {', '']
for function, file in (word.split('=', 1) for word in files):
    text = pathlib.Path(file).read_text(encoding='utf-8')
    if ')embedded"' in text:
        sys.exit(f'{file} contains the end of its own literal')
    lines += [f'std::string_view {function}() {{', f'  return R"embedded({text})embedded";', '}', '']
pathlib.Path(output).write_text('\n'.join([*lines, '}  // namespace playfs::http', '']), encoding='utf-8')
