"""`playfs serve` that may be killed."""
import math
import subprocess
import time

import fixture


class Service:
    """One store and one address, which outlive the processes that serve them."""

    def __init__(self, test, store='store', options=()):
        self.test, self.port, self.options = test, fixture.free_port(), options
        self.store = test.home / store
        self.url, self.process, self.times = f'http://127.0.0.1:{self.port}', None, []
        self.log = open(test.home / f'{store}.log', 'w', encoding='utf-8')
        test.addCleanup(self.end)
        self.start()

    def start(self):
        self.process = subprocess.Popen(
            [self.test.playfs_path, 'serve', '--listen', f'127.0.0.1:{self.port}', '--store', str(self.store),
             '--limits', 'off', *self.options], env=self.test.environment('server'), stdin=subprocess.DEVNULL,
            stdout=self.log, stderr=self.log)

        def answers():
            try:
                return fixture.Api(self.url).request('GET', '/projects')[0] == 200
            except OSError:
                return False

        self.test.eventually(answers, 'the service answers')
        if self.times:
            self.times[-1][1] = time.monotonic()

    def kill(self):
        self.times.append([time.monotonic(), math.inf])
        self.process.kill()
        self.process.wait()

    def end(self):
        if self.process.poll() is None:
            self.process.terminate()
            self.process.wait(fixture.COMMAND_LIMIT)
        self.log.close()
