// SPDX-License-Identifier: MIT OR Apache-2.0
//
// @TITLE@
//
// Sets options of TCP connections by the address of the peer, for all programs of a cgroup (a BPF
// program of type sock_ops). load.sh compiles and attaches it.

#include <linux/bpf.h>

#define INLINE static inline __attribute__((always_inline, unused))

// Converts to network byte order, the order of addresses.
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define NET(number) __builtin_bswap32(number)
#else
#define NET(number) (number)
#endif

// From the headers of the C library, which a BPF program cannot include. SOL_SOCKET and its options
// have other numbers on alpha, mips, parisc and sparc.
enum { IPV4 = 2, IPV6 = 10 };
enum { SOL_SOCKET = 1, SOL_TCP = 6 };
enum { SO_SNDBUF = 7, SO_RCVBUF = 8, SO_MAX_PACING_RATE = 47 };
enum {
    TCP_NODELAY = 1,
    TCP_WINDOW_CLAMP = 10,
    TCP_CONGESTION = 13,
    TCP_USER_TIMEOUT = 18,
    TCP_NOTSENT_LOWAT = 25,
};

static long (*const set_option)(void *ops, int level, int option, void *value, int length) =
    (void *)BPF_FUNC_setsockopt;

INLINE void set(struct bpf_sock_ops *ops, int level, int option, unsigned value)
{
    set_option(ops, level, option, &value, sizeof(value));
}

@FUNCTIONS@

__attribute__((section("sockops"), used)) int tcplab(struct bpf_sock_ops *ops)
{
    int op = ops->op;
    // An active open is set up before the SYN: the receive buffer determines the window scale. A
    // passive open reaches the program when the connection is established.
    int begins = op == BPF_SOCK_OPS_TCP_CONNECT_CB || op == BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB;
    // The initial window is set after the handshake, when the kernel has set its own.
    int established =
        op == BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB || op == BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB;
    int offers = op == BPF_SOCK_OPS_RWND_INIT;
    if (!begins && !established && !offers)
        return 1;
    switch (destination(ops)) {
@CASES@
    }
    return 1;
}

char terms[] __attribute__((section("license"), used)) = "Dual MIT/GPL";
