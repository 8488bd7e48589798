// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * One direction of a link, as a queueing discipline: a queue, transmission at a rate, loss,
 * propagation, arrival at the other end.
 *
 * It means what a lane of crates/engine means, to the picosecond and with the same random numbers,
 * so that an experiment has the same network on both backends:
 *
 *  - Sizes are those of IP packets. Super-packets are cut before they enter, as a network card does.
 *  - A packet that is offered to the queue of a router leaves its socket at once and is never refused to
 *    the sender.
 *  - The queue of the sending host (`is_own`) holds packets as the stack made them, super-packets whole,
 *    refuses them as its discipline does, and honours the times at which they are to leave. The device
 *    cuts a super-packet when the discipline gives it, and a packet belongs to its socket until all of
 *    it has been transmitted: TCP small queues count it (tcp_wfree).
 *  - The packet in transmission does not count as queued. A drop-tail queue is part of the lane; any
 *    other is a queueing discipline of the kernel, the child of class 1, which is asked for a packet
 *    whenever the transmitter is free.
 *  - A packet that is lost or corrupted has been transmitted. Jitter and changes of the delay keep the
 *    order unless overtaking is allowed; reordering does not.
 *  - Transmission takes picoseconds, packets arrive at whole nanoseconds, rounded up.
 *  - Packets of different lanes that arrive in the same nanosecond do so in the order of the lanes'
 *    numbers, after the kernel's timers of that nanosecond have run.
 *  - The processor of a host (`near_cpu`, `far_cpu`) means what that of crates/sim/src/cpu.rs means: it does
 *    one thing at a time. A packet that arrives waits for its turn, takes its time, and is then received.
 *    What its host sends takes its time as well, before the next packet has its turn. Timers and programs
 *    of the host do not wait.
 *  - A far end with receive offload (`gro_wait`) has interrupt moderation: the first packet that arrives
 *    starts a timer, and those that have arrived by its end are received in one poll, through GRO. What
 *    arrives in the nanosecond of the poll waits for the next one.
 *
 * Everything that happens to a packet is known when its transmission is planned. The discipline's
 * dequeue gives the packets that have arrived at the far end.
 */
#include <linux/hrtimer.h>
#include <linux/interrupt.h>
#include <linux/ip.h>
#include <linux/ktime.h>
#include <linux/list.h>
#include <linux/log2.h>
#include <linux/math64.h>
#include <linux/module.h>
#include <linux/netdevice.h>
#include <linux/random.h>
#include <linux/skbuff.h>
#include <linux/tcp.h>
#include <linux/udp.h>
#include <linux/version.h>
#include <net/inet_ecn.h>
#include <net/netlink.h>
#include <net/pkt_sched.h>
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 5, 0)
#include <net/gso.h>
#endif
#include "record.h"

#define PS_PER_S 1000000000000ULL
#define NEVER (~0ULL)

/* PCG64 MCG (O'Neill 2014): the generator of crates/engine. */
struct pcg {
	unsigned __int128 state;
};

enum loss_kind { LOSS_NONE, LOSS_INDEPENDENT, LOSS_LISTED, LOSS_GILBERT, LOSS_TIMED };

/* A chance: it happens if 64 random bits are below this. More than 64 bits hold: always. */
struct chance {
	u64 below;
	u64 always;
};

/* Values of lane_config.loss_on: the packets that a loss model looks at. */
#define LOSS_ON_DATA 1
#define LOSS_ON_ACKS 2

/* Values of lane_config.watched: what is told of packets (`TCPLAB_PACKET`). */
#define WATCHED_LEAVING 1	/* their transmission begins */
#define WATCHED_THROUGHOUT 2	/* all points of their way */

/* Values of lane_config.is_own. What a drop-tail queue accepts counts as sent, as of other lanes. */
#define OWN_QUEUE 1
#define OWN_DROP_TAIL 2

/* What a delivery opportunity of a trace carries: a full packet, as in Mahimahi. */
#define OPPORTUNITY_BYTES 1500
#define PS_PER_MS 1000000000ULL
#define PS_PER_US 1000000ULL

/* TCA_TCPLAB_LANE. All times are in picoseconds. */
struct lane_config {
	u32 id;
	u32 watched;
	u64 rate;		/* bit/s */
	u64 delay, jitter;
	u64 packet_limit, byte_limit;	/* of the drop-tail queue; ~0: none */
	u64 has_child;
	u64 loss_kind;
	struct chance to_bad, to_good;	/* timed: to_bad is the chance of a change */
	struct chance loss_good, loss_bad;	/* independent: loss_good */
	u64 good_time, bad_time;
	u64 is_exponential;
	u64 is_sampled;		/* the state changes at packets alone, once at each */
	struct chance reordering;
	u64 reordering_delay;
	u64 loss_on;		/* LOSS_ON_DATA, LOSS_ON_ACKS or both */
	struct chance corruption, duplication;
	u64 may_overtake;	/* shorter delays overtake longer ones */
	u64 trace_period;	/* milliseconds; 0: the rate counts, and no trace */
	u64 light_after;	/* a train begins when nothing has left for longer */
	u64 aggregate;		/* packets that share one access to the channel */
	u64 is_own;		/* OWN_QUEUE or OWN_DROP_TAIL: the sending host's, with a child */
	u64 largest_own;	/* bytes; a larger super-packet is cut before it enters that */
	u64 gro_wait;		/* ns from a packet's arrival to the poll that receives it; 0: no GRO */
	/* The processors of the hosts at both ends. */
	struct cost { u64 number, packet, ack; } near_cpu, far_cpu;
	/* low, high */
	u64 loss_seed[2], jitter_seed[2], reordering_seed[2];
	u64 corruption_seed[2], duplication_seed[2], access_seed[2];
	u64 states_seed[2];	/* of how long the states of timed loss last */
	u64 queue_seed[2];	/* of what the discipline draws */
	u64 hash_key;
};

enum {
	TCA_TCPLAB_UNSPEC,
	TCA_TCPLAB_LANE,
	TCA_TCPLAB_STEPS,	/* pairs of time and rate: when it changes, and to what */
	TCA_TCPLAB_LISTED,	/* numbers of packets to lose, ascending */
	TCA_TCPLAB_DELAYS,	/* pairs of time and delay: when it changes, and to what */
	TCA_TCPLAB_TRACE,	/* struct opportunities, ascending */
	TCA_TCPLAB_JITTER,	/* struct cell: the distribution of jitter */
	TCA_TCPLAB_ACCESS,	/* struct cell: how long the channel is contended for */
	TCA_TCPLAB_TRAINS,	/* struct train: what a light load has instead of the trace */
	TCA_TCPLAB_OFFSETS,	/* milliseconds of their opportunities after the first packet */
	__TCA_TCPLAB_MAX,
};
#define TCA_TCPLAB_MAX (__TCA_TCPLAB_MAX - 1)

struct step {
	u64 time;	/* after the start of the experiment */
	u64 value;	/* bit/s, of which 0 is an outage; or picoseconds */
};

/* Delivery opportunities of a trace in one millisecond. */
struct opportunities {
	u32 ms;		/* after the trace began */
	u32 count;
};

/* What a few packets had that were sent one after the other; times in microseconds. */
struct train {
	u64 time;	/* after the recording began */
	u64 delay;
	u64 end;	/* of its opportunities, among those of all trains */
};

/* A part of a distribution; all parts are equally likely, and values within one evenly spread. */
struct cell {
	u64 least, most;
};

/* A list that one message or several of them have brought. */
struct table {
	void *entries;
	u32 count;
};

