"""Sends data to whoever connects, and prints what the kernel says of the connection meanwhile.

    python3 sender.py PORT '[[BYTES, PAUSE], ...]'

It sends each of these numbers of bytes and pauses for so many seconds behind it. What it prints is
JSON: the state of the socket at each millisecond (`tcp_info`), and the counters of its host.
"""

import itertools
import json
import socket
import struct
import sys
import threading
import time
from pathlib import Path

EVERY_S = 0.001

CLOSED = 7
"""`TCP_CLOSE`"""

COLUMNS = ["time_s", "state", "congestion_state", "unacked", "notsent", "acked", "rwnd_limited_us"]


def state(sock):
    """What `struct tcp_info` of include/uapi/linux/tcp.h has for these columns."""
    raw = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
    (unacked,) = struct.unpack_from("<I", raw, 24)
    (acked,) = struct.unpack_from("<Q", raw, 120)
    (notsent,) = struct.unpack_from("<I", raw, 144)
    (rwnd_limited,) = struct.unpack_from("<Q", raw, 176)
    return [time.monotonic(), raw[0], raw[1], unacked, notsent, acked, rwnd_limited]


def counters():
    """The kernel's counters, by name."""
    found = {}
    for file in ("/proc/net/netstat", "/proc/net/snmp"):
        with Path(file).open() as lines:
            for names, values in itertools.pairwise(lines):
                if names.split()[0] == values.split()[0]:
                    pairs = zip(names.split()[1:], values.split()[1:], strict=True)
                    found |= {name: int(value) for name, value in pairs}
    return found


def main():
    """Serves one connection."""
    port, parts = int(sys.argv[1]), json.loads(sys.argv[2])
    listener = socket.socket()
    listener.bind(("", port))
    listener.listen()
    sock, _ = listener.accept()
    rows = []
    is_over = threading.Event()

    def watch():
        while not is_over.is_set():
            rows.append(state(sock))
            if rows[-1][1] == CLOSED:
                return
            time.sleep(EVERY_S)

    watcher = threading.Thread(target=watch)
    watcher.start()
    for size, pause in parts:
        sock.sendall(bytes(size))
        time.sleep(pause)
    sock.shutdown(socket.SHUT_WR)
    while sock.recv(65536):
        pass
    time.sleep(0.01)
    is_over.set()
    watcher.join()
    print(json.dumps({"columns": COLUMNS, "rows": rows, "counters": counters()}))


main()
