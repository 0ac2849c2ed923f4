"""Relays connections to an address and records the time of the first one: measurements omit a client's start."""

import socket
import threading
import time


class Relay:
    """Listens on a free loopback port until it is closed."""

    def __init__(self, target):
        host, port = target.removeprefix("http://").split(":")
        self.target, self.first, self.socket = (host, int(port)), None, socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.socket.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def since_first(self):
        """Seconds since the first bytes of a client; None without any."""
        return None if self.first is None else time.monotonic() - self.first

    def _accept(self):
        while True:
            try:
                client = self.socket.accept()[0]
            except OSError:
                return
            gateway = socket.create_connection(self.target)
            for pair in ((client, gateway), (gateway, client)):
                threading.Thread(target=self._copy, args=pair, daemon=True).start()

    def _copy(self, source, target):
        try:
            while data := source.recv(65536):
                self.first = self.first or time.monotonic()
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)
        except OSError:
            pass