struct lane {
	struct lane_config config;
	struct Qdisc *child;		/* noop_qdisc if the queue is drop-tail */
	/* Planned, not yet begun: of a drop-tail queue, or cut by the device of the sending host. */
	struct sk_buff_head waiting;
	u64 waiting_bytes;
	/* In the queue of the sending host, as they will be cut. */
	u64 child_packets, child_bytes;
	struct sk_buff_head sending;	/* of that host's sockets; until they have been transmitted */
	struct sk_buff_head transit;	/* begun, not yet arrived; in the order of arrival */
	u64 free_at;			/* when all that is planned will have been transmitted */
	bool is_backlogged;		/* the child had more when it was asked last */
	bool is_idle;			/* and nothing then */
	u64 last_arrival;		/* of those that keep the order */
	struct table tables[TCA_TCPLAB_MAX + 1];	/* by attribute */
	u32 step, delay_step;		/* the next ones */
	u32 listed_next;
	u64 seen;			/* packets with payload */
	/* Of a trace: the next opportunities, how many of them are used, and what is left of the last. */
	u64 trace_round;
	u32 trace_next, trace_used, trace_left;
	/* Of a light load: the train that packets follow, when it began, its next opportunity, what is left
	 * of the last, and when the last packet left. */
	u64 train, train_began, train_next, last_left;
	u32 train_left;
	bool is_heavy;			/* the last packet followed the trace */
	bool has_sent;
	u64 aggregated;			/* packets since the channel was won */
	struct pcg loss, jitter, reordering, corruption, duplication, access, states, queue;
	/* Packets and bytes that waited, times how long, until the time beside them. */
	unsigned __int128 packet_ps, byte_ps;
	u64 integrated_until;
	bool is_bad;
	u64 state_until;		/* timed loss; after the start of the experiment */
	struct tcplab_lane_state state;
	struct processor *near_cpu, *far_cpu;	/* of hosts that take time */
	/* Of a far end with GRO or a processor: its device. */
	struct net_device *far;
	/* With GRO: what has arrived there, and the timer of the interrupt. */
	struct napi_struct napi;
	struct sk_buff_head arrived;
	struct hrtimer interrupt;
	struct hrtimer timer;		/* when a packet arrives, or the child is to be asked */
	struct list_head due;		/* in the list of lanes whose timer has run out */
	struct list_head list;
	struct Qdisc *sch;
};

/* The processor of a host, for all lanes that begin or end there. */
struct processor {
	u64 number;
	u32 lanes;			/* how many */
	u64 free_at;			/* when all that it has begun is done */
	struct sk_buff_head waiting;	/* arrived */
	struct sk_buff *present;	/* what it is at, and when that is done */
	u64 done_at;
	struct sk_buff_head leaving;	/* by when they are ready */
	struct hrtimer timer;		/* when it has something to do next */
	bool is_due;
	struct list_head list;		/* by number */
};

/* What becomes of a packet. */
enum fate { FATE_ARRIVES, FATE_LOST, FATE_CORRUPTED, FATE_ARRIVES_TWICE };

/* What a packet carries while it is on a lane. */
struct plan {
	u64 begins;
	u64 arrives;
	u32 fate;
};

/* What a packet carries while a processor holds it. */
struct held {
	u64 at;			/* when it arrived; of one that leaves, when it is ready */
	struct lane *lane;
};

static LIST_HEAD(lanes);
static LIST_HEAD(due_lanes);
static LIST_HEAD(cpus);
/* The lane whose child is at work, and when it is, in nanoseconds. */
static struct lane *working;
static u64 working_time;

static struct plan *plan_of(struct sk_buff *skb)
{
	/* 20 bytes are there; the compiler would align 8 of them further. */
	BUILD_BUG_ON(offsetof(struct plan, fate) + sizeof(u32) > QDISC_CB_PRIV_LEN);
	return (struct plan *)qdisc_skb_cb(skb)->data;
}

static struct held *held_of(struct sk_buff *skb)
{
	BUILD_BUG_ON(sizeof(struct held) > QDISC_CB_PRIV_LEN);
	return (struct held *)qdisc_skb_cb(skb)->data;
}

static u64 draw(struct pcg *pcg)
{
	const unsigned __int128 multiplier =
		((unsigned __int128)0x2360ed051fc65da4ULL << 64) | 0x4385df649fccf645ULL;
	u64 folded;
	u32 rotation;

	pcg->state *= multiplier;
	folded = (u64)(pcg->state >> 64) ^ (u64)pcg->state;
	rotation = pcg->state >> 122;
	return ror64(folded, rotation);
}

static void seed(struct pcg *pcg, const u64 *words)
{
	pcg->state = (((unsigned __int128)words[1] << 64) | words[0]) | 1;
}

static bool is_possible(const struct chance *chance)
{
	return chance->below || chance->always;
}

static bool happens(struct pcg *pcg, const struct chance *chance)
{
	return draw(pcg) < chance->below || chance->always;
}

/* A whole number from 0 up to and including `most`. */
static u64 up_to(struct pcg *pcg, u64 most)
{
	return ((unsigned __int128)draw(pcg) * ((unsigned __int128)most + 1)) >> 64;
}

/*
 * An exponentially distributed time: -mean ln(u). The logarithm is taken bit by bit, by squaring:
 * 40 bits behind the point, the same on any machine.
 */
static u64 exponential(struct pcg *pcg, u64 mean)
{
	u64 value = draw(pcg) | 1;
	u64 zeros = __builtin_clzll(value);
	u64 log = 0;		/* log2 of the value over 2^63, shifted by 40 */
	const u64 ln2 = 762123384786ULL;	/* ln(2) 2^40 */
	unsigned __int128 product;
	int bit;

	value <<= zeros;
	for (bit = 39; bit >= 0; bit--) {
		product = (unsigned __int128)value * value;
		if (product >> 127) {
			value = product >> 64;
			log |= 1ULL << bit;
		} else {
			value = product >> 63;
		}
	}
	/* -log2(u) = 1 + zeros - log, with u below 1 in 64 bits. */
	product = (unsigned __int128)(((1 + zeros) << 40) - log) * ln2;
	return ((unsigned __int128)(u64)(product >> 40) * mean) >> 40;
}

/* A number from a distribution. */
static u64 from_cells(struct pcg *pcg, const struct table *table)
{
	unsigned __int128 place = (unsigned __int128)draw(pcg) * table->count;
	const struct cell *cell = (const struct cell *)table->entries + (u64)(place >> 64);
	u64 width = cell->most - cell->least + 1;

	return cell->least + (u64)(((unsigned __int128)(u64)place * width) >> 64);
}

static bool is_gone(const struct sk_buff *skb)
{
	u32 fate = plan_of((struct sk_buff *)skb)->fate;

	return fate == FATE_LOST || fate == FATE_CORRUPTED;
}

/*
 * When so many bytes have left by the opportunities of a trace (Mahimahi, Netravali et al. 2015): each
 * carries as much as one full packet, shared by small packets and carried over by large ones. An
 * opportunity at which nothing waits is gone. A trace that is over begins again.
 */
static u64 carried(struct lane *lane, u64 begins, bool has_waited, u32 bytes)
{
	const struct table *trace = &lane->tables[TCA_TCPLAB_TRACE];
	const struct opportunities *list = trace->entries;
	u64 start = tcplab_start * 1000, period = lane->config.trace_period * PS_PER_MS;
	u64 at = begins;

	if (!has_waited) {
		u64 round = (begins - start) / period;

		lane->trace_left = 0;
		if (round > lane->trace_round) {
			lane->trace_round = round;
			lane->trace_next = lane->trace_used = 0;
		}
	}
	while (bytes > lane->trace_left) {
		bytes -= lane->trace_left;
		lane->trace_left = 0;
		at = start + lane->trace_round * period + list[lane->trace_next].ms * PS_PER_MS;
		if (!has_waited && at <= begins)
			lane->trace_used = list[lane->trace_next].count;
		else
			lane->trace_left = OPPORTUNITY_BYTES;
		if (lane->trace_left)
			lane->trace_used++;
		if (lane->trace_used >= list[lane->trace_next].count) {
			lane->trace_used = 0;
			if (++lane->trace_next == trace->count) {
				lane->trace_next = 0;
				lane->trace_round++;
			}
		}
	}
	lane->trace_left -= bytes;
	return at;
}

