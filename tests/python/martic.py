"""Reconstructs the capture of the study `martic-2013`, with the packets of its figures and tables.

Figure 4 has packets and bytes of 22 sessions, figure 6 has one session with all times. The rest is
made up so that the totals of figure 1, the lengths of figure 3 and the classes of table 1 are those
published.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import cycle

PACKETS, BYTES, BYTES_PER_S = 4453, 2_397_076, 293_421.125

LENGTHS = {40: 2416, 80: 84, 160: 166, 320: 354, 640: 245, 1280: 1188}
"""Figure 3: the number of packets in each length class. A class from n ends at 2n - 1."""

CLASSES = {"small": 133, "medium": 38, "large": 6}

SESSIONS = [
    # Figure 4: client port, server, server port, packets to and from the server, bytes to and from
    # it.
    (48645, "91.222.6.81", 80, 73, 128, 5153, 183767),
    (39045, "193.105.163.216", 443, 68, 134, 12898, 147880),
    (47314, "193.105.163.238", 443, 45, 109, 3645, 129355),
    (48691, "91.222.6.81", 80, 36, 78, 2706, 109254),
    (53793, "87.237.206.246", 80, 64, 75, 7149, 101082),
    (48736, "91.222.6.81", 80, 51, 73, 3697, 100837),
    (36145, "87.237.206.245", 80, 23, 38, 3433, 48707),
    (48681, "91.222.6.81", 80, 27, 28, 2114, 34576),
    (1320, "91.222.6.81", 80, 21, 26, 1724, 32321),
    (56498, "77.105.37.90", 80, 22, 27, 4541, 31733),
    (38164, "91.245.214.25", 80, 21, 24, 2400, 31310),
    (48750, "91.222.6.81", 80, 20, 24, 1663, 31016),
    (47295, "195.168.10.173", 80, 21, 24, 2433, 30023),
    (47297, "195.168.10.173", 80, 21, 24, 2433, 29244),
    (47296, "195.168.10.173", 80, 19, 24, 2301, 28947),
    (48620, "91.222.6.81", 80, 19, 22, 1575, 28940),
    (56499, "77.105.37.90", 80, 23, 22, 3691, 27524),
    (44108, "213.239.227.112", 80, 20, 21, 1740, 26445),
    (48677, "91.222.6.81", 80, 22, 22, 1803, 26332),
    (50008, "31.13.81.17", 80, 25, 25, 2972, 26063),
    (57522, "91.222.6.80", 80, 17, 19, 1623, 24063),
    (56487, "77.105.37.90", 80, 18, 20, 3820, 23853),
]

TALK = [
    # Figure 6: time, length, whether the server sent it.
    (0.321062, 74, 0), (0.327182, 64, 1), (0.327892, 54, 0),
    (0.328834, 632, 0), (0.335182, 728, 1), (0.335237, 54, 0),
    (0.387657, 632, 0), (0.396531, 724, 1), (0.396573, 54, 0),
    (0.418457, 636, 0), (0.428579, 724, 1), (0.467445, 54, 0),
    (0.661647, 636, 0), (0.662883, 724, 1), (0.662925, 54, 0),
    (0.729993, 636, 0), (0.745213, 724, 1), (0.745258, 54, 0),
    (0.771586, 636, 0), (0.781946, 724, 1),
    (0.796278, 636, 0), (0.815228, 724, 1), (0.851582, 54, 0),
    (0.938834, 636, 0), (0.958263, 724, 1), (0.958288, 54, 0),
]  # fmt: skip
TALK_PORT, TALK_SERVER = 37686, "91.222.6.99"

CLIENT = "192.168.0.12"
SYN, PUSH, ACK = 2, 8, 16
HEADERS, FULL = 54, 1514


@dataclass
class Session:
    """The frame lengths of a session, of the client and of the server."""

    port: int
    server: str
    server_port: int
    lengths: tuple[list[int], list[int]]


def lengths(packets: int, total: int) -> list[int]:
    """This many frames with this many bytes: headers only, full frames, and one in between."""
    full, rest = divmod(total - HEADERS * packets, FULL - HEADERS)
    small = packets - full - 1
    assert small >= 1, "the first is a SYN"
    return [HEADERS] * small + [FULL] * full + [HEADERS + rest]


def class_of(length: int) -> int:
    return max(first for first in LENGTHS if first <= length)


def filled() -> list[Session]:
    """All sessions except that of figure 6."""
    made = [
        Session(port, server, server_port, (lengths(ahead, to), lengths(back, from_)))
        for port, server, server_port, ahead, back, to, from_ in SESSIONS
    ]
    left = Counter(LENGTHS)
    for one in made:
        left.subtract(Counter(map(class_of, one.lengths[0] + one.lengths[1])))
    left.subtract(Counter(class_of(length) for _, length, _ in TALK))
    used = sum(sum(one.lengths[0]) + sum(one.lengths[1]) for one in made)
    used += sum(length for _, length, _ in TALK)
    medium, small = CLASSES["medium"] - 16, CLASSES["small"] - 1
    rest = [
        Session(20_000 + n, f"10.1.{n // 200}.{n % 200 + 1}", 80, ([HEADERS], [HEADERS]))
        for n in range(medium + small)
    ]
    left[40] -= 2 * len(rest)
    free = [first for first in LENGTHS for _ in range(left[first])]
    assert min(left.values()) >= 0
    # The least length in each class, and the bytes to add for the right total.
    sizes = [max(first, HEADERS) for first in free]
    more = BYTES - used - 2 * HEADERS * len(rest) - sum(sizes)
    for n, first in enumerate(free):
        grow = min(max(more, 0), min(2 * first - 1, FULL) - sizes[n])
        sizes[n] += grow
        more -= grow
    assert more == 0
    # Full frames go to the medium sessions, all others to the small ones, in turn.
    big = cycle(rest[:medium])
    other = cycle(rest[medium:])
    for number, length in enumerate(sizes):
        if length >= 1280:
            next(big).lengths[1].append(length)
        else:
            next(other).lengths[number % 2].append(length)
    return made + rest


def capture() -> bytes:
    """The capture file, with times in nanoseconds."""
    last = round(BYTES / BYTES_PER_S * 1e9)
    frames: list[tuple[int, int, bytes]] = []
    for number, one in enumerate(filled()):
        begin, end = 1_000_000 * number, last - 1_000_000 * number
        frames += laid_out(one, begin, end, number)
    talk = Session(TALK_PORT, TALK_SERVER, 80, ([], []))
    frames += said(talk, [(round(at * 1e9), length, back) for at, length, back in TALK], 200)
    frames.sort()
    assert frames[0][0] == 0
    assert frames[-1][0] == last
    head = struct.pack("<IHHIIII", 0xA1B23C4D, 2, 4, 0, 0, 65535, 1)
    return head + b"".join(frame for _, _, frame in frames)


def laid_out(one: Session, begin: int, end: int, number: int) -> Iterator[tuple[int, int, bytes]]:
    """A session with evenly spaced packets: the handshake, then both sides in turn."""
    client, server = (iter(side) for side in one.lengths)
    order = [(next(client), 0), (next(server), 1)]
    both = len(one.lengths[0]) + len(one.lengths[1])
    while len(order) < both:
        for lengths_, side in ((client, 0), (server, 1)):
            order += [(length, side) for length in [next(lengths_, None)] if length is not None]
    step = (end - begin) // (len(order) - 1)
    times = [begin + step * n for n in range(len(order) - 1)] + [end]
    return said(
        one, [(at, length, side) for at, (length, side) in zip(times, order, strict=True)], number
    )


def said(
    one: Session, packets: list[tuple[int, int, int]], number: int
) -> Iterator[tuple[int, int, bytes]]:
    """Ethernet frames in order, each with its time."""
    ends = [(CLIENT, one.port), (one.server, one.server_port)]
    next_ = [0, 0]
    has_syn = [False, False]
    for at, length, side in packets:
        me, other = ends[side], ends[1 - side]
        is_syn = not has_syn[side]
        # SYN options in 32-bit words; the remaining bytes are an Ethernet trailer.
        options = (length - HEADERS) // 4 * 4 if is_syn else 0
        payload = 0 if is_syn else length - HEADERS
        flags = (SYN if is_syn else PUSH if payload else 0) | (ACK if has_syn[1 - side] else 0)
        ip = struct.pack(
            "!BBHHHBBH4s4s",
            *(0x45, 0, 40 + options + payload, 0, 0x4000, 64, 6, 0),
            *(bytes(map(int, address.split("."))) for address in (me[0], other[0])),
        )
        tcp = struct.pack(
            "!HHIIBBHHH",
            *(me[1], other[1], next_[side], next_[1 - side]),
            *((5 + options // 4) << 4, flags, 60_000, 0, 0),
        )
        next_[side] += payload + is_syn
        has_syn[side] = True
        frame = bytes(12) + b"\x08\x00" + ip + tcp + b"\x01" * options
        kept = struct.pack("<IIII", at // 10**9, at % 10**9, len(frame), length)
        yield at, number, kept + frame
