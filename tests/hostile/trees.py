"""What a stranger publishes: each attack, with what a mount must show of it."""
import dataclasses
import hashlib
import re
import unicodedata

import fixture
from site_of_lies import Raw

# The deepest possible path; unoptimised builds with a sanitizer run out of stack earlier.
DEEPEST = 300 if fixture.IS_SANITIZED else 2045
ELSEWHERE = 'a name'  # part of the reason why a version control system's own folder is refused


@dataclasses.dataclass
class Attack:
    """One project, and what its `head/` has to look like; anything not named here does not matter."""
    name: str
    files: dict = None                                          # path: entry
    manifest: object = None                                     # instead of files
    chunks: dict = dataclasses.field(default_factory=dict)      # id: content
    project: dict = dataclasses.field(default_factory=dict)     # fields of the records
    revision: dict = dataclasses.field(default_factory=dict)
    shows: dict = dataclasses.field(default_factory=dict)       # path: bytes
    links: dict = dataclasses.field(default_factory=dict)       # path: target
    refuses: dict = dataclasses.field(default_factory=dict)     # path: part of the reason; hidden, and reported
    fails: dict = dataclasses.field(default_factory=dict)       # path: part of the reason; unreadable, and reported
    nothing: str = None                                         # part of the reason why there is no tree at all


def inline(text, **more):
    return {'h': '', 's': len(text.encode()), 'inline': text, **more}


def sha(text):
    return hashlib.sha256(text.encode()).hexdigest()


def paths():
    refused = {
        '': 'empty', '.': '"."', '..': '".."', '/etc/passwd': 'absolute', '../outside': '".."', 'a/../../b': '".."',
        'a//b': 'empty', 'a/': 'empty', './a': '"."', 'nul\0byte': 'NUL', 'n' * 256: '255',
        'd/' * 2047 + 'long': '4095', 'ü' * 128: '255', 'both': 'directory', '.playfs/export.json': 'playfs',
        'sub/.playfs/x': 'playfs'}
    shown = ['n' * 255, 'README', 'readme', 'Readme', unicodedata.normalize('NFC', 'é'),
             unicodedata.normalize('NFD', 'é'), '...', ' ', '-rf', '--help', '~', 'CON', 'aux.txt', 'a\\b', 'a:b', '*',
             '?', 'both/below']
    return Attack('paths', {path: inline(f'{path[:40]!r}\n') for path in [*refused, *shown]}, refuses=refused,
                  shows={path: f'{path[:40]!r}\n'.encode() for path in shown})


def repositories(witness):
    run = f'touch {witness}\n'
    config = f'[core]\n\tbare = false\n\tworktree = .\n\tfsmonitor = "touch {witness}; false"\n'
    refused = ['.git/config', '.GIT/hooks/post-checkout', '.git./config', 'git~1/config', '.g\u200cit/config',
               '.git ./config', '.hg/hgrc', '.Hg/hgrc', '.svn/wc.db', '.bzr/x', '.jj/x', '_darcs/prefs', 'sub/.git/config', 'sub/.git',
               '.git::$INDEX_ALLOCATION/config']
    files = {path: inline(config, m='100755') for path in refused}
    files.update({'HEAD': inline('ref: refs/heads/main\n'), 'objects/x': inline(''), 'refs/x': inline(''),
                  'config': inline(config), 'sub/HEAD': inline('ref: refs/heads/main\n'), 'sub/objects/x': inline(''),
                  'sub/refs/x': inline(''), 'sub/config': inline(config),
                  'hooks/post-checkout': inline(run, m='100755'),
                  '.envrc': inline(run), '.gitattributes': inline('* filter=evil diff=evil\n'),
                  '.gitmodules': inline(f'[submodule "x"]\n\tpath = x\n\turl = ext::sh -c "touch {witness}"\n'),
                  'Makefile': inline(f'$(shell touch {witness})\n'), '$(touch witness)': inline('x'),
                  '`id`;id': inline('x')})
    return Attack('repositories', files,
                  refuses={**{path: ELSEWHERE for path in refused}, 'HEAD': 'repository', 'sub/HEAD': 'repository',
                           '.envrc': 'gives instructions to agents'},
                  shows={'config': config.encode(), 'sub/config': config.encode()})