/* A train begins, with a delay between those of two recorded ones. */
static void begin_train(struct lane *lane, u64 now)
{
	const struct table *table = &lane->tables[TCA_TCPLAB_TRAINS];
	const struct train *trains = table->entries, *one;
	u64 period = trains[table->count - 1].time * PS_PER_US;
	u64 into = (now - tcplab_start * 1000) % period, whole, part;
	u64 first = 0, after = table->count - 1;

	/* The last one that is not later. */
	while (after - first > 1) {
		u64 middle = first + (after - first) / 2;

		if (trains[middle].time * PS_PER_US <= into)
			first = middle;
		else
			after = middle;
	}
	one = trains + first;
	whole = one[1].time - one->time;
	part = (into - one->time * PS_PER_US) / PS_PER_US;
	lane->config.delay =
		(one->delay * (whole - part) + one[1].delay * part) / whole * PS_PER_US;
	lane->train = first;
	lane->train_began = now;
	lane->train_next = first ? one[-1].end : 0;
	lane->train_left = 0;
	lane->is_heavy = false;
}

/*
 * When so many bytes leave by the opportunities of a train, if some are left: by the first whose time
 * has not passed. Small packets share one; what does not fit takes the next.
 */
static bool follow_train(struct lane *lane, u64 begins, bool has_waited, u32 bytes, u64 *left)
{
	const struct train *trains = lane->tables[TCA_TCPLAB_TRAINS].entries;
	const u64 *offsets = lane->tables[TCA_TCPLAB_OFFSETS].entries;
	u64 first = lane->train ? trains[lane->train - 1].end : 0, end = trains[lane->train].end;
	u64 next = lane->train_next;
#define PASSED(number) (!has_waited && lane->train_began + offsets[number] * PS_PER_MS < begins)

	if (lane->is_heavy)
		return false;
	if (next > first && PASSED(next - 1))
		lane->train_left = 0;
	if (bytes > lane->train_left) {
		while (next < end && PASSED(next))
			next++;
		lane->train_left = 0;
	}
#undef PASSED
	while (bytes > lane->train_left) {
		bytes -= lane->train_left;
		if (next == end)
			return false;
		next++;
		lane->train_left = OPPORTUNITY_BYTES;
	}
	lane->train_left -= bytes;
	lane->train_next = next;
	*left = lane->train_began + offsets[next - 1] * PS_PER_MS;
	return true;
}

/*
 * The same where a light load has opportunities of its own (CellReplay, Sentosa et al. 2025). After a
 * pause, packets follow a train; when its opportunities are used up, those of the trace, whose times
 * are those at the other end.
 */
static u64 carried_light(struct lane *lane, u64 begins, bool has_waited, u32 bytes)
{
	u64 left;

	if (!lane->has_sent || begins > lane->last_left + lane->config.light_after)
		begin_train(lane, begins);
	if (!follow_train(lane, begins, has_waited, bytes, &left)) {
		u64 delay = lane->config.delay;

		left = carried(lane, begins + delay, has_waited && lane->is_heavy, bytes) - delay;
		lane->is_heavy = true;
	}
	lane->has_sent = true;
	lane->last_left = left;
	return left;
}

/* When so many bytes will have been transmitted at the rates of their time. */
static u64 at_rates(struct lane *lane, u64 begins, u32 bytes)
{
	const struct table *steps = &lane->tables[TCA_TCPLAB_STEPS];
	u64 start = tcplab_start == NEVER ? NEVER : tcplab_start * 1000;
	u64 left = (u64)bytes * 8 * PS_PER_S;	/* picobits */

	while (start != NEVER && lane->step < steps->count) {
		const struct step *next = (const struct step *)steps->entries + lane->step;
		u64 until = start + next->time;

		if (begins < until) {
			unsigned __int128 room = (unsigned __int128)(until - begins) * lane->config.rate;

			if (left <= room)
				break;
			left -= room;
			begins = until;
		}
		lane->config.rate = next->value;
		lane->step++;
	}
	/* To the nearest picosecond, as Rate::time_for of crates/units. */
	return begins + (left + lane->config.rate / 2) / lane->config.rate;
}

/* When so many bytes will have been transmitted. */
static u64 transmitted(struct lane *lane, u64 begins, bool has_waited, u32 bytes)
{
	const struct table *access = &lane->tables[TCA_TCPLAB_ACCESS];
	u64 free_at = begins, end;

	/* A station that has won the channel sends what follows without a gap, up to the limit. */
	if (access->count) {
		if (!has_waited || lane->aggregated >= lane->config.aggregate) {
			free_at += from_cells(&lane->access, access);
			lane->aggregated = 0;
		}
		lane->aggregated++;
	}
	if (lane->config.trace_period && tcplab_start != NEVER)
		end = (lane->tables[TCA_TCPLAB_TRAINS].count ? carried_light : carried)
			(lane, free_at, has_waited, bytes);
	else
		end = at_rates(lane, free_at, bytes);
	lane->state.busy_ps += end - begins;
	return end;
}

/* The delay of a packet that has left then. */
static u64 delay_at(struct lane *lane, u64 time)
{
	const struct table *delays = &lane->tables[TCA_TCPLAB_DELAYS];

	while (lane->delay_step < delays->count && tcplab_start != NEVER) {
		const struct step *next = (const struct step *)delays->entries + lane->delay_step;

		if (tcplab_start * 1000 + next->time > time)
			break;
		lane->config.delay = next->value;
		lane->delay_step++;
	}
	return lane->config.delay;
}

static bool has_payload(const struct sk_buff *skb)
{
	const struct iphdr *ip = ip_hdr(skb);
	u32 headers = ip->ihl * 4;
	const u8 *transport = (const u8 *)ip + headers;

	if (skb->protocol != htons(ETH_P_IP))
		return false;
	if (ip->protocol == IPPROTO_TCP)
		headers += ((const struct tcphdr *)transport)->doff * 4;
	else if (ip->protocol == IPPROTO_UDP)
		headers += sizeof(struct udphdr);
	return ntohs(ip->tot_len) > headers;
}

/* Whether the packet that enters the wire at this time is lost. */
static bool is_lost(struct lane *lane, const struct sk_buff *skb, u64 now)
{
	const struct lane_config *config = &lane->config;
	const struct table *list = &lane->tables[TCA_TCPLAB_LISTED];
	const u64 *listed = list->entries;

	if (config->loss_kind == LOSS_NONE ||
	    !(config->loss_on & (has_payload(skb) ? LOSS_ON_DATA : LOSS_ON_ACKS)))
		return false;
	switch (config->loss_kind) {
	case LOSS_INDEPENDENT:
		return happens(&lane->loss, &config->loss_good);
	case LOSS_LISTED:
		lane->seen++;
		while (lane->listed_next < list->count && listed[lane->listed_next] < lane->seen)
			lane->listed_next++;
		return lane->listed_next < list->count && listed[lane->listed_next] == lane->seen;
	case LOSS_GILBERT:
		if (happens(&lane->loss, lane->is_bad ? &config->to_good : &config->to_bad))
			lane->is_bad = !lane->is_bad;
		break;
	case LOSS_TIMED:
		if (tcplab_start == NEVER)
			return false;
		while (tcplab_start * 1000 + lane->state_until <= now) {
			bool is_first = !lane->state_until;
			u64 mean, lasts;

			/* The first state begins with the experiment, and is good. */
			if (!is_first && happens(&lane->states, &config->to_bad))
				lane->is_bad = !lane->is_bad;
			mean = lane->is_bad ? config->bad_time : config->good_time;
			lasts = max_t(u64, 1, config->is_exponential ?
				      exponential(&lane->states, mean) : mean);
			if (config->is_sampled && !is_first) {
				lane->state_until = now - tcplab_start * 1000 + lasts;
				break;
			}
			lane->state_until += lasts;
		}
		break;
	default:
		return false;
	}
	return happens(&lane->loss, lane->is_bad ? &config->loss_bad : &config->loss_good);
}

