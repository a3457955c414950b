"""A TCP proxy that holds back what clients send: a service that takes its time."""
import socket
import threading


class SlowProxy:
    """Listens on `url` and passes everything on to 127.0.0.1:port; requests arrive `delay` seconds late."""

    def __init__(self, port):
        self.delay = 0.0
        self._port = port
        self._over = threading.Event()
        self._listener = socket.create_server(('127.0.0.1', 0))
        self.url = 'http://127.0.0.1:%d' % self._listener.getsockname()[1]
        self._sockets = [self._listener]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self):
        self._over.set()
        for each in self._sockets:
            try:
                each.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass  # closed by the other side already
            each.close()

    def _accept(self):
        while not self._over.is_set():
            try:
                client, _ = self._listener.accept()
                server = socket.create_connection(('127.0.0.1', self._port))
            except OSError:
                return
            self._sockets += [client, server]
            threading.Thread(target=self._pass, args=(client, server, True), daemon=True).start()
            threading.Thread(target=self._pass, args=(server, client, False), daemon=True).start()

    def _pass(self, source, target, late):
        try:
            while data := source.recv(65536):
                if late and self._over.wait(self.delay):
                    return
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # either side went away, and with it this connection
