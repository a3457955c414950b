"""What a load test consists of: servers, PostgreSQL, nginx in front of servers, wrk; and what each of them spends."""
import contextlib
import json
import os
import pathlib
import resource
import secrets
import sys
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
sys.path[:0] = [str(ROOT / 'tests/bench/harness'), str(ROOT / 'tests/support')]
import postgres  # noqa: E402
from world import answers, free_port  # noqa: E402

BASE = '/.site/data'
CONNECTIONS = 60  # of wrk: one, two and three servers get the same number each
TICKS = os.sysconf('SC_CLK_TCK')
# A message as agents write them.
BODY = json.dumps({'thread': 'a-thread-of-20-digits', 'parent': '', 'agent': 'bench', 'mentions': [], 'links': [],
                   'body': 'What I found when I ran the tests on my machine, in two lines of plain text. ' * 2})

NGINX = '''daemon off; worker_processes auto; worker_rlimit_nofile 20000; pid {home}/nginx.pid; error_log {home}/errors;
events {{ worker_connections 8192; }}
http {{
  access_log off; default_type application/json; sendfile on; tcp_nodelay on;
  keepalive_requests 1000000000; keepalive_timeout 600s;
  client_body_temp_path {home}/body; proxy_temp_path {home}/proxy; fastcgi_temp_path {home}/fastcgi;
  uwsgi_temp_path {home}/uwsgi; scgi_temp_path {home}/scgi;
  {more}
}}
'''
PASS = '''include {home}/servers.conf;
  server {{
    listen {address};
    location / {{
      proxy_pass http://playfs; proxy_http_version 1.1; proxy_set_header Connection "";
      proxy_set_header Host $http_host; proxy_set_header X-Forwarded-For $remote_addr;
    }}
  }}'''


def family(pid):
    """The process, and those that it has started."""
    pids = [pid]
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it has just ended
        for task in pathlib.Path(f'/proc/{pid}/task').iterdir():
            for child in (task / 'children').read_text(encoding='ascii').split():
                pids += family(int(child))
    return pids


def spent(pids):
    """Seconds of user and system time of these processes and all that they have started, also of those that ended."""
    user = system = 0
    for pid in (each for root in pids for each in family(root)):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # its parent has its times now
            words = pathlib.Path(f'/proc/{pid}/stat').read_text(encoding='ascii').rsplit(')', 1)[1].split()
            user, system = user + int(words[11]) + int(words[13]), system + int(words[12]) + int(words[14])
    return user / TICKS, system / TICKS


def resident(pid):
    """Bytes, of all of them; pages that they share count once for each."""
    total = 0
    for member in family(pid):
        with open(f'/proc/{member}/status', encoding='ascii') as status:
            total += next(int(line.split()[1]) * 1024 for line in status if line.startswith('VmRSS:'))
    return total


class Server:
    def __init__(self, world, store, *options):
        self.address = f'127.0.0.1:{free_port()}'
        self.url = f'http://{self.address}'
        self.process = world.start(world.playfs, 'serve', '--listen', self.address, '--store', store, '--limits', 'off',
                                   '--proxy', '127.0.0.1', *options, env=world.environment(world.new_folder('home')))
        self.pid = self.process.pid
        self.process.until(self.is_ready, f'{self.url} is ready')

    def is_ready(self):
        with contextlib.suppress(OSError), urllib.request.urlopen(f'{self.url}/healthz/ready') as answer:
            return answer.status == 200
        return False


class Nginx:
    """Over servers, by the upstream block that is shipped; or with `more` configuration of its own."""

    def __init__(self, world, servers, more=PASS):
        home = world.new_folder('nginx')
        for folder in (world.folder, home):
            folder.chmod(0o755)  # nginx's workers are another user
        self.address, self.home = f'127.0.0.1:{free_port()}', home
        self.url = f'http://{self.address}'
        shipped = (ROOT / 'tools/nginx/playfs-servers.conf').read_text(encoding='utf-8')
        line = next(line for line in shipped.splitlines() if '127.0.0.1:8787 ' in line)
        lines = '\n'.join(line.replace('127.0.0.1:8787', server.address) for server in servers)
        second = next(line for line in shipped.splitlines() if '127.0.0.1:8788 ' in line)
        (home / 'servers.conf').write_text(shipped.replace(line, lines).replace(second, ''), encoding='utf-8')
        (home / 'nginx.conf').write_text(NGINX.format(home=home, more=more.format(home=home, address=self.address)),
                                         encoding='utf-8')
        self.process = world.start('nginx', '-e', home / 'errors', '-c', home / 'nginx.conf')
        self.pid = self.process.pid
        self.process.until(lambda: answers(int(self.address.rpartition(':')[2])), f'{self.url} answers')


def durable_cluster():
    """PostgreSQL as Debian sets it up, but for memory; the caller removes it."""
    return postgres.Cluster(('fsync = on', 'max_connections = 200', 'shared_buffers = 256MB'))


def measured(parts, run):
    """Calls `run`, which returns a document with the number of `requests`; adds the rate, and by part the microseconds
    of user and system time that a request took. `parts`: processes by name; the client is the child that `run` starts."""
    before = {name: spent(pids) for name, pids in parts.items()}
    own = resource.getrusage(resource.RUSAGE_CHILDREN)
    found = run()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    took = {name: [now - then for now, then in zip(spent(parts[name]), before[name])] for name in parts}
    took['client'] = [after.ru_utime - own.ru_utime, after.ru_stime - own.ru_stime]
    found['rate'] = found['requests'] / found['seconds']
    found['cpu'] = took
    found['cpu_us'] = {name: [part / found['requests'] * 1e6 for part in both] for name, both in took.items()}
    return found


def wrk(world, addresses, seconds, kind, connections=CONNECTIONS, path=None, paths=None, keys=True, pause=''):
    """One run of wrk; `paths`: a file of what to GET; `path`: where to POST; `pause` in ms, of each connection."""
    environment = {**os.environ, 'LOAD_ADDRESSES': ' '.join(addresses), 'LOAD_KIND': kind, 'LOAD_BODY': BODY,
                   'LOAD_PATHS': str(paths), 'LOAD_PATH': path or '', 'LOAD_PAUSE': str(pause),
                   'LOAD_KEY': secrets.token_hex(8) if keys else ''}
    threads = min(len(addresses), connections)
    said = world.run('wrk', f'-t{threads}', f'-c{connections}', f'-d{seconds}s', '-s', HERE / 'requests.lua',
                     f'http://{addresses[0]}', env=environment, timeout=seconds + 120)
    found = json.loads(said.strip().splitlines()[-1])
    if found['errors'] or not found['requests']:
        raise RuntimeError(f'{addresses} {kind}: {said}')
    return found