/* Decides what becomes of a packet whose transmission begins at this time, after a wait or at once. */
static void make_plan(struct lane *lane, struct sk_buff *skb, u64 begins, bool has_waited)
{
	const struct lane_config *config = &lane->config;
	struct plan *plan = plan_of(skb);
	u32 bytes = skb->len - skb_network_offset(skb);

	lane->free_at = transmitted(lane, begins, has_waited, bytes);
	lane->state.sent_packets++;
	lane->state.sent_bytes += bytes;
	plan->begins = begins;
	plan->arrives = lane->free_at + delay_at(lane, lane->free_at);
	if (lane->tables[TCA_TCPLAB_JITTER].count)
		plan->arrives += from_cells(&lane->jitter, &lane->tables[TCA_TCPLAB_JITTER]);
	else if (config->jitter)
		plan->arrives += up_to(&lane->jitter, config->jitter);
	/* Without jitter and changes of the delay, packets are in order as they are. */
	if (!config->may_overtake)
		plan->arrives = max(plan->arrives, lane->last_arrival);
	plan->fate = FATE_ARRIVES;
	if (is_lost(lane, skb, begins)) {
		plan->fate = FATE_LOST;
		return;
	}
	if (is_possible(&config->corruption) && happens(&lane->corruption, &config->corruption)) {
		plan->fate = FATE_CORRUPTED;
		return;
	}
	if (is_possible(&config->duplication) && happens(&lane->duplication, &config->duplication))
		plan->fate = FATE_ARRIVES_TWICE;
	if (config->reordering_delay && happens(&lane->reordering, &config->reordering))
		plan->arrives += config->reordering_delay;
	else
		lane->last_arrival = plan->arrives;
}

/* Tells of a packet at a point of its way, at this time in nanoseconds, if that is asked for. */
static void tell(const struct lane *lane, const struct sk_buff *skb, u64 time, enum tcplab_point point)
{
	u32 wanted = WATCHED_THROUGHOUT | (point == TCPLAB_LEAVES ? WATCHED_LEAVING : 0);
	struct tcplab_packet content;
	u32 kept;

	if (!(lane->config.watched & wanted))
		return;
	content.length = skb->len - skb_network_offset(skb);
	content.point = point;
	kept = min_t(u32, content.length, TCPLAB_SNAP);
	if (!skb_copy_bits(skb, skb_network_offset(skb), content.bytes, kept))
		tcplab_emit(TCPLAB_PACKET, lane->config.id, time, &content,
			    offsetof(struct tcplab_packet, bytes) + kept);
}

/* The transmission of a packet has begun. */
static void set_out(struct lane *lane, struct sk_buff *skb)
{
	struct plan *plan = plan_of(skb);
	struct sk_buff *before;

	tell(lane, skb, plan->begins / 1000, TCPLAB_LEAVES);
	if (is_gone(skb)) {
		lane->state.lost_packets++;
		tell(lane, skb, plan->begins / 1000, TCPLAB_DROPPED);
		tcplab_emit_drop(lane->config.id, plan->begins / 1000, skb,
				 plan->fate == FATE_LOST ? "LOST_ON_THE_WIRE" : "CORRUPTED");
		consume_skb(skb);
		return;
	}
	before = skb_peek_tail(&lane->transit);
	while (before && plan_of(before)->arrives > plan->arrives)
		before = skb_queue_is_first(&lane->transit, before) ?
			 NULL : skb_queue_prev(&lane->transit, before);
	if (before)
		__skb_queue_after(&lane->transit, before, skb);
	else
		__skb_queue_head(&lane->transit, skb);
	if (plan->fate == FATE_ARRIVES_TWICE) {
		struct sk_buff *copy = skb_copy(skb, GFP_ATOMIC);

		if (copy) {
			lane->state.entered_packets++;
			__skb_queue_after(&lane->transit, skb, copy);
		}
	}
}

static u64 now_ps(void)
{
	return ktime_get_ns() * 1000;
}

/* What waits: packets and bytes. */
static u64 queued_packets(const struct lane *lane)
{
	if (lane->config.is_own)
		return lane->child_packets + lane->waiting.qlen;
	return lane->config.has_child ? lane->child->q.qlen : lane->waiting.qlen;
}

static u64 queued_bytes(const struct lane *lane)
{
	if (lane->config.is_own)
		return lane->child_bytes + lane->waiting_bytes;
	return lane->config.has_child ? lane->child->qstats.backlog : lane->waiting_bytes;
}

/* Counts the time that the queue, which is about to change, has been as it is. */
static void integrate(struct lane *lane, u64 until)
{
	u64 time;

	if (until <= lane->integrated_until)
		return;
	time = until - lane->integrated_until;
	lane->packet_ps += (unsigned __int128)queued_packets(lane) * time;
	lane->byte_ps += (unsigned __int128)queued_bytes(lane) * time;
	lane->integrated_until = until;
}

/* The queue has changed. */
static void note_greatest(struct lane *lane)
{
	struct tcplab_lane_state *state = &lane->state;

	state->queue_max_packets = max(state->queue_max_packets, queued_packets(lane));
	state->queue_max_bytes = max(state->queue_max_bytes, queued_bytes(lane));
}

static void count_queued(struct lane *lane)
{
	lane->sch->q.qlen = lane->child->q.qlen + lane->waiting.qlen + lane->transit.qlen;
}

/* The lane's child is at work from now on, at this time in picoseconds; with NULL, none is. */
static void work(struct lane *lane, u64 time)
{
	working = lane;
	tcplab_is_working = lane;
	working_time = time / 1000;
}

/* The packets of which a super-packet is made. */
static u32 packets_of(const struct sk_buff *skb)
{
	return max_t(u32, skb_shinfo(skb)->gso_segs, 1);
}

/* The bytes of a packet, or of all those that a super-packet is cut into. */
static u32 bytes_of(const struct sk_buff *skb)
{
	u32 bytes = skb->len - skb_network_offset(skb);
	u32 headers = skb_transport_offset(skb) - skb_network_offset(skb);

	if (!skb_is_gso(skb))
		return bytes;
	headers += skb_is_gso_tcp(skb) ? tcp_hdrlen(skb) : sizeof(struct udphdr);
	return bytes + (packets_of(skb) - 1) * headers;
}

/* A packet without its socket, or those that a super-packet is cut into: a list, or NULL without memory. */
static struct sk_buff *cut(struct sk_buff *skb)
{
	netdev_features_t features;
	struct sk_buff *segments;

	if (!skb_is_gso(skb))
		return skb;
	features = netif_skb_features(skb) & ~NETIF_F_GSO_MASK;
	segments = skb_gso_segment(skb, features);
	if (IS_ERR_OR_NULL(segments))
		return NULL;
	consume_skb(skb);
	return segments;
}

/*
 * Tells of all packets that a super-packet is cut into, which come to a queue of the sending host or, with
 * a reason, are dropped there.
 */
static void tell_all(const struct lane *lane, struct sk_buff *skb, u64 time, const char *reason)
{
	struct sk_buff *copy, *segment, *next, *segments;

	if (!reason && !(lane->config.watched & WATCHED_THROUGHOUT))
		return;
	copy = pskb_copy(skb, GFP_ATOMIC);
	segments = copy ? cut(copy) : NULL;
	if (copy && !segments)
		consume_skb(copy);
	skb_list_walk_safe(segments, segment, next) {
		tell(lane, segment, time, reason ? TCPLAB_DROPPED : TCPLAB_ENTERS);
		if (reason)
			tcplab_emit_drop(lane->config.id, time, segment, reason);
		consume_skb(segment);
	}
}

void tcplab_note_drop(struct sk_buff *skb, const char *reason)
{
	if (!working) {
		tcplab_emit_drop(TCPLAB_NO_LANE, ktime_get_ns(), skb, reason);
	} else if (working->config.is_own) {
		working->state.dropped_packets += packets_of(skb);
		working->child_packets -= packets_of(skb);
		working->child_bytes -= bytes_of(skb);
		tell_all(working, skb, working_time, reason);
	} else {
		tell(working, skb, working_time, TCPLAB_DROPPED);
		tcplab_emit_drop(working->config.id, working_time, skb, reason);
	}
}

