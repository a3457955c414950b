"""PostgreSQL of a test's own: a cluster on a socket in a private folder, PgBouncer in front of it, and relays that
make trouble. All of it runs as an ordinary user; as root, as nobody."""
import contextlib
import glob
import os
import pathlib
import pwd
import random
import shutil
import signal
import socket
import stat
import struct
import subprocess
import tempfile
import threading
import time

USER = 'playfs'


def program(name):
    """Where Debian has it, or on the path; None if it is not installed."""
    found = sorted(glob.glob(f'/usr/lib/postgresql/*/bin/{name}'))
    return found[-1] if found else shutil.which(name)


def is_installed():
    return program('initdb') and program('postgres') and program('psql')


def as_ordinary_user(*words):
    """The command without root's rights: PostgreSQL and PgBouncer refuse to run with them."""
    if os.geteuid() != 0:
        return list(words)
    return ['setpriv', '--reuid=nobody', f'--regid={pwd.getpwnam("nobody").pw_gid}', '--clear-groups', *words]


def make_folder(prefix):
    """A private folder of the user who runs the servers. Its path is short, since sockets' names are."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix=prefix, dir='/tmp'))
    if os.geteuid() == 0:
        nobody = pwd.getpwnam('nobody')
        os.chown(folder, nobody.pw_uid, nobody.pw_gid)
    return folder


def uri(folder, database):
    return f'postgresql://{USER}@/{database}?host={folder}'


def database_of(uri):
    return uri.split('/')[3].split('?')[0]


class Cluster:
    """`settings` are lines of postgresql.conf. With a `primary`, its standby. The folder is removed at the end."""

    def __init__(self, settings=(), primary=None):
        self.folder = make_folder('playfs-pg-')
        self.process, self.made = None, 0
        try:
            if primary:
                made = [program('pg_basebackup'), '-D', str(self.folder / 'data'), '-h', str(primary.folder),
                        '-U', USER, '--write-recovery-conf', '--checkpoint=fast', '--no-sync']
            else:
                made = [program('initdb'), '-D', str(self.folder / 'data'), '-U', USER, '-A', 'trust', '--no-sync',
                        '--encoding=UTF8', '--locale=C']
            subprocess.run(as_ordinary_user(*made), check=True, stdout=subprocess.DEVNULL, cwd='/')
            with open(self.folder / 'data/postgresql.conf', 'a', encoding='ascii') as file:
                file.write('\n'.join(["listen_addresses = ''", f"unix_socket_directories = '{self.folder}'",
                                      'max_connections = 60', 'shared_buffers = 32MB', 'fsync = off', *settings, '']))
            self.start()
        except BaseException:
            self.remove()
            raise

    def start(self, limit=60):
        """Also after a kill, whose processes may take a moment to end."""
        end = time.monotonic() + limit
        while True:
            with open(self.folder / 'log', 'ab') as log:
                self.process = subprocess.Popen(
                    as_ordinary_user(program('postgres'), '-D', str(self.folder / 'data')), cwd='/',
                    stdin=subprocess.DEVNULL, stdout=log, stderr=log)
            while self.process.poll() is None:
                with contextlib.suppress(subprocess.CalledProcessError):
                    self.sql('SELECT 1')
                    return
                time.sleep(0.05)
            if time.monotonic() > end:
                raise AssertionError((self.folder / 'log').read_text()[-2000:])
            time.sleep(0.1)

    def kill(self):
        """kill -9 of all its processes, as if the machine had lost them."""
        children = pathlib.Path(f'/proc/{self.process.pid}/task/{self.process.pid}/children').read_text().split()
        for pid in (self.process.pid, *map(int, children)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()

    def wait_for_standbys(self):
        """From now on commits wait for a standby."""
        self.sql("ALTER SYSTEM SET synchronous_standby_names = '*'")
        self.sql('SELECT pg_reload_conf()')
        end = time.monotonic() + 60
        while self.sql('SELECT sync_state FROM pg_stat_replication') != ['sync']:
            if time.monotonic() > end:
                raise AssertionError('no synchronous standby')
            time.sleep(0.05)

    def remove(self):
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)  # ends connections
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def sql(self, text, database='postgres'):
        """The rows, their columns separated by |."""
        done = subprocess.run([program('psql'), '-XAtq', '-v', 'ON_ERROR_STOP=1', '-c', text,
                               uri(self.folder, database)],
                              check=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd='/')
        return done.stdout.split('\n')[:-1]

    def new_database(self):
        """Its name."""
        self.made += 1
        name = f'site{self.made}'
        self.sql(f'CREATE DATABASE {name}')
        return name


class Bouncer:
    """PgBouncer in transaction mode, with fewer connections to the server than its clients want."""

    def __init__(self, cluster, pool=3):
        self.folder = make_folder('playfs-pb-')
        self.port = 6432
        (self.folder / 'users').write_text(f'"{USER}" ""\n')
        (self.folder / 'pgbouncer.ini').write_text(f'''[databases]
* = host={cluster.folder}
[pgbouncer]
listen_addr =
unix_socket_dir = {self.folder}
listen_port = {self.port}
auth_type = trust
auth_file = {self.folder}/users
pool_mode = transaction
default_pool_size = {pool}
max_client_conn = 200
''')
        command = as_ordinary_user(shutil.which('pgbouncer'), '-q', str(self.folder / 'pgbouncer.ini'))
        self.process = subprocess.Popen(command, cwd='/', stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL)
        wait_for_socket(self.folder / f'.s.PGSQL.{self.port}')

    def uri(self, database):
        return uri(self.folder, database) + f'&port={self.port}'

    def remove(self):
        self.process.terminate()
        self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


class Relay:
    """Between clients and the server. Subclasses see every statement, and may change it."""

    def __init__(self, cluster):
        self.folder = make_folder('playfs-pr-')
        self.server = str(cluster.folder / '.s.PGSQL.5432')
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(self.folder / '.s.PGSQL.5432'))
        self.listener.listen(100)
        threading.Thread(target=self.accept, daemon=True).start()

    def uri(self, database):
        return uri(self.folder, database)

    def statement(self, sql):
        """What is sent instead, and whether it takes the parameters."""
        return sql, True

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                client = self.listener.accept()[0]
                server = socket.socket(socket.AF_UNIX)
                try:
                    server.connect(self.server)
                except OSError:
                    client.close()
                    server.close()
                    continue
                threading.Thread(target=self.relay, args=(client, server), daemon=True).start()

    def relay(self, client, server):
        back = threading.Thread(target=self.to_client, args=(client, server), daemon=True)
        back.start()
        with client, server:
            self.to_server(client, server)
            back.join()

    def to_client(self, client, server):
        with contextlib.suppress(OSError):
            while data := server.recv(1 << 16):
                client.sendall(data)
        with contextlib.suppress(OSError):
            client.shutdown(socket.SHUT_RDWR)

    def to_server(self, client, server):
        with contextlib.suppress(OSError, struct.error), client.makefile('rb') as stream:
            length = stream.read(4)  # the first message has no type
            server.sendall(length + stream.read(struct.unpack('!I', length)[0] - 4))
            takes_parameters = True
            while kind := stream.read(1):
                body = stream.read(struct.unpack('!I', stream.read(4))[0] - 4)
                if kind == b'P':
                    name, sql, types = body.split(b'\0', 2)
                    sql, takes_parameters = self.statement(sql.decode())
                    body = name + b'\0' + sql.encode() + b'\0' + (types if takes_parameters else bytes(2))
                elif kind == b'B' and not takes_parameters:
                    body = bytes(8)  # no names, no parameters
                server.sendall(kind + struct.pack('!I', len(body) + 4) + body)
        with contextlib.suppress(OSError):
            server.shutdown(socket.SHUT_RDWR)

    def remove(self):
        self.listener.close()
        shutil.rmtree(self.folder, ignore_errors=True)


class Conflicts(Relay):
    """Every so many statements, at random, one fails with 40001 or 40P01, as if it had lost against a concurrent
    transaction. The server itself says so, and so ends the transaction."""

    def __init__(self, cluster, one_in=20, seed=1):
        self.one_in, self.random, self.failed = one_in, random.Random(seed), 0
        super().__init__(cluster)

    def statement(self, sql):
        if self.random.randrange(self.one_in):
            return sql, True
        self.failed += 1
        state = self.random.choice(('40001', '40P01'))
        return f"DO $$BEGIN RAISE 'on purpose' USING ERRCODE = '{state}'; END$$", False


class SlowCommits(Relay):
    """Each commit arrives some milliseconds after what it commits, so that transactions overlap."""

    def statement(self, sql):
        if sql == 'COMMIT':
            time.sleep(random.random() / 100)
        return sql, True


class PlainSequence(SlowCommits):
    """The naive order, as a fault: positions and numbers from sequences, times from the clock, and no lock."""
    NUMBER = "(nextval('naive') + 0 * ($1 + $2 + n))"
    TIME = '((extract(epoch FROM clock_timestamp()) * 1000000)::bigint + 0 * ($1 + $2 + n))'

    def __init__(self, cluster, database):
        cluster.sql('CREATE SEQUENCE naive', database)
        super().__init__(cluster)

    def statement(self, sql):
        if sql.startswith('UPDATE site SET position'):
            sql = 'SELECT created_at + 0 * ($1 + $2 + $3) FROM site'
        for right, naive in (('site.position - $1 + n', self.NUMBER), ('site.created_at - $1 + n', self.TIME),
                             ('site.changed - $2 + change', self.NUMBER)):
            sql = sql.replace(right, naive)
        return super().statement(sql)


def wait_for_socket(path, limit=20):
    end = time.monotonic() + limit
    while True:
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as probe:
            if stat.S_ISSOCK(os.stat(path).st_mode):
                probe.connect(str(path))
                return
        if time.monotonic() > end:
            raise AssertionError(f'nobody listens at {path}')
        time.sleep(0.05)
