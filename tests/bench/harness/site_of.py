"""The service as it is run in earnest: `playfs serve` behind nginx, with TLS and HTTP/2, and a link that takes its time."""
import concurrent.futures
import dataclasses
import http.client
import json
import subprocess

from world import Api, answers, free_port

NGINX = '''
daemon off; pid {folder}/nginx.pid; error_log {folder}/error.log; worker_processes 1;
events {{ worker_connections 4096; }}
http {{
  log_format counted escape=json '{{"at":$msec,"took":$request_time,"method":"$request_method","uri":"$request_uri",'
    '"status":$status,"bytes":$body_bytes_sent,"port":$server_port,"protocol":"$server_protocol","connection":$connection}}';
  access_log {folder}/access.log counted;
  client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
  upstream playground {{ server 127.0.0.1:{service}; keepalive 64; }}
  gzip {gzip}; gzip_types application/json; gzip_min_length 256; gzip_proxied any;
  keepalive_requests 1000000; http2_max_concurrent_streams 512;
  server {{
    listen 127.0.0.1:{tls} ssl http2;
    listen 127.0.0.1:{plain};
    ssl_protocols TLSv1.2 TLSv1.3; ssl_certificate {folder}/server.pem; ssl_certificate_key {folder}/server.key;
    location / {{
      proxy_pass http://playground; proxy_http_version 1.1; proxy_set_header Connection "";
      proxy_set_header Host $http_host;
    }}
  }}
}}
'''


@dataclasses.dataclass
class Request:
    at: float        # when it arrived at nginx, seconds
    end: float
    method: str
    uri: str
    status: int
    bytes: int
    protocol: str
    connection: int


class Site:
    """`direct` is the service itself; `tls` and `plain` are the ports of nginx, all on loopback."""

    def __init__(self, world, gzip=False):
        self.world = world
        self.service = free_port()
        self.direct = f'http://127.0.0.1:{self.service}'
        self.store = world.new_folder('store')
        self.server = world.start(world.playfs, 'serve', '--listen', f'127.0.0.1:{self.service}', '--store', self.store,
                                  '--limits', 'off', env=world.environment(world.folder / 'server'))
        self.server.until(lambda: answers(self.service), 'the service answers')
        self.api = Api(self.direct)
        self.folder = world.new_folder('nginx')
        self.cafile = self.folder / 'ca.pem'
        self._make_certificates()
        self.tls, self.plain = free_port(), free_port()
        config = self.folder / 'nginx.conf'
        config.write_text(NGINX.format(folder=self.folder, service=self.service, tls=self.tls, plain=self.plain,
                                       gzip='on' if gzip else 'off'))
        nginx = world.start('nginx', '-c', config, '-p', self.folder)
        nginx.until(lambda: answers(self.tls) and answers(self.plain), 'nginx answers')

    def _make_certificates(self):
        """A certificate authority for this run alone, and nginx's certificate by it."""
        def openssl(*words):
            subprocess.run(['openssl', *map(str, words)], check=True, capture_output=True)
        folder = self.folder
        key = ('-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes')
        openssl('req', '-x509', *key, '-keyout', folder / 'ca.key', '-out', self.cafile, '-days', 2,
                '-subj', '/CN=playfs benchmark')
        openssl('req', *key, '-keyout', folder / 'server.key', '-out', folder / 'server.csr', '-subj', '/CN=localhost')
        (folder / 'names').write_text('subjectAltName=IP:127.0.0.1,DNS:localhost\n')
        openssl('x509', '-req', '-in', folder / 'server.csr', '-CA', self.cafile, '-CAkey', folder / 'ca.key',
                '-CAcreateserial', '-days', 2, '-extfile', folder / 'names', '-out', folder / 'server.pem')

    def link(self, port, round_trip, slow_start=False):
        """The port of a link to `port` that takes `round_trip` ms to and fro."""
        return delayed(self.world, port, round_trip, slow_start)

    def mark(self):
        """Where the access log ends now, for requests_since()."""
        log = self.folder / 'access.log'
        return log.stat().st_size if log.exists() else 0

    def requests_since(self, mark):
        with open(self.folder / 'access.log', encoding='utf-8') as log:
            log.seek(mark)
            lines = [json.loads(line) for line in log]
        # nginx stamps the end; the start is that less what it took.
        return sorted((Request(line['at'] - line['took'], line['at'], line['method'], line['uri'], line['status'],
                               line['bytes'], line['protocol'], line['connection']) for line in lines),
                      key=lambda request: request.at)


def delayed(world, port, round_trip, slow_start=False):
    own = free_port()
    process = world.start(world.driver('delay'), own, port, round_trip, *(['slow-start'] if slow_start else []))
    process.until(lambda: answers(own), 'the link answers')
    return own


def round_trips(requests, round_trip):
    """How many requests had to wait for one before: gaps between arrivals of nearly a round trip or more."""
    return sum(1 for before, after in zip(requests, requests[1:]) if after.at - before.at > 0.8 * round_trip) + bool(requests)


def plan_of_reading(api, url, project):
    """The requests that no client of this protocol can do without, by stage: project, revision, all chunks."""
    base = url + '/.site/data'
    record = api.record('projects', project)
    revision = api.record('revisions', record['latest_revision'])
    chunks = {chunk for entry in revision['manifest']['files'].values() for chunk in entry.get('c', ())}
    lines = [f'1 {base}/projects/{project}', f'2 {base}/revisions/{revision["id"]}']
    return '\n'.join(lines + [f'3 {base}/file_chunks/{chunk}' for chunk in sorted(chunks)]) + '\n', len(chunks)


class Writer:
    """One connection that stays open: for filling a site."""

    def __init__(self, site):
        self.origin = site.direct
        self.connection = http.client.HTTPConnection('127.0.0.1', site.service, timeout=60)

    def send(self, method, path, body):
        self.connection.request(method, '/.site/data' + path, json.dumps(body),
                                {'Content-Type': 'application/json', 'Origin': self.origin})
        answer = self.connection.getresponse()
        text = answer.read()
        if answer.status != 200:
            raise RuntimeError(f'{method} {path}: {answer.status} {text[:300]}')
        return json.loads(text)


def post(site, collection, body):
    """The new record's id."""
    return Writer(site).send('POST', f'/{collection}', body)['record']['id']


def patch(site, collection, record, body):
    Writer(site).send('PATCH', f'/{collection}/{record}', body)


def post_many(site, collection, bodies, connections=8):
    def fill(part):
        writer = Writer(site)
        for body in part:
            writer.send('POST', f'/{collection}', body)
    with concurrent.futures.ThreadPoolExecutor(connections) as pool:
        list(pool.map(fill, [bodies[i::connections] for i in range(connections)]))


def post_chain(site, project, count):
    """Publishes as many revisions, each on the one before."""
    writer = Writer(site)
    head = site.api.record('projects', project).get('latest_revision')
    for i in range(count):
        head = writer.send('POST', '/revisions', {
            'project': project, 'parents': [head] if head else [], 'agent': 'bench', 'message': f'revision {i}',
            'manifest': {'files': {'file': {'inline': f'{head}\n'}}}, 'state': {}})['record']['id']
    writer.send('PATCH', f'/projects/{project}', {'latest_revision': head})