u64 tcplab_queue_bits(void)
{
	return working ? draw(&working->queue) : get_random_u64();
}

u32 tcplab_queue_word(void)
{
	return tcplab_queue_bits() >> 32;
}

static u32 hash_of(u64 what)
{
	return tcplab_mix(what ^ (working ? working->config.hash_key : 0)) >> 32;
}

u32 tcplab_flow_hash(const struct sk_buff *skb)
{
	u64 draws;
	u32 from, to;

	/* What a socket has put there changes with its retransmissions, and a router knows nothing of it. */
	if (!tcplab_flow_of(skb, &draws, &from, &to)) {
		skb_clear_hash((struct sk_buff *)skb);
		return skb_get_hash((struct sk_buff *)skb);
	}
	return hash_of(draws);
}

u32 tcplab_source_hash(const struct sk_buff *skb)
{
	u64 draws;
	u32 from, to;

	return hash_of(tcplab_flow_of(skb, &draws, &from, &to) ? from : ntohl(ip_hdr(skb)->saddr));
}

u32 tcplab_target_hash(const struct sk_buff *skb)
{
	u64 draws;
	u32 from, to;

	return hash_of(tcplab_flow_of(skb, &draws, &from, &to) ? to : ntohl(ip_hdr(skb)->daddr));
}

unsigned long tcplab_next_turn(unsigned long period)
{
	const unsigned long soon = 32;	/* no more than the timer wheel has places without rounding */
	u64 now = ktime_get_ns();
	u64 left;

	if (tcplab_start <= now)
		return jiffies + period;
	left = div_u64(tcplab_start - now, NSEC_PER_SEC / HZ);
	/* A timer runs out in the jiffy after the one that is asked for. */
	return jiffies + clamp_t(u64, left, 1, soon) - 1;
}

/* Begins with what is planned to begin by now. */
static void begin_planned(struct lane *lane, u64 now)
{
	struct sk_buff *skb;

	while ((skb = skb_peek(&lane->waiting)) && plan_of(skb)->begins <= now) {
		integrate(lane, plan_of(skb)->begins);
		__skb_unlink(skb, &lane->waiting);
		lane->waiting_bytes -= skb->len - skb_network_offset(skb);
		set_out(lane, skb);
	}
}

/*
 * The device of the sending host gets a packet of its queue: the packets that it is cut into follow each
 * other. The socket has it back when the last of them has been transmitted.
 */
static void transmit_own(struct lane *lane, struct sk_buff *skb, u64 begins)
{
	struct sk_buff *copy = pskb_copy(skb, GFP_ATOMIC);
	struct sk_buff *segments = copy ? cut(copy) : NULL;
	struct sk_buff *segment, *next;
	u32 number = 0;

	lane->child_packets -= packets_of(skb);
	lane->child_bytes -= bytes_of(skb);
	if (!segments) {
		lane->state.dropped_packets += packets_of(skb);
		if (copy)
			consume_skb(copy);
		consume_skb(skb);
		return;
	}
	skb_list_walk_safe(segments, segment, next) {
		skb_mark_not_on_list(segment);
#if LINUX_VERSION_CODE >= KERNEL_VERSION(5, 18, 0)
		skb_clear_delivery_time(segment);
#endif
		segment->tstamp = 0;
		segment->mark = 0;
		if (number++) {
			make_plan(lane, segment, lane->free_at, true);
			__skb_queue_tail(&lane->waiting, segment);
			lane->waiting_bytes += segment->len - skb_network_offset(segment);
		} else {
			make_plan(lane, segment, begins, lane->is_backlogged);
			set_out(lane, segment);
		}
	}
	plan_of(skb)->begins = lane->free_at;
	__skb_queue_tail(&lane->sending, skb);
}

/* Brings the lane up to now. */
static void settle(struct lane *lane, u64 now)
{
	struct sk_buff *skb;

	begin_planned(lane, now);
	while (lane->config.has_child && lane->free_at <= now) {
		u64 begins = lane->is_backlogged ? lane->free_at : now;

		integrate(lane, begins);
		work(lane, begins);
		skb = lane->child->dequeue(lane->child);
		work(NULL, 0);
		lane->is_idle = !skb;
		if (!skb) {
			lane->is_backlogged = false;
			break;
		}
		/* The mark says whether it came with congestion experienced. */
		if (!skb->mark && skb->protocol == htons(ETH_P_IP) && INET_ECN_is_ce(ip_hdr(skb)->tos))
			lane->state.marked_packets += lane->config.is_own ? packets_of(skb) : 1;
		if (lane->config.is_own) {
			transmit_own(lane, skb, begins);
			begin_planned(lane, now);
		} else {
			skb->mark = 0;
			make_plan(lane, skb, begins, lane->is_backlogged);
			set_out(lane, skb);
		}
		lane->is_backlogged = lane->child->q.qlen > 0;
	}
	while ((skb = skb_peek(&lane->sending)) && plan_of(skb)->begins <= now) {
		__skb_unlink(skb, &lane->sending);
		consume_skb(skb);
	}
	/* Of a child, a packet that finds the transmitter free is taken out here, and has not waited. */
	note_greatest(lane);
	count_queued(lane);
}

/* The processor has something to do next. */
static void arm(struct processor *cpu)
{
	struct sk_buff *leaving = skb_peek(&cpu->leaving);
	u64 next = leaving ? held_of(leaving)->at : NEVER;

	if (cpu->present)
		next = min(next, cpu->done_at);
	else if (!skb_queue_empty(&cpu->waiting))
		next = min(next, cpu->free_at);
	if (next != NEVER)
		hrtimer_start(&cpu->timer, ns_to_ktime(DIV_ROUND_UP_ULL(next, 1000)),
			      HRTIMER_MODE_ABS_PINNED_HARD);
}

/*
 * Does something more, from this nanosecond on; when that is done. One that is kept busy loses nothing to
 * what it is done with at a fraction of a nanosecond.
 */
static u64 spend(struct processor *cpu, u64 from, u64 cost)
{
	if (DIV_ROUND_UP_ULL(cpu->free_at, 1000) * 1000 < from)
		cpu->free_at = from;
	cpu->free_at += cost;
	return cpu->free_at;
}

static u64 cost_of(const struct cost *config, const struct sk_buff *skb)
{
	return has_payload(skb) ? config->packet : config->ack;
}

/* Begins with what waits, if the processor is free. */
static void begin_next(struct processor *cpu, u64 now)
{
	struct held *held;

	if (cpu->present || cpu->free_at > now)
		return;
	cpu->present = __skb_dequeue(&cpu->waiting);
	if (!cpu->present)
		return;
	held = held_of(cpu->present);
	cpu->done_at = spend(cpu, held->at, cost_of(&held->lane->config.far_cpu, cpu->present));
}

static void hold(struct lane *lane, struct sk_buff *skb, u64 at, struct sk_buff_head *list)
{
	*held_of(skb) = (struct held) { .at = at, .lane = lane };
	__skb_queue_tail(list, skb);
}

/* A packet has arrived. Whether it waits for the processor of its host. */
static bool waits_for_cpu(struct lane *lane, struct sk_buff *skb, u64 now)
{
	struct processor *cpu = lane->far_cpu;

	if (!cpu)
		return false;
	if (cpu->free_at <= now && !cpu->present && skb_queue_empty(&cpu->waiting) &&
	    !cost_of(&lane->config.far_cpu, skb))
		return false;
	hold(lane, skb, now, &cpu->waiting);
	begin_next(cpu, now);
	arm(cpu);
	return true;
}

/* A packet is sent. Whether the processor of its host gets to it later. */
static bool leaves_later(struct lane *lane, struct sk_buff *skb, u64 now)
{
	struct processor *cpu = lane->near_cpu;
	u64 cost, ready;

	if (!cpu)
		return false;
	cost = cost_of(&lane->config.near_cpu, skb);
	ready = cost ? spend(cpu, now, cost) : cpu->free_at;
	if (ready <= now && skb_queue_empty(&cpu->leaving))
		return false;
	hold(lane, skb, ready, &cpu->leaving);
	arm(cpu);
	return true;
}

