#!/usr/bin/env python3
"""Peers at TCP port 0, which only raw packets have: the kernel takes their connections, and accept() returns an error
for each. `playfs serve` answers everybody else meanwhile.

Runs in a network namespace of its own, with a TUN device as the network of the peers."""
import ctypes
import fcntl
import http.client
import os
import pathlib
import select
import socket
import struct
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / 'conformance'))

import fixture  # noqa: E402
from serve_fixture import Server, ServeTest  # noqa: E402

CLONE_NEWNET = 0x40000000
TUNSETIFF, SIOCSIFADDR, SIOCSIFNETMASK, SIOCSIFFLAGS = 0x400454ca, 0x8916, 0x891c, 0x8914
IFF_UP, IFF_TUN, IFF_NO_PI = 0x1, 0x1, 0x1000
SYN, ACK = 0x02, 0x10
NETWORK, HERE_ADDRESS, PORT = '10.9.0.', '10.9.0.1', 8000
ROUNDS = 100


def checksum(data):
    data += b'\0' * (len(data) % 2)
    total = sum(struct.unpack(f'!{len(data) // 2}H', data))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff


class Peers:
    """All the other machines of the network, as one descriptor."""

    def __init__(self, name=b'peers'):
        self.fd = os.open('/dev/net/tun', os.O_RDWR)
        fcntl.ioctl(self.fd, TUNSETIFF, struct.pack('16sH', name, IFF_TUN | IFF_NO_PI))
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
            for request, address in (SIOCSIFADDR, HERE_ADDRESS), (SIOCSIFNETMASK, '255.255.255.0'):
                fcntl.ioctl(any_socket, request, struct.pack('16sHH4s8x', name, socket.AF_INET, 0,
                                                             socket.inet_aton(address)))
            for device in name, b'lo':
                fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack('16sH14x', device, IFF_UP))

    def send(self, source, port, sequence, acknowledged, flags):
        ends = socket.inet_aton(source) + socket.inet_aton(HERE_ADDRESS)
        parts = [port, PORT, sequence, acknowledged, 5 << 4, flags, 65535, 0, 0]
        parts[7] = checksum(ends + struct.pack('!BBH', 0, socket.IPPROTO_TCP, 20) + struct.pack('!HHIIBBHHH', *parts))
        head = [0x45, 0, 40, 1, 0, 64, socket.IPPROTO_TCP, 0]
        head[7] = checksum(struct.pack('!BBHHHBBH', *head) + ends)
        os.write(self.fd, struct.pack('!BBHHHBBH', *head) + ends + struct.pack('!HHIIBBHHH', *parts))

    def half_connect(self, source, port):
        """Sends SYN; returns the function that sends the ACK with which the connection is there."""
        self.send(source, port, 1000, 0, SYN)
        end = time.monotonic() + fixture.COMMAND_LIMIT
        while time.monotonic() < end:
            if not select.select([self.fd], [], [], 1)[0]:
                continue
            packet = os.read(self.fd, 65536)
            if packet[0] >> 4 != 4 or packet[9] != socket.IPPROTO_TCP:
                continue
            _, to, sequence, _ = struct.unpack('!HHII', packet[20:32])
            if to == port and packet[33] & (SYN | ACK) == SYN | ACK:
                return lambda: self.send(source, port, 1001, sequence + 1, ACK)
        raise AssertionError(f'no answer for {source} port {port}')


class ServerOfNetwork(Server):
    def start(self):
        self.address = f'{HERE_ADDRESS}:{PORT}'
        self.url = f'http://{self.address}'
        super().start()


class Aborted(ServeTest):
    def setUp(self):
        super().setUp()
        if os.geteuid() != 0 or ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNET) != 0:
            self.skipTest('needs root and a network namespace')
        try:
            self.peers = Peers()
        except OSError as error:
            self.skipTest(f'needs a TUN device: {error}')
        self.addCleanup(os.close, self.peers.fd)

    def test_a_peer_that_cannot_be_accepted_keeps_nobody_waiting(self):
        server = ServerOfNetwork(self, '--limits', 'off')
        honest = server.connect()
        for number in range(ROUNDS):
            last = 2 + number % 250
            ready = [self.peers.half_connect(NETWORK + str(last), 5000 + 4 * number + each) for each in range(4)]
            ready.append(self.peers.half_connect(NETWORK + str(last), 0))
            for connect in ready:  # back to back, so that one burst accepts them all
                connect()
            try:
                self.assertEqual(server.send('GET', '/projects', connection=honest)[0], 200)
            except (OSError, http.client.HTTPException) as error:
                self.fail(f'round {number}: {error!r}')
        self.assertEqual(server.stop(), 0)


if __name__ == '__main__':
    fixture.main()
