"""Malformed responses, each with what may be requested afterwards: an error must be reported, and nothing worse may
happen."""
import functools
import gzip
import itertools
import json
import time

from site_of_lies import BASE, http

ENDLESS = 256  # pieces of 64 KiB, after which endless responses end: no client gets that far
SLOW = 100     # seconds, likewise


@functools.cache
def bomb():
    """64 MB of blanks, as gzip."""
    return gzip.compress(b' ' * (64 << 20), 1)


def endless(head, piece):
    yield head
    for _ in range(ENDLESS):
        yield piece


def slowly(content):
    for place in range(SLOW):
        yield content[place:place + 1]
        time.sleep(1)


# Responses that a reader may accept: then what is shown is what was sent.
HARMLESS = ('length past 63 bits', 'two lengths')
# After these a client pauses, whatever it is asked for.
PAUSES = tuple(f'status {status}' for status in (429, 500, 502, 503, 504))


def answers(record, trap):
    """The responses by name, in pieces. `record` is a valid one; `trap` is another host."""
    whole = json.dumps({'record': record}).encode()
    ok = b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n'
    sized = ok + b'Content-Length: %d\r\n\r\n'
    blanks = b' ' * 65536
    found = {
        'redirected away': http('', '302 Found', f'Location: {trap}/elsewhere'),
        'redirected for good': http(whole, '301 Moved Permanently', f'Location: {trap}/'),
        'redirected with its method': http('', '307 Temporary Redirect', f'Location: //{trap.split("/")[2]}/'),
        'redirected to a file': http('', '302 Found', 'Location: file:///etc/passwd'),
        'redirected to itself': http('', '308 Permanent Redirect', f'Location: {BASE}/revisions/{record["id"]}'),
        'shorter than said': [sized % (len(whole) + 100) + whole],
        'longer than said': [sized % (len(whole) - 10) + whole],
        'length past 63 bits': [sized % 2**70 + whole],
        'length huge': [sized % 2**62 + whole],
        'two lengths': [ok + b'Content-Length: 3\r\nContent-Length: %d\r\n\r\n' % len(whole) + whole],
        'length negative': [ok + b'Content-Length: -1\r\n\r\n' + whole[:-9]],
        'chunks cut off': [ok + b'Transfer-Encoding: chunked\r\n\r\n5\r\n{"rec'],
        'chunk of 2^64': [ok + b'Transfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n' + whole],
        'chunk no number': [ok + b'Transfer-Encoding: chunked\r\n\r\nzz\r\n' + whole],
        'gzip cut off': [ok + b'Content-Encoding: gzip\r\n\r\n' + gzip.compress(whole)[:-20]],
        'gzip is none': http(whole, '200 OK', 'Content-Encoding: gzip'),
        'unknown encoding': http(whole[::-1], '200 OK', 'Content-Encoding: rot13'),
        'no status line': [whole],
        'status 999': http(whole, '999 Enough'),
        'status 20': http(whole, '20 OK'),
        'another protocol': [b'SSH-2.0-OpenSSH_9.0\r\n'],
        'nothing at all': [b''],
        'html': http('<!doctype html><script>alert(1)</script>', kind='text/html'),
        'json cut off': http(whole[:-5]),
        'empty': http(''),
        'another record': http(json.dumps({'record': {**record, 'id': 'claims-r'}})),
        'a record without an id': http(json.dumps({'record': {**record, 'id': None}})),
        'a list': http(json.dumps({'records': [record], 'nextCursor': None})),
        'utf-16': http(whole.decode().encode('utf-16')),
        'a number': http('1e400'),
        'two documents': http(whole + whole),
        'not modified, unasked': [b'HTTP/1.1 304 Not Modified\r\n\r\n'],
        'part of it': http(whole[:9], '206 Partial Content', f'Content-Range: bytes 0-8/{len(whole)}'),
        'no content': [b'HTTP/1.1 204 No Content\r\n\r\n'],
        'error of controls': http(json.dumps({'error': {'code': '\x1b[2J',
                                                        'message': '\x1b]0;owned\x07\u202e\n' * 1000}}),
                                  '400 \x1b[2J'),
    }
    for status in (401, 403, 404, 409, 410, 418, 423, 425, 429, 500, 502, 503, 504):
        error = json.dumps({'error': {'code': 'x', 'message': 'no'}})
        found[f'status {status}'] = http(error, f'{status} No', 'Retry-After: 1000000000',
                                          'WWW-Authenticate: Basic realm="type your password"')
    found.update({
        'chunks without end': endless(ok + b'Transfer-Encoding: chunked\r\n\r\n', b'10000\r\n' + blanks + b'\r\n'),
        'no length and no end': endless(ok + b'\r\n', blanks),
        'headers without end': endless(ok, b'X-' + b'y' * 100 + b': ' + b'z' * 65000 + b'\r\n'),
        'a header without end': endless(ok + b'X: ', b'z' * 65536),
        'continue without end': endless(b'', b'HTTP/1.1 100 Continue\r\n\r\n' * 2600),
        'gzip bomb': http(bomb(), '200 OK', 'Content-Encoding: gzip'),
        'one byte a second': slowly(sized % len(whole) + whole),
        'a body of one byte a second': itertools.chain([sized % len(whole)], slowly(whole)),
    })
    return found