static void offer(struct lane *lane, struct sk_buff *skb, u64 now)
{
	u32 bytes = skb->len - skb_network_offset(skb);
	struct sk_buff *dropped = NULL;

	lane->state.entered_packets++;
	tell(lane, skb, now / 1000, TCPLAB_ENTERS);
	integrate(lane, now);
	if (lane->config.has_child) {
		qdisc_skb_cb(skb)->pkt_len = bytes;
		skb->mark = skb->protocol == htons(ETH_P_IP) && INET_ECN_is_ce(ip_hdr(skb)->tos);
		work(lane, now);
		/* What comes while the transmitter is busy follows without a gap. */
		if (lane->free_at > now)
			lane->is_backlogged = true;
		lane->child->enqueue(skb, lane->child, &dropped);
		kfree_skb_list_reason(dropped, SKB_DROP_REASON_QDISC_DROP);
		work(NULL, 0);
		return;
	}
	if (lane->free_at <= now) {
		make_plan(lane, skb, now, false);
		set_out(lane, skb);
	} else if (lane->waiting.qlen >= lane->config.packet_limit ||
		   lane->waiting_bytes + bytes > lane->config.byte_limit) {
		lane->state.dropped_packets++;
		qdisc_qstats_drop(lane->sch);
		tell(lane, skb, now / 1000, TCPLAB_DROPPED);
		tcplab_emit_drop(lane->config.id, now / 1000, skb, "QUEUE_FULL");
		consume_skb(skb);
	} else {
		make_plan(lane, skb, lane->free_at, true);
		__skb_queue_tail(&lane->waiting, skb);
		lane->waiting_bytes += bytes;
		note_greatest(lane);
	}
}

/* A packet, or a whole super-packet, comes to the queue of the host that sends it. */
static int offer_own(struct lane *lane, struct sk_buff *skb, u64 now)
{
	struct sk_buff *dropped = NULL;
	int result;

	tell_all(lane, skb, now / 1000, NULL);
	integrate(lane, now);
	lane->state.entered_packets += packets_of(skb);
	lane->child_packets += packets_of(skb);
	lane->child_bytes += bytes_of(skb);
	qdisc_skb_cb(skb)->pkt_len = bytes_of(skb);
	skb->mark = skb->protocol == htons(ETH_P_IP) && INET_ECN_is_ce(ip_hdr(skb)->tos);
	if (lane->free_at > now)
		lane->is_backlogged = true;
	work(lane, now);
	result = lane->child->enqueue(skb, lane->child, &dropped);
	kfree_skb_list_reason(dropped, SKB_DROP_REASON_QDISC_DROP);
	work(NULL, 0);
	return result;
}

/* The same; what a discipline would cut is cut here, so that sizes stay those of IP packets. */
static int enqueue_own(struct lane *lane, struct sk_buff *skb, u64 now, struct sk_buff **to_free)
{
	struct sk_buff *segment, *next, *segments;
	int result = NET_XMIT_DROP;

	settle(lane, now);
	segments = bytes_of(skb) > lane->config.largest_own ? cut(skb) : skb;
	if (!segments)
		return qdisc_drop(skb, lane->sch, to_free);
	skb_list_walk_safe(segments, segment, next) {
		int one;

		skb_mark_not_on_list(segment);
		one = offer_own(lane, segment, now);
		if (result != NET_XMIT_SUCCESS)
			result = one;
	}
	count_queued(lane);
	return result;
}

static int lane_enqueue(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free)
{
	struct lane *lane = qdisc_priv(sch);
	struct sk_buff *segment, *next, *segments;
	u64 now = now_ps();

	if (lane->config.is_own)
		return enqueue_own(lane, skb, now, to_free);
	skb_orphan(skb);
	/* A router knows nothing of the time at which a sender wanted it to leave. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(5, 18, 0)
	skb_clear_delivery_time(skb);
#endif
	skb->tstamp = 0;
	/*
	 * On a wire nothing is shared with the sender, and no receiver could tell: one that gets a clone
	 * merges nothing into it (skb_try_coalesce). A router makes a copy as well (ip_forward).
	 */
	if (skb_unclone(skb, GFP_ATOMIC))
		return qdisc_drop(skb, sch, to_free);
	settle(lane, now);
	segments = cut(skb);
	if (!segments)
		return qdisc_drop(skb, sch, to_free);
	skb_list_walk_safe(segments, segment, next) {
		skb_mark_not_on_list(segment);
		if (!leaves_later(lane, segment, now))
			offer(lane, segment, now);
	}
	count_queued(lane);
	return NET_XMIT_SUCCESS;
}

/* The device at the far end interrupts so long after the first packet since the last poll. */
static void receive_later(struct lane *lane, struct sk_buff *skb, u64 now)
{
	if (!hrtimer_is_queued(&lane->interrupt))
		hrtimer_start(&lane->interrupt, ns_to_ktime(now / 1000 + lane->config.gro_wait),
			      HRTIMER_MODE_ABS_PINNED_HARD);
	__skb_queue_tail(&lane->arrived, skb);
}

static enum hrtimer_restart on_interrupt(struct hrtimer *timer)
{
	napi_schedule(&container_of(timer, struct lane, interrupt)->napi);
	return HRTIMER_NORESTART;
}

/* As a device hashes flows (receive-side scaling): GRO keeps those of different hashes apart. */
static void set_hash(struct sk_buff *skb)
{
	u64 draws;
	u32 from, to;

	if (tcplab_flow_of(skb, &draws, &from, &to))
		skb_set_hash(skb, tcplab_mix(draws) >> 32, PKT_HASH_TYPE_L4);
	else
		skb_clear_hash(skb);
}

/* Receives what had arrived before the interrupt. */
static int receive(struct napi_struct *napi, int budget)
{
	struct lane *lane = container_of(napi, struct lane, napi);
	u64 before = now_ps() - 1000;
	struct sk_buff *skb;
	int done = 0;

	while (done < budget && (skb = skb_peek(&lane->arrived)) && plan_of(skb)->arrives <= before) {
		__skb_unlink(skb, &lane->arrived);
		done++;
		if (__dev_forward_skb(lane->far, skb))
			continue;
		set_hash(skb);
		napi_gro_receive(napi, skb);
	}
	if (done < budget)
		napi_complete_done(napi, done);
	return done;
}

/* The device at the far end has GRO. */
static void begin_gro(struct lane *lane)
{
	/* A veth begins without it. */
	lane->far->wanted_features |= NETIF_F_GRO;
	netdev_update_features(lane->far);
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 1, 0)
	netif_napi_add(lane->far, &lane->napi, receive);
#else
	netif_napi_add(lane->far, &lane->napi, receive, NAPI_POLL_WEIGHT);
#endif
	napi_enable(&lane->napi);
}

static void run_due(struct tasklet_struct *tasklet);
static DECLARE_TASKLET(due_runner, run_due);

static struct sk_buff *lane_dequeue(struct Qdisc *sch)
{
	struct lane *lane = qdisc_priv(sch);
	u64 now = now_ps();
	u64 next = NEVER;
	struct sk_buff *skb;

	settle(lane, now);
	while ((skb = skb_peek(&lane->transit)) && plan_of(skb)->arrives <= now) {
		__skb_unlink(skb, &lane->transit);
		lane->state.arrived_packets++;
		tell(lane, skb, now / 1000, TCPLAB_ARRIVES);
		qdisc_bstats_update(sch, skb);
		count_queued(lane);
		if (lane->config.gro_wait)
			receive_later(lane, skb, now);
		else if (!waits_for_cpu(lane, skb, now))
			return skb;
	}
	if (skb)
		next = plan_of(skb)->arrives;
	skb = skb_peek(&lane->waiting);
	/* What follows the first may overtake it. */
	if (skb)
		next = min(next, is_gone(skb) || lane->config.may_overtake || lane->config.reordering_delay ?
			   plan_of(skb)->begins : plan_of(skb)->arrives);
	/* The child is asked even if it has nothing: disciplines count the time that they are idle. */
	if (lane->config.has_child && !lane->is_idle && lane->free_at > now)
		next = min(next, lane->free_at);
	skb = skb_peek(&lane->sending);
	if (skb)
		next = min(next, plan_of(skb)->begins);
	if (next != NEVER)
		hrtimer_start(&lane->timer, ns_to_ktime(DIV_ROUND_UP_ULL(next, 1000)),
			      HRTIMER_MODE_ABS_PINNED_HARD);
	return NULL;
}

