"""Drives headless Chromium through chromedriver and the WebDriver protocol, with only the standard library."""
import base64
import json
import pathlib
import re
import shutil
import subprocess
import tempfile
import threading
import urllib.error
import urllib.request

CHROMIUM, DRIVER = shutil.which('chromium'), shutil.which('chromedriver')
AVAILABLE = bool(CHROMIUM and DRIVER)
LIMIT = 180  # seconds for one command; a browser may take long to start on a busy machine
ELEMENT = 'element-6066-11e4-a52e-4f735466cecf'
# Only the page under test may be loaded, and no other host contacted.
FLAGS = ['--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--hide-scrollbars',
         '--disable-background-networking', '--disable-component-update', '--disable-sync', '--force-color-profile=srgb']


class Browser:
    """One browser window. Use as a context manager."""

    def __init__(self):
        self.profile = tempfile.mkdtemp(prefix='playfs-browser-')
        self.driver = subprocess.Popen([DRIVER, '--port=0'], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                       stderr=subprocess.DEVNULL, text=True)
        self.session = None
        try:
            self.base = f'http://127.0.0.1:{self._port()}'
            self.session = self._call('POST', '/session', {'capabilities': {'alwaysMatch': {
                'browserName': 'chrome',
                'goog:loggingPrefs': {'browser': 'ALL'},
                'goog:chromeOptions': {'binary': CHROMIUM, 'args': [*FLAGS, f'--user-data-dir={self.profile}']},
            }}})['sessionId']
        except BaseException:
            self.close()
            raise

    def _port(self):
        # The driver prints its port, and then keeps printing, so its output must be drained.
        for line in self.driver.stdout:
            if match := re.search(r'started successfully on port (\d+)', line):
                threading.Thread(target=self.driver.stdout.read, daemon=True).start()
                return match[1]
        raise RuntimeError('chromedriver did not start')

    def close(self):
        if self.session:
            self._call('DELETE', f'/session/{self.session}')
        self.driver.terminate()
        self.driver.wait(LIMIT)
        self.driver.stdout.close()
        shutil.rmtree(self.profile, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _call(self, method, path, body=None):
        data = json.dumps(body or {}).encode() if method == 'POST' else None
        request = urllib.request.Request(self.base + path, data, method=method,
                                         headers={'Content-Type': 'application/json'})
        try:
            with urllib.request.urlopen(request, timeout=LIMIT) as answer:
                return json.load(answer)['value']
        except urllib.error.HTTPError as refusal:
            raise RuntimeError(f'{method} {path}: {refusal.read().decode()[:500]}') from None

    def _post(self, path, **body):
        return self._call('POST', f'/session/{self.session}{path}', body)

    def develop(self, command, **parameters):
        """Sends a command of the Chrome DevTools Protocol."""
        return self._post('/goog/cdp/execute', cmd=command, params=parameters)

    def show(self, width, dark=False, height=900):
        """Sets the size of the window and the preferred colour scheme."""
        self.develop('Emulation.setDeviceMetricsOverride', width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.develop('Emulation.setEmulatedMedia',
                     features=[{'name': 'prefers-color-scheme', 'value': 'dark' if dark else 'light'}])

    def open(self, url):
        self._post('/url', url=url)

    def evaluate(self, script, *arguments):
        """Runs a script in the page, exempt from the page's policy. It must return a JSON value."""
        return self._post('/execute/sync', script=script, args=list(arguments))

    def press(self, key):
        """Presses one key, for the focused element."""
        actions = [{'type': kind, 'value': key} for kind in ('keyDown', 'keyUp')]
        self._post('/actions', actions=[{'type': 'key', 'id': 'keyboard', 'actions': actions}])

    def click(self, selector):
        element = self._post('/element', using='css selector', value=selector)[ELEMENT]
        self._post(f'/element/{element}/click')

    def url(self):
        return self._call('GET', f'/session/{self.session}/url')

    def console(self):
        """The browser's messages since the last call: errors, refused loads, policy violations."""
        return [entry['message'] for entry in self._post('/se/log', type='browser')]

    def screenshot(self, path):
        """Saves a picture of the whole page, whatever its height."""
        picture = self.develop('Page.captureScreenshot', captureBeyondViewport=True)['data']
        pathlib.Path(path).write_bytes(base64.b64decode(picture))
