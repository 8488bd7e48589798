"""Reads what it is sent, at a pace of its own.

    python3 receiver.py HOST PORT BYTES PAUSE

It reads so many bytes at most in a call, and waits for so many seconds behind it.
"""

import socket
import sys
import time

host, port, size, pause = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])
sock = socket.socket()
if pause:
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
sock.connect((host, port))
while sock.recv(size):
    time.sleep(pause)
sock.close()