/*
 * All timers of a nanosecond run out before any softirq runs. Those of lanes only put the lanes in
 * order: by their numbers, as ties go in crates/engine/src/agenda.rs.
 */
static enum hrtimer_restart on_timer(struct hrtimer *timer)
{
	struct lane *lane = container_of(timer, struct lane, timer), *other;
	struct list_head *behind = &due_lanes;

	list_for_each_entry(other, &due_lanes, due)
		if (other->config.id > lane->config.id) {
			behind = &other->due;
			break;
		}
	list_add_tail(&lane->due, behind);
	tasklet_hi_schedule(&due_runner);
	return HRTIMER_NORESTART;
}

static enum hrtimer_restart on_cpu_timer(struct hrtimer *timer)
{
	container_of(timer, struct processor, timer)->is_due = true;
	tasklet_hi_schedule(&due_runner);
	return HRTIMER_NORESTART;
}

/*
 * A processor sends what is ready, or receives the packet that it has done. What its host sends for that,
 * the kernel at once and programs when they run, takes its time before the next packet has its turn.
 */
static void step(struct processor *cpu, u64 now)
{
	struct sk_buff *skb;

	while ((skb = skb_peek(&cpu->leaving)) && held_of(skb)->at <= now) {
		struct lane *lane = held_of(skb)->lane;
		spinlock_t *root = qdisc_lock(qdisc_root_sleeping(lane->sch));

		__skb_unlink(skb, &cpu->leaving);
		spin_lock(root);
		settle(lane, now);
		offer(lane, skb, now);
		count_queued(lane);
		qdisc_run(lane->sch);
		spin_unlock(root);
	}
	begin_next(cpu, now);
	if (cpu->present && cpu->done_at <= now) {
		skb = cpu->present;
		cpu->present = NULL;
		if (!__dev_forward_skb(held_of(skb)->lane->far, skb))
			netif_receive_skb(skb);
	}
	arm(cpu);
}

/*
 * Lets processors of hosts go on, and out of the lanes what has arrived: it is received when the kernel's
 * timers have run.
 */
static void run_due(struct tasklet_struct *tasklet)
{
	struct lane *lane;
	struct processor *cpu;

	list_for_each_entry(cpu, &cpus, list) {
		bool is_due = cpu->is_due;

		cpu->is_due = false;
		if (is_due)
			step(cpu, now_ps());
	}
	for (;;) {
		spinlock_t *root;

		local_irq_disable();
		lane = list_first_entry_or_null(&due_lanes, struct lane, due);
		if (lane)
			list_del_init(&lane->due);
		local_irq_enable();
		if (!lane)
			break;
		root = qdisc_lock(qdisc_root_sleeping(lane->sch));
		spin_lock(root);
		qdisc_run(lane->sch);
		spin_unlock(root);
	}
}

static void set_up(struct hrtimer *timer, enum hrtimer_restart (*on)(struct hrtimer *))
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 13, 0)
	hrtimer_setup(timer, on, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_PINNED_HARD);
#else
	hrtimer_init(timer, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_PINNED_HARD);
	timer->function = on;
#endif
}

/* The processor of this number, for one lane more; NULL if the host takes no time, or without memory. */
static struct processor *cpu_for(const struct cost *config)
{
	struct list_head *behind = &cpus;
	struct processor *cpu;

	if (!config->number)
		return NULL;
	list_for_each_entry(cpu, &cpus, list) {
		if (cpu->number == config->number) {
			cpu->lanes++;
			return cpu;
		}
		if (cpu->number > config->number) {
			behind = &cpu->list;
			break;
		}
	}
	cpu = kzalloc(sizeof(*cpu), GFP_KERNEL);
	if (!cpu)
		return NULL;
	cpu->number = config->number;
	cpu->lanes = 1;
	__skb_queue_head_init(&cpu->waiting);
	__skb_queue_head_init(&cpu->leaving);
	set_up(&cpu->timer, on_cpu_timer);
	list_add_tail(&cpu->list, behind);
	return cpu;
}

static void drop_held(struct sk_buff_head *list, const struct lane *lane)
{
	struct sk_buff *skb, *next;

	skb_queue_walk_safe(list, skb, next)
		if (held_of(skb)->lane == lane) {
			__skb_unlink(skb, list);
			kfree_skb(skb);
		}
}

/* A lane is gone, and what the processor holds of it. */
static void leave_cpu(struct processor *cpu, const struct lane *lane)
{
	if (!cpu)
		return;
	local_bh_disable();
	drop_held(&cpu->waiting, lane);
	drop_held(&cpu->leaving, lane);
	if (cpu->present && held_of(cpu->present)->lane == lane) {
		kfree_skb(cpu->present);
		cpu->present = NULL;
	}
	local_bh_enable();
	if (!--cpu->lanes) {
		hrtimer_cancel(&cpu->timer);
		list_del(&cpu->list);
		kfree(cpu);
	}
}

static void stop_timers(struct lane *lane)
{
	hrtimer_cancel(&lane->timer);
	hrtimer_cancel(&lane->interrupt);
	local_irq_disable();
	list_del_init(&lane->due);
	local_irq_enable();
}

static void lane_reset(struct Qdisc *sch)
{
	struct lane *lane = qdisc_priv(sch);

	qdisc_reset(lane->child);
	__skb_queue_purge(&lane->waiting);
	__skb_queue_purge(&lane->transit);
	__skb_queue_purge(&lane->sending);
	__skb_queue_purge(&lane->arrived);
	lane->waiting_bytes = lane->child_packets = lane->child_bytes = 0;
	stop_timers(lane);
	count_queued(lane);
}

static const struct nla_policy lane_policy[TCA_TCPLAB_MAX + 1] = {
	[TCA_TCPLAB_LANE] = { .type = NLA_BINARY, .len = sizeof(struct lane_config) },
	[TCA_TCPLAB_STEPS] = { .type = NLA_BINARY },
	[TCA_TCPLAB_LISTED] = { .type = NLA_BINARY },
	[TCA_TCPLAB_DELAYS] = { .type = NLA_BINARY },
	[TCA_TCPLAB_TRACE] = { .type = NLA_BINARY },
	[TCA_TCPLAB_JITTER] = { .type = NLA_BINARY },
	[TCA_TCPLAB_ACCESS] = { .type = NLA_BINARY },
	[TCA_TCPLAB_TRAINS] = { .type = NLA_BINARY },
	[TCA_TCPLAB_OFFSETS] = { .type = NLA_BINARY },
};

static const size_t entry_bytes[TCA_TCPLAB_MAX + 1] = {
	[TCA_TCPLAB_STEPS] = sizeof(struct step),
	[TCA_TCPLAB_LISTED] = sizeof(u64),
	[TCA_TCPLAB_DELAYS] = sizeof(struct step),
	[TCA_TCPLAB_TRACE] = sizeof(struct opportunities),
	[TCA_TCPLAB_JITTER] = sizeof(struct cell),
	[TCA_TCPLAB_ACCESS] = sizeof(struct cell),
	[TCA_TCPLAB_TRAINS] = sizeof(struct train),
	[TCA_TCPLAB_OFFSETS] = sizeof(u64),
};