CONTROLS = ['esc\x1b[2J\x1b[31m', 'title\x1b]0;owned\x07', 'line\nbreak', 'return\rover', 'bell\x07',
            'back\b\b\bspace', 'del\x7f',
            'c1\x9b2J', 'bidi\u202egnp.exe', 'iso\u2066late\u2069', 'mark\u200f', 'sep\u2028', 'tag\U000e0041',
            'tab\there']


# What must never be printed on a terminal.
UNSAFE = re.compile('[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]')


def controls():
    text = ''.join(CONTROLS)
    return Attack('controls', {name: inline('plain\n') for name in CONTROLS},
                  shows={name: b'plain\n' for name in CONTROLS}, project={'name': f'name {text}'},
                  revision={'agent': f'agent {text}', 'message': f'message {text}\n\nAuthor: root\n', 'x': text})


def symlinks():
    targets = {'passwd': '/etc/passwd', 'up': '../' * 40 + 'etc/passwd', 'environ': '/proc/self/environ',
               'mem': '/proc/self/mem',
               'fd': '/proc/self/fd/0', 'self': 'self', 'one': 'two', 'two': 'one', 'here': '.', 'parent': '..',
               'esc': 'esc\x1b[2J', 'longest': 'x' * 4095, 'dash': '-rf', 'dir/loop': '../dir'}
    broken = {'empty': '', 'nul': 'a\0b', 'too long': 'x' * 4096}
    files = {path: inline(target, m='120000') for path, target in {**targets, **broken}.items()}
    return Attack('symlinks', files, links=targets, fails=dict.fromkeys(broken, 'link'))


def modes():
    values = ['04755', '104755', '102755', '101777', '100777', '160000', '040000', '120777', '020666', '060666', 1e3,
              Raw('1e400'), [], {}, None, True, -1, '100755\0', Raw('36893488147419103232')]
    files = {f'mode{n}': inline('plain\n', m=value) for n, value in enumerate(values)}
    return Attack('modes', files, shows={path: b'plain\n' for path in files})


def claims(honest):
    """Wrong hashes and sizes. `honest`: a text of an honest project, whose hash others claim."""
    mine = 'evil bytes under an honest hash\n'
    files = {
        'honest hash': inline(mine, h=sha(honest)), 'honest hash prefixed': inline(mine, h='sha256:' + sha(honest)),
        'honest hash of a chunk': {'h': sha(honest), 's': len(mine), 'c': ['claims-evil']},
        'true bytes': inline(honest, h=sha(honest)),
        'other hash': inline(mine, h='md5:' + sha(honest)[:32]), 'short hash': inline(mine, h=sha(honest)[:63]),
        'hash of 1 MB': inline(mine, h='a' * 1_000_000), 'hash no text': inline(mine, h={'a': [1]}),
        'size small': inline(mine, s=1), 'size large': inline(mine, s=len(mine) + 1),
             'size 64 bits': inline(mine, s=Raw('9223372036854775807')),
        'size past 64 bits': inline(mine, s=Raw('9223372036854775808')),
             'size past all': inline(mine, s=Raw('1' + '0' * 400)),
        'size 1e400': inline(mine, s=Raw('1e400')), 'size -1': inline(mine, s=-1), 'size text': inline(mine, s='12'),
        'size half': inline(mine, s=0.5), 'size list': inline(mine, s=[]),
        'size huge of chunks': {'h': '', 's': 2**62, 'c': ['claims-evil']},
        'base64 bad': inline('@@@', e='base64'), 'encoding': inline('x', e='rot13'),
             'encoding number': inline('x', e=3),
    }
    wrong_hash, wrong_size = dict.fromkeys(('honest hash', 'honest hash prefixed', 'honest hash of a chunk'),
                                           'SHA-256'), {
        path: 'promises' for path in ('size small', 'size large', 'size 64 bits', 'size huge of chunks')}
    content = mine.encode()
    return Attack('claims', files, chunks={'claims-evil': mine}, fails={**wrong_hash, **wrong_size,
                                                                        'base64 bad': 'base64'},
                  refuses={'encoding': 'encoding', 'encoding number': 'encoding'},
                  shows={'true bytes': honest.encode(), **dict.fromkeys(
                      ('other hash', 'short hash', 'hash of 1 MB', 'hash no text', 'size past 64 bits', 'size past all',
                       'size 1e400', 'size -1', 'size text', 'size half', 'size list'), content)})


