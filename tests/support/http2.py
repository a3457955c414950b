"""TLS and HTTP/2 in front of a proxy, by nginx."""
import os
import shutil
import socket
import subprocess

import fixture

CONFIGURATION = '''
daemon off; {user} pid {folder}/pid; error_log {folder}/errors; worker_processes 1;
events {{ worker_connections 4096; }}
http {{
  access_log off; client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
  server {{
    listen 127.0.0.1:{port} ssl http2; http2_max_concurrent_streams {streams};
    ssl_certificate {certificate}; ssl_certificate_key {key};
    location / {{
      proxy_pass {behind}; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_set_header Host $http_host;
      proxy_read_timeout 300s;
    }}
  }}
}}
'''


class Front:
    @staticmethod
    def is_there():
        return bool(shutil.which('nginx') and shutil.which('openssl'))

    def __init__(self, test):
        self.test, self.count = test, 0
        self.key, self.certificate = test.home / 'key.pem', test.home / 'certificate.pem'
        test.command('openssl', 'req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes',
                     '-keyout', self.key, '-out', self.certificate, '-subj', '/CN=localhost',
                     '-addext', 'subjectAltName=IP:127.0.0.1')

    def before(self, url, streams=512):
        """Puts nginx in front of `url`, with `streams` streams per connection: its address, and the mount options that
        it needs."""
        self.count += 1
        folder, port = self.test.home / f'nginx{self.count}', fixture.free_port()
        folder.mkdir()
        (folder / 'conf').write_text(CONFIGURATION.format(
            user='user root;' if os.geteuid() == 0 else '', folder=folder, port=port, certificate=self.certificate,
            key=self.key, behind=url, streams=streams))
        process = subprocess.Popen(['nginx', '-c', str(folder / 'conf'), '-p', str(folder)], stdin=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)
        self.test.addCleanup(process.wait)
        self.test.addCleanup(process.terminate)

        def listens():
            with socket.socket() as probe:
                return probe.connect_ex(('127.0.0.1', port)) == 0

        self.test.eventually(listens, 'nginx listens')
        return f'https://127.0.0.1:{port}', [f'cafile={self.certificate}']