/* Adds what a message has brought to the lists. */
static int append(struct lane *lane, struct nlattr **tb)
{
	int kind;

	for (kind = TCA_TCPLAB_STEPS; kind <= TCA_TCPLAB_MAX; kind++) {
		struct table *table = &lane->tables[kind];
		size_t each = entry_bytes[kind], count;
		void *entries;

		if (!tb[kind])
			continue;
		count = nla_len(tb[kind]) / each;
		entries = kvmalloc_array(table->count + count, each, GFP_KERNEL);
		if (!entries)
			return -ENOMEM;
		if (table->count)
			memcpy(entries, table->entries, table->count * each);
		memcpy(entries + table->count * each, nla_data(tb[kind]), count * each);
		kvfree(table->entries);
		table->entries = entries;
		table->count += count;
	}
	return 0;
}

/* More of the lists, before the first packet: an attribute holds no more than 64 KiB. */
static int lane_change(struct Qdisc *sch, struct nlattr *options, struct netlink_ext_ack *extack)
{
	struct nlattr *tb[TCA_TCPLAB_MAX + 1];
	int error = nla_parse_nested(tb, TCA_TCPLAB_MAX, options, lane_policy, extack);

	return error ? error : append(qdisc_priv(sch), tb);
}

static int lane_init(struct Qdisc *sch, struct nlattr *options, struct netlink_ext_ack *extack)
{
	struct lane *lane = qdisc_priv(sch);
	struct nlattr *tb[TCA_TCPLAB_MAX + 1];
	int error;

	lane->sch = sch;
	lane->child = &noop_qdisc;
	__skb_queue_head_init(&lane->waiting);
	__skb_queue_head_init(&lane->transit);
	__skb_queue_head_init(&lane->sending);
	__skb_queue_head_init(&lane->arrived);
	set_up(&lane->timer, on_timer);
	set_up(&lane->interrupt, on_interrupt);
	INIT_LIST_HEAD(&lane->due);
	INIT_LIST_HEAD(&lane->list);
	if (!options)
		return -EINVAL;
	error = nla_parse_nested(tb, TCA_TCPLAB_MAX, options, lane_policy, extack);
	if (error)
		return error;
	if (!tb[TCA_TCPLAB_LANE] || nla_len(tb[TCA_TCPLAB_LANE]) != sizeof(lane->config)) {
		NL_SET_ERR_MSG(extack, "a lane of another version of tcplab");
		return -EINVAL;
	}
	memcpy(&lane->config, nla_data(tb[TCA_TCPLAB_LANE]), sizeof(lane->config));
	if (!lane->config.rate)
		return -EINVAL;
	error = append(lane, tb);
	if (error)
		return error;
	lane->near_cpu = cpu_for(&lane->config.near_cpu);
	lane->far_cpu = cpu_for(&lane->config.far_cpu);
	if ((lane->config.near_cpu.number && !lane->near_cpu) ||
	    (lane->config.far_cpu.number && !lane->far_cpu))
		return -ENOMEM;
	if (lane->far_cpu || lane->config.gro_wait) {
		struct net_device *dev = qdisc_dev(sch);

		if (dev->netdev_ops->ndo_get_peer_dev)
			lane->far = dev->netdev_ops->ndo_get_peer_dev(dev);
		if (!lane->far)
			return -EINVAL;
	}
	if (lane->config.gro_wait)
		begin_gro(lane);
	seed(&lane->loss, lane->config.loss_seed);
	seed(&lane->jitter, lane->config.jitter_seed);
	seed(&lane->reordering, lane->config.reordering_seed);
	seed(&lane->corruption, lane->config.corruption_seed);
	seed(&lane->duplication, lane->config.duplication_seed);
	seed(&lane->access, lane->config.access_seed);
	seed(&lane->states, lane->config.states_seed);
	seed(&lane->queue, lane->config.queue_seed);
	list_add_tail(&lane->list, &lanes);
	return 0;
}

static void lane_destroy(struct Qdisc *sch)
{
	struct lane *lane = qdisc_priv(sch);
	int kind;

	list_del(&lane->list);
	stop_timers(lane);
	if (lane->napi.dev) {
		napi_disable(&lane->napi);
		netif_napi_del(&lane->napi);
	}
	leave_cpu(lane->near_cpu, lane);
	leave_cpu(lane->far_cpu, lane);
	if (lane->child)
		qdisc_put(lane->child);
	for (kind = 0; kind <= TCA_TCPLAB_MAX; kind++)
		kvfree(lane->tables[kind].entries);
}

static int lane_dump(struct Qdisc *sch, struct sk_buff *skb)
{
	return 0;
}

/* One class, whose leaf is the child. */

static int lane_graft(struct Qdisc *sch, unsigned long class, struct Qdisc *new, struct Qdisc **old,
		      struct netlink_ext_ack *extack)
{
	struct lane *lane = qdisc_priv(sch);

	*old = qdisc_replace(sch, new ? new : &noop_qdisc, &lane->child);
	return 0;
}

static struct Qdisc *lane_leaf(struct Qdisc *sch, unsigned long class)
{
	return ((struct lane *)qdisc_priv(sch))->child;
}

static unsigned long lane_find(struct Qdisc *sch, u32 class)
{
	return 1;
}

static void lane_walk(struct Qdisc *sch, struct qdisc_walker *walker)
{
	if (!walker->stop) {
		if (walker->count >= walker->skip && walker->fn(sch, 1, walker) < 0)
			walker->stop = 1;
		else
			walker->count++;
	}
}

static int lane_dump_class(struct Qdisc *sch, unsigned long class, struct sk_buff *skb,
			   struct tcmsg *message)
{
	message->tcm_handle |= TC_H_MIN(1);
	message->tcm_info = ((struct lane *)qdisc_priv(sch))->child->handle;
	return 0;
}

static const struct Qdisc_class_ops lane_class = {
	.graft = lane_graft,
	.leaf = lane_leaf,
	.find = lane_find,
	.walk = lane_walk,
	.dump = lane_dump_class,
};

static struct Qdisc_ops lane_discipline __read_mostly = {
	.id = "tcplab_lane",
	.cl_ops = &lane_class,
	.priv_size = sizeof(struct lane),
	.enqueue = lane_enqueue,
	.dequeue = lane_dequeue,
	.peek = qdisc_peek_dequeued,
	.init = lane_init,
	.change = lane_change,
	.reset = lane_reset,
	.destroy = lane_destroy,
	.dump = lane_dump,
	.owner = THIS_MODULE,
};

void tcplab_emit_lanes(u64 time)
{
	u64 now = time * 1000;
	struct lane *lane;

	list_for_each_entry(lane, &lanes, list) {
		struct tcplab_lane_state state;

		settle(lane, now);
		integrate(lane, now);
		state = lane->state;
		state.queue_packets = queued_packets(lane);
		state.queue_bytes = queued_bytes(lane);
		state.transit_packets = lane->transit.qlen;
		if (lane->config.is_own) {
			state.sent_packets -= lane->waiting.qlen;
			state.sent_bytes -= lane->waiting_bytes;
		}
		if (lane->config.is_own == OWN_DROP_TAIL) {
			state.sent_packets += state.queue_packets;
			state.sent_bytes += state.queue_bytes;
		}
		if (lane->config.has_child && !lane->config.is_own)
			state.dropped_packets = lane->child->qstats.drops;
		state.queue_packet_ps[0] = lane->packet_ps;
		state.queue_packet_ps[1] = lane->packet_ps >> 64;
		state.queue_byte_ps[0] = lane->byte_ps;
		state.queue_byte_ps[1] = lane->byte_ps >> 64;
		if (lane->free_at > now)
			state.busy_ps -= lane->free_at - now;
		tcplab_emit(TCPLAB_LANE, lane->config.id, time, &state, sizeof(state));
	}
}

void tcplab_begin_interval(void)
{
	struct lane *lane;

	list_for_each_entry(lane, &lanes, list) {
		lane->state.queue_max_packets = queued_packets(lane);
		lane->state.queue_max_bytes = queued_bytes(lane);
	}
}

static int __init lane_start(void)
{
	return register_qdisc(&lane_discipline);
}
device_initcall(lane_start);