STRANGE_IDS = ['../projects', '..', '.', 'a/b', '/', 'x?limit=1', 'x#y', '%2e%2e', '%00', 'a\nX: y',
               'a\r\n\r\nGET / HTTP/1.1', 'a,b',
               'a b', '\0', '\x1b[2J', '\u202e', 'ü', "'; --", '-rf', '$(id)', '\\', 'http://example.com/', '@', ':80',
               'x' * 256]


def chunks():
    files = {f'id {n}': {'h': '', 's': 3, 'c': [name]} for n, name in enumerate(STRANGE_IDS)}
    files.update({
        'missing': {'h': '', 's': 3, 'c': ['chunk-nowhere']}, 'no content': {'h': '', 's': 3, 'c': ['chunk-empty']},
        'content a list': {'h': '', 's': 3, 'c': ['chunk-list']}, 'another record': {'h': '', 's': 3,
                                                                                     'c': ['chunk-other']},
        'the same 1000 times': {'h': '', 's': 0, 'c': ['chunk-large'] * 1000},
                  'large': {'h': '', 's': 1_000_000, 'c': ['chunk-large']},
        'changes': {'h': sha('first'), 's': 5, 'c': ['chunk-changes']},
        'id too long': {'c': ['x' * 5000]}, 'id empty': {'c': ['']}, 'id null': {'c': [None]}, 'id object': {'c': [{}]},
        'chunks an object': {'c': {}}, 'chunks and text': {'c': ['a'], 'inline': 'x'}, 'nothing': {},
                  'text a list': {'inline': []},
        'an entry that is text': 'x', 'an entry that is null': None, 'twice': Raw('{"inline":"a","inline":"b"}'),
    })
    refused = {f'id {STRANGE_IDS.index("x" * 256)}': 'chunks', 'id too long': 'chunks', 'id empty': 'chunks',
               'id null': 'chunks', 'id object': 'chunks', 'chunks an object': 'chunks',
               'chunks and text': 'both', 'nothing': 'no content', 'text a list': 'not text',
               'an entry that is text': 'not an object',
               'an entry that is null': 'not an object', 'twice': 'repeats'}
    return Attack('chunks', files, refuses=refused, chunks={'chunk-large': 'x' * 1_000_000, 'chunk-list': ['x']},
                  shows={'large': b'x' * 1_000_000},
                  fails={**{f'id {n}': '' for n, name in enumerate(STRANGE_IDS) if len(name) < 256}, 'missing': '',
                         'no content': 'no content',
                         'content a list': 'no content', 'another record': 'asked for',
                         'the same 1000 times': 'larger'})


def large():
    """Large quantities."""
    return [
        Attack('many entries',
               manifest=Raw('{"files":{' + ','.join(f'"d/f{n}":{{"inline":""}}' for n in range(20_000)) + '}}'),
               shows={'d/f0': b'', 'd/f19999': b''}),
        Attack('deep', {'d/' * DEEPEST + 'file': inline('deep\n'), **{'e/' * n + 'f': inline('x') for n in range(1, 300)}},
               shows={'d/' * DEEPEST + 'file': b'deep\n'}),
        Attack('wide values', {'f': inline('x')}, manifest={'files': {'f': inline('x')}, 'extra': [[0]] * 100_000},
               shows={'f': b'x'}),
        Attack('too many values', manifest=Raw('{"files":{"f":{"inline":"x"}},"extra":[' + '[],' * 1_100_000 + '0]}'),
               nothing='values'),
        Attack('deep values',
               manifest=Raw('{"files":{"f":{"inline":"x"}},"extra":' + '[' * 100_000 + ']' * 100_000 + '}'),
               nothing='deep'),
        Attack('long text', manifest={'files': {'f': inline('x' * (3 << 20))}}, nothing='string'),
        Attack('long message', {'f': inline('x')}, shows={'f': b'x'}, revision={'message': 'm\n' * 500_000,
                                                                                'agent': 'a' * 500_000}),
        Attack('ignore', {'.gitignore': inline('*a' * 300_000), 'd/.gitignore': inline('*aaaab*\n' * 20_000),
                          'f': inline('x')},
               shows={'f': b'x'}),
    ]


