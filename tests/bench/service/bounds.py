"""What PostgreSQL does by itself: pgbench with the statements that a server sends, and with the least that a POST needs."""
import json
import math
import re
import urllib.request

import parts

CLIENTS = 20  # more only wait for each other

# The values of $1, $2 … in the statements of a POST. The statements themselves are read off the wire.
RANDOM = "decode(md5(random()::text || clock_timestamp()::text), 'hex')"
VALUES = {
    'UPDATE site SET position': ('1', '1', '1764000000000000'),
    'INSERT INTO records': ('1', '1', "'active'", "ARRAY['messages']", f'ARRAY[{RANDOM}]', "ARRAY[''::bytea]",
                            f'ARRAY[{RANDOM}]', "ARRAY['{fields}'::bytea]", 'ARRAY[NULL::bytea]', 'ARRAY[1::bigint]'),
    'SELECT position, id, created_at, updated_at, status, owner, fields, request_key FROM records': (f'ARRAY[{RANDOM}]',),
    'SELECT position, id, created_at, updated_at, status, owner, fields FROM records WHERE id': ("'{id}'::bytea", "'messages'"),
}


class Recorded(parts.postgres.Relay):
    """Keeps every statement that passes."""

    def __init__(self, cluster):
        self.sent = []
        super().__init__(cluster)

    def statement(self, sql):
        self.sent.append(sql)
        return sql, True


def statements_of(world, cluster, database):
    """What a server sends for a POST with a key, and for a GET; and the id of the record that it made."""
    relay = Recorded(cluster)
    server = parts.Server(world, relay.uri(database))
    try:
        def post(key):
            headers = {'Content-Type': 'application/json', 'Origin': server.url, 'Idempotency-Key': key}
            request = urllib.request.Request(f'{server.url}{parts.BASE}/messages', parts.BODY.encode(), headers)
            with urllib.request.urlopen(request) as answer:
                return json.load(answer)['record']['id']

        post('first')  # after which old limits are removed, once a minute
        before = len(relay.sent)
        record = post('second')
        between = len(relay.sent)
        urllib.request.urlopen(f'{server.url}{parts.BASE}/messages/{record}').close()
        return relay.sent[before:between], relay.sent[between:], record
    finally:
        server.process.end()
        relay.remove()


def filled(sql, record):
    """With literals for parameters, on one line."""
    values = next((values for start, values in VALUES.items() if sql.strip().startswith(start)), ())
    for number, value in reversed(list(enumerate(values, 1))):
        value = value.replace('{fields}', parts.BODY.replace("'", "''")).replace('{id}', '\\x' + record.encode().hex())
        sql = sql.replace(f'${number}', value)
    if '$' in sql:
        raise RuntimeError(f'bounds.VALUES does not know the parameters of: {sql}')
    return ' '.join(sql.split()) + ';'


class Bounds:
    """Each has a name and a kind of request that it bounds."""

    def __init__(self, world, cluster):
        self.world, self.cluster = world, cluster
        self.database = cluster.new_database()
        post, get, record = statements_of(world, cluster, self.database)
        self.statements = {'post': len(post), 'get': len(get)}
        post, get = [filled(sql, record) for sql in post], [filled(sql, record) for sql in get]
        plain = f'INSERT INTO plain (fields) VALUES ($${parts.BODY}$$) RETURNING id, created_at;'
        cluster.sql('CREATE TABLE plain (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,'
                    ' created_at timestamptz NOT NULL DEFAULT now(), fields text NOT NULL)', self.database)
        # One round trip decides, the other writes (postgres_writes.h).
        writes = next(at for at, sql in enumerate(post) if sql.startswith('UPDATE site'))
        pipeline = [line for part in (post[:writes], post[writes:]) for line in ('\\startpipeline', *part, '\\endpipeline')]
        self.scripts = {'pgbench: a POST alone in its transaction': ('post', pipeline, 'extended'),
                        'pgbench: a plain INSERT, prepared': ('post', [plain], 'prepared'),
                        'GET, unnamed': ('get', get, 'extended'), 'GET, prepared': ('get', get, 'prepared')}
        self.kinds = {name: kind for name, (kind, _, _) in self.scripts.items()}

    def run(self, name, seconds, clients=CLIENTS):
        """Without what connecting costs, which a server pays once."""
        connecting = self.pgbench(name, clients, '-t', '1')
        found = self.pgbench(name, clients, '-T', str(seconds + 2))  # which begins when the first one connects
        both = zip(found['cpu'].items(), connecting['cpu'].values())
        count = found['requests'] - connecting['requests']
        found['cpu_us'] = {part: [(all_ - begin) / count * 1e6 for all_, begin in zip(times, before)]
                           for (part, times), before in both}
        return found

    def pgbench(self, name, clients, *limit):
        _, lines, mode = self.scripts[name]
        folder = self.world.new_folder('pgbench')
        (folder / 'script').write_text('\n'.join(lines) + '\n', encoding='utf-8')

        def load():
            said = self.world.run('pgbench', '-n', '-M', mode, '-f', folder / 'script', '-c', clients, *limit,
                                  parts.postgres.uri(self.cluster.folder, self.database))
            rate = float(re.search(r'tps = ([\d.]+)', said)[1])
            count = int(re.search(r'actually processed: (\d+)', said)[1])
            # Its log has the times at which it looks at its clients, so only their mean can be told.
            return {'requests': count, 'seconds': count / rate, 'p50_ms': 1000 * clients / rate, 'p99_ms': math.nan, 'errors': 0}
        return parts.measured({'database': [self.cluster.process.pid]}, load)
