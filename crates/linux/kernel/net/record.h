/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * What the kernel tells the host side, as a stream of records through an open file of the host.
 * crates/linux/src/records.rs reads the same. All numbers are little-endian, as the machine has them.
 */
#ifndef TCPLAB_RECORD_H
#define TCPLAB_RECORD_H

#include <linux/skbuff.h>
#include <linux/types.h>

enum tcplab_kind {
	TCPLAB_TEXT = 1,	/* a report of the guest: JSON */
	TCPLAB_TICK,		/* the clock */
	TCPLAB_SOCKET,		/* a connection appeared */
	TCPLAB_SAMPLE,		/* the state of a connection */
	TCPLAB_SUMMARY,		/* what a connection has counted */
	TCPLAB_LANE,		/* the state of a lane */
	TCPLAB_DROP,		/* a packet was dropped */
	TCPLAB_PACKET,		/* a packet is at a point of a lane that is watched */
};

/* Before each record. */
struct tcplab_header {
	__u16 kind;
	__u16 length;		/* of what follows */
	__u32 id;		/* of the socket or lane */
	__u64 time;		/* nanoseconds since boot */
};

struct tcplab_socket {
	__be32 address, peer_address;
	__u16 port, peer_port;
	__u32 is_client;
};

struct tcplab_sample {
	__u32 cwnd, ssthresh, srtt_us, rto_us, in_flight, rtt_us;
	__u64 acked_bytes;
	__u64 pacing;		/* bytes a second; 0: does not pace */
	__u64 delivery_rate;	/* bytes a second, as of the last ACK that measured it; 0: none */
	__u32 state;		/* TCP_CA_Open, ... */
	__u32 attribute;	/* INET_DIAG_VEGASINFO, ... or 0: which of these follows */
	__u8 internals[24];
};

/* Why a summary is told. */
enum tcplab_occasion {
	TCPLAB_ENDED,		/* the session or the experiment ended */
	TCPLAB_CLOSED,		/* the connection ended */
	TCPLAB_MARKED,		/* a time has come at which all are told */
};

/*
 * What a connection has done, or one session of it. RTTs are those since the last summary, all else is
 * counted since the beginning.
 */
struct tcplab_summary {
	__u64 acked_bytes, received_bytes;
	__u64 written_bytes, sent_bytes;	/* by the application; for the first time */
	__u64 sent_segments, retransmitted_segments;
	__u64 timeouts, episodes;
	__u64 rtt_count, rtt_sum_us, rtt_min_us, rtt_max_us;
	__u64 last_arrival;	/* of data, nanoseconds since boot */
	__u8 algorithm[16];
	__u32 error;		/* sk_err: why it ended */
	__u16 occasion;
	__u16 is_open;		/* the handshake is over: it was connected */
};

struct tcplab_lane_state {
	__u64 queue_packets, queue_bytes;
	__u64 dropped_packets, lost_packets, marked_packets;
	__u64 sent_packets, sent_bytes;
	__u64 busy_ps;
	__u64 entered_packets, arrived_packets;
	__u64 transit_packets;	/* transmission begun, not arrived */
	/* The most that waited since the last interval of record.links began. */
	__u64 queue_max_packets, queue_max_bytes;
	/* Packets and bytes that waited, times how long in picoseconds; the low half first. */
	__u64 queue_packet_ps[2], queue_byte_ps[2];
};

struct tcplab_drop {
	__be32 address, peer_address;	/* source and destination */
	__u16 port, peer_port;
	__u32 bytes;
	__u8 reason[32];
};

#define TCPLAB_NO_LANE (~0u)

/* Where on a lane a packet is. */
enum tcplab_point {
	TCPLAB_LEAVES,		/* its transmission begins */
	TCPLAB_ENTERS,		/* it comes to the queue */
	TCPLAB_ARRIVES,		/* it is at the other end */
	TCPLAB_DROPPED,
};

/* The most of a packet that is told: the headers. */
#define TCPLAB_SNAP 128

struct tcplab_packet {
	__u32 length;		/* of the packet */
	__u32 point;		/* enum tcplab_point */
	__u8 bytes[TCPLAB_SNAP];	/* as many as there are */
};

void tcplab_emit(u16 kind, u32 id, u64 time, const void *content, u16 length);

/* random.c: what congestion controls draw instead of the kernel's random numbers. */
u64 tcplab_bits(const struct sock *sk);
u32 tcplab_below(const struct sock *sk, u32 limit);
u32 tcplab_word(const struct sock *sk);
u8 tcplab_byte(const struct sock *sk);

/* random.c: by how much timestamps of a server are ahead, by the client's port. */
u32 tcplab_ts_off(u16 port);

/* observer.c: where the draws of a connection stand; NULL if it is not watched. */
u64 *tcplab_draws(const struct sock *sk);

/* observer.c: where they begin. */
u64 tcplab_first_draws(u16 port, bool is_client);

/*
 * observer.c: of the packet of a flow of the experiment, where the draws of the end that sent it begin,
 * which no other end has, and the numbers of the hosts. False for other packets, and for fragments.
 */
bool tcplab_flow_of(const struct sk_buff *skb, u64 *draws, u32 *from, u32 *to);

/*
 * lane.c: what the queue disciplines of lanes draw and hash, as those of `sim` do: random numbers of the
 * lane at work, and hashes of the flow, the source and the destination of a packet under a key of it.
 */
u64 tcplab_queue_bits(void);
u32 tcplab_queue_word(void);
u32 tcplab_flow_hash(const struct sk_buff *skb);
u32 tcplab_source_hash(const struct sk_buff *skb);
u32 tcplab_target_hash(const struct sk_buff *skb);

/*
 * lane.c: what a timer is to be set to that is set anew by so many jiffies whenever it runs out, and that
 * runs out when the experiment begins.
 */
unsigned long tcplab_next_turn(unsigned long period);

/* random.c: one step of SplitMix64, by which all input bits reach all output bits. */
u64 tcplab_mix(u64 value);

/* observer.c: an RTT sample of a connection, below zero for none. */
void tcplab_note_rtt(const struct sock *sk, long rtt_us);

/* observer.c: tells of a packet dropped on a lane. */
void tcplab_emit_drop(u32 lane, u64 time, const struct sk_buff *skb, const char *reason);

/* observer.c: whether the queue of a lane is at work, for drops that the kernel decides. */
extern bool tcplab_is_working;

/* lane.c: tells of a packet that is dropped, by the queue at work if one is. */
void tcplab_note_drop(struct sk_buff *skb, const char *reason);

/* observer.c: when the experiment began, in nanoseconds; ~0 before. */
extern u64 tcplab_start;

/* lane.c: tells of the state of all lanes. */
void tcplab_emit_lanes(u64 time);

/* lane.c: the greatest queues are those from now on. */
void tcplab_begin_interval(void);

#endif