def manifests():
    """Things that are not manifests."""
    wrong = {
        'a path twice': (Raw('{"files":{"a":{"inline":"1"},"a":{"inline":"2"}}}'), 'repeats'),
        'files twice': (Raw('{"files":{},"files":{"a":{"inline":"2"}}}'), 'repeats'),
        'null': (None, 'not an object'), 'a list': ([], 'not an object'), 'text': ('x', 'not an object'),
             'files a list': ({'files': [1]}, 'not an object'),
    }
    found = [Attack(f'manifest {name}', manifest=Raw('null') if value is None else value, nothing=why)
             for name, (value, why) in wrong.items()]
    found.append(Attack('manifest with surrogates',
                        manifest=Raw('{"files":{"a\\ud800b":{"inline":"x\\udfff"},"f":{"inline":"x"}}}'),
                        shows={'f': b'x'}))
    found.append(Attack('continuation of rubbish', {'f': inline('x'), '.playfs-manifest': {'h': '', 's': 7,
                                                                                           'c': ['rubbish']}},
                        chunks={'rubbish': 'rubbish'}, shows={'f': b'x', '.playfs-manifest': b'rubbish'}))
    found.append(Attack('continuation of itself', {'f': inline('x'), '.playfs-manifest': {'h': '', 's': 1,
                                                                                          'c': ['continuation']}},
                        chunks={'continuation': '{"version":1,"files":{".playfs-manifest":{"c":["continuation"]}}}'},
                        nothing='manifest'))
    found.append(Attack('continuation away', {'.playfs-manifest': {'h': sha('x'), 's': 1, 'c': ['chunk-nowhere']}},
                        nothing=''))
    return found


TIMES = ['9999-12-31T23:59:59Z', '99999999999-01-01T00:00:00Z', '0000-00-00T00:00:00Z', '-0001-01-01T00:00:00Z',
         '2026-13-45T25:61:61Z',
         'x' * 100_000, Raw('1e400'), Raw('-9223372036854775809'), None, [], '1970-01-01T00:00:00Z', '\x1b[2J',
         '2026-02-30T00:00:00+99:99', '']


def history():
    found = [Attack(f'time {n}', {'f': inline('x')}, shows={'f': b'x'}, revision={'created_at': value},
                    project={'created_at': value}) for n, value in enumerate(TIMES)]
    return found + [
        Attack('own parent', {'f': inline('x')}, shows={'f': b'x'}, revision={'parents': ['own parent-r']}),
        Attack('circle', {'f': inline('x')}, shows={'f': b'x'}, revision={'parents': ['circle-2']}),
        Attack('many parents', {'f': inline('x')}, shows={'f': b'x'},
               revision={'parents': [f'nowhere{n}' for n in range(10_000)]}),
        Attack('strange parents', {'f': inline('x')}, shows={'f': b'x'},
               revision={'parents': [*STRANGE_IDS, None, [], {}, 7, 'claims-r']}),
        Attack('parents no list', {'f': inline('x')}, shows={'f': b'x'}, revision={'parents': {'a': 1}}),
        Attack('head of another', {'f': inline('x')}, project={'latest_revision': 'claims-r'}, nothing='project'),
        Attack('head away', {'f': inline('x')}, project={'latest_revision': 'nowhere'}, nothing=''),
        Attack('head up', {'f': inline('x')}, project={'latest_revision': '../projects/head up'}, nothing=''),
        Attack('state deep', {'f': inline('x')}, shows={'f': b'x'}, revision={'state': Raw('[' * 50 + ']' * 50)}),
        Attack('data', {'f': inline('x')}, shows={'f': b'x'}, revision={'data': {'data': {'data': 1}, 'id': 'x',
                                                                                 'project': 'x'}}),
    ]


IDS = {  # ids of projects: whether they can be directory names
    '..': False, '.': False, 'a/b': False, '../../etc': False, 'x,allow_other,umask=0': True, '-o': True,
         'line\nbreak': True,
    'esc\x1b[2J': True, 'bidi\u202e': True, 'n' * 256: False, '.git': False, 'HEAD': True, '$(id)': True,
         '.playfs': False}


def table(witness, honest):
    return [paths(), repositories(witness), controls(), symlinks(), modes(), claims(honest), chunks(), *large(),
            *manifests(), *history()]


# Tools that take a path at a time walk these for minutes on a busy machine, on any file system.
LONG_WALKS = ('many entries', 'deep')
