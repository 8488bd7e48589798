// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Watches connections from inside, by the kernel's own tracepoints, and tells the host side through
 * an open file of the host: nothing of it costs virtual time, a system call or a copy in the guest.
 *
 * The guest program speaks through /proc/tcplab: what it writes there goes to the host side as it is,
 * except the commands `draws`, `begin`, `session` and `end`.
 */
#include <linux/hash.h>
#include <linux/hashtable.h>
#include <linux/hrtimer.h>
#include <linux/icmp.h>
#include <linux/inet_diag.h>
#include <linux/init.h>
#include <linux/interrupt.h>
#include <linux/ip.h>
#include <linux/moduleparam.h>
#include <linux/proc_fs.h>
#include <linux/slab.h>
#include <linux/tcp.h>
#include <linux/vmalloc.h>
#include <linux/uaccess.h>
#include <linux/udp.h>
#include <linux/version.h>
#include <net/inet_connection_sock.h>
#include <net/inet_sock.h>
#include <net/ipv6.h>
#include <net/tcp.h>
#include <trace/events/skb.h>
#include <trace/events/sock.h>
#include <trace/events/tcp.h>
#include <os.h>
#include "record.h"

extern unsigned long tcplab_clock_step;

#define NEVER (~0ULL)
/* How often, in virtual time, the host side hears of the clock, for its progress display. */
#define TICK_NS (100 * NSEC_PER_MSEC)

u64 tcplab_start = NEVER;
bool tcplab_is_working;

/* The stream of records. */

static int stream = -1;	/* a file descriptor of the host: tcplab.stream=N on the command line */
static u8 buffer[1 << 16];
static u32 filled;

static int __init set_stream(char *text)
{
	return kstrtoint(text, 10, &stream) == 0;
}
__setup("tcplab.stream=", set_stream);

/*
 * Nanoseconds by which a process's look at the clock moves it on. While the machine starts it is one;
 * in the experiment it is none, so that segments which processes send leave when they are written, or
 * where there are programs that wait by looking at the clock, as much as tcplab.step=N says on the
 * command line.
 */
unsigned long tcplab_clock_step = 1;
static unsigned long experiment_step;

static int __init set_step(char *text)
{
	return kstrtoul(text, 10, &experiment_step) == 0;
}
__setup("tcplab.step=", set_step);

static void flush(void)
{
	u32 written = 0;

	while (stream >= 0 && written < filled) {
		int count = os_write_file(stream, buffer + written, filled - written);

		if (count == -EINTR || count == -EAGAIN)
			continue;
		if (count <= 0)
			stream = -1;	/* the host side is gone, and will end us */
		else
			written += count;
	}
	filled = 0;
}

void tcplab_emit(u16 kind, u32 id, u64 time, const void *content, u16 length)
{
	struct tcplab_header header = { .kind = kind, .length = length, .id = id, .time = time };
	unsigned long flags;

	local_irq_save(flags);
	if (filled + sizeof(header) + length > sizeof(buffer))
		flush();
	memcpy(buffer + filled, &header, sizeof(header));
	memcpy(buffer + filled + sizeof(header), content, length);
	filled += sizeof(header) + length;
	local_irq_restore(flags);
}

/* Connections. */

/* What a connection has done in all, as the kernel counts. Segments are those that carry data. */
struct totals {
	u64 acked, received, written, sent_bytes, sent, retransmitted;
};

struct connection {
	struct sock *sk;
	struct hlist_node by_sock;
	struct list_head list, unsampled, unannounced;
	u32 id;
	u64 begun;
	u64 asked;		/* when the ACK came that has not been sampled yet */
	u32 rtt_us;		/* the last sample */
	u32 control_repeats;	/* of total_retrans: SYNs, SYN-ACKs and FINs without data */
	u8 state;		/* TCP_CA_Open, ... */
	bool is_client;
	bool is_open;		/* the handshake is over */
	bool has_drawn;
	u64 draws;
	struct totals before;	/* at the beginning of its session */
	struct tcplab_summary summary;
};

static DEFINE_HASHTABLE(connections, 10);
static LIST_HEAD(in_order);
static LIST_HEAD(unsampled);
static LIST_HEAD(unannounced);
static u32 last_id;
static bool samples_acks;
static u64 sample_interval, lane_interval;
static struct hrtimer sample_timer, lane_timer, tick_timer;

static struct connection *connection_of(const struct sock *sk)
{
	struct connection *found;

	hash_for_each_possible(connections, found, by_sock, (unsigned long)sk)
		if (found->sk == sk)
			return found;
	return NULL;
}

static struct totals totals(const struct connection *connection)
{
	const struct tcp_sock *tp = tcp_sk(connection->sk);
	const int has_closed = TCPF_FIN_WAIT1 | TCPF_FIN_WAIT2 | TCPF_CLOSING | TCPF_LAST_ACK;
	const bool has_fin = (1 << connection->sk->sk_state) & has_closed;
	const bool has_sent_fin = has_fin && tp->snd_nxt == tp->write_seq;
	const bool is_fin_acked = has_fin && tp->snd_una == tp->write_seq;
	const s64 acked = tp->bytes_acked - connection->is_client;
	const s64 written = acked + (tp->write_seq - tp->snd_una) - has_fin;
	const s64 sent = acked + (tp->snd_nxt - tp->snd_una) - has_sent_fin;

	return (struct totals) {
		/* The kernel counts the SYN of the one that connects as a byte, and the FIN. */
		.acked = tp->bytes_acked - (connection->is_client && tp->bytes_acked > 0) - is_fin_acked,
		.received = tp->bytes_received - sock_flag(connection->sk, SOCK_DONE),
		.written = max_t(s64, 0, written),
		.sent_bytes = max_t(s64, 0, sent),
		.sent = tp->data_segs_out,
		.retransmitted = connection->is_open ?
				 tp->total_retrans - connection->control_repeats : 0,
	};
}

/* Of its session: what is on its way at the beginning is of the one before. */
static u64 acked_bytes(const struct connection *connection)
{
	const u64 acked = totals(connection).acked;

	return acked - min(acked, connection->before.acked);
}

static void announce(struct connection *connection)
{
	const struct inet_sock *inet = inet_sk(connection->sk);
	struct tcplab_socket content = {
		.address = inet->inet_saddr,
		.peer_address = inet->inet_daddr,
		.port = ntohs(inet->inet_sport),
		.peer_port = ntohs(inet->inet_dport),
		.is_client = connection->is_client,
	};

	list_del_init(&connection->unannounced);
	tcplab_emit(TCPLAB_SOCKET, connection->id, connection->begun, &content, sizeof(content));
}

/*
 * A socket that connects without having been bound gets its port a little after its state, so it is
 * announced with the first thing that is said of any connection after that.
 */
static void announce_known(void)
{
	struct connection *connection, *next;

	list_for_each_entry_safe(connection, next, &unannounced, unannounced)
		if (inet_sk(connection->sk)->inet_num)
			announce(connection);
}

static void begin_watching(struct sock *sk, bool is_client)
{
	struct connection *connection = kzalloc(sizeof(*connection), GFP_ATOMIC);

	if (!connection)
		return;
	connection->sk = sk;
	connection->is_client = is_client;
	connection->id = ++last_id;
	connection->begun = ktime_get_ns();
	connection->summary.rtt_min_us = NEVER;
	INIT_LIST_HEAD(&connection->unsampled);
	hash_add(connections, &connection->by_sock, (unsigned long)sk);
	list_add_tail(&connection->list, &in_order);
	list_add_tail(&connection->unannounced, &unannounced);
}

static void summarise(struct connection *connection, u64 now, enum tcplab_occasion occasion)
{
	struct sock *sk = connection->sk;
	const struct totals all = totals(connection), before = connection->before;
	struct tcplab_summary *summary = &connection->summary;

	announce_known();
	/* It never got a port. */
	if (!list_empty(&connection->unannounced))
		announce(connection);
	summary->acked_bytes = acked_bytes(connection);
	summary->received_bytes = all.received - before.received;
	summary->written_bytes = all.written - before.written;
	summary->sent_bytes = all.sent_bytes - before.sent_bytes;
	summary->sent_segments = all.sent - before.sent;
	summary->retransmitted_segments = all.retransmitted - before.retransmitted;
	summary->error = sk->sk_err ? sk->sk_err : READ_ONCE(sk->sk_err_soft);
	summary->occasion = occasion;
	summary->is_open = connection->is_open;
	strscpy(summary->algorithm, inet_csk(sk)->icsk_ca_ops ? inet_csk(sk)->icsk_ca_ops->name : "",
		sizeof(summary->algorithm));
	tcplab_emit(TCPLAB_SUMMARY, connection->id, now, summary, sizeof(*summary));
	summary->rtt_count = summary->rtt_sum_us = summary->rtt_max_us = 0;
	summary->rtt_min_us = NEVER;
}

/* What `tcp_info` calls tcpi_delivery_rate. */
static u64 delivery_rate(const struct tcp_sock *tp)
{
	const u32 interval_us = READ_ONCE(tp->rate_interval_us);

	if (!READ_ONCE(tp->rate_delivered) || !interval_us)
		return 0;
	return div_u64((u64)READ_ONCE(tp->rate_delivered) * tp->mss_cache * USEC_PER_SEC, interval_us);
}

static void sample(struct connection *connection, u64 now)
{
	struct sock *sk = connection->sk;
	const struct tcp_sock *tp = tcp_sk(sk);
	const struct inet_connection_sock *icsk = inet_csk(sk);
	struct tcplab_sample content = {
		.cwnd = tp->snd_cwnd,
		.ssthresh = tp->snd_ssthresh,
		.srtt_us = tp->srtt_us >> 3,
		.rto_us = jiffies_to_usecs(icsk->icsk_rto),
		.in_flight = tcp_packets_in_flight(tp),
		.rtt_us = connection->rtt_us,
		.acked_bytes = acked_bytes(connection),
		.pacing = smp_load_acquire(&sk->sk_pacing_status) == SK_PACING_NONE ?
			  0 : min_t(u64, READ_ONCE(sk->sk_pacing_rate), READ_ONCE(sk->sk_max_pacing_rate)),
		.delivery_rate = delivery_rate(tp),
		.state = icsk->icsk_ca_state,
	};

	if (icsk->icsk_ca_ops->get_info) {
		union tcp_cc_info info = {};
		int attribute = 0;
		size_t size = icsk->icsk_ca_ops->get_info(sk, ~0U, &attribute, &info);

		if (size && size <= sizeof(content.internals)) {
			content.attribute = attribute;
			memcpy(content.internals, &info, size);
		}
	}
	announce_known();
	tcplab_emit(TCPLAB_SAMPLE, connection->id, now, &content, sizeof(content));
}

/* Only the sides that send data are worth looking at. */
static bool sends_data(const struct connection *connection)
{
	return tcp_sk(connection->sk)->data_segs_out > 0;
}

/* What an ACK did is known once the kernel is done with it. */
static void finish_sample(struct connection *connection)
{
	list_del_init(&connection->unsampled);
	if (samples_acks && sends_data(connection))
		sample(connection, connection->asked);
}

static void finish_samples(struct tasklet_struct *tasklet)
{
	struct connection *connection, *next;

	list_for_each_entry_safe(connection, next, &unsampled, unsampled)
		finish_sample(connection);
}
static DECLARE_TASKLET(finisher, finish_samples);

static void stop_watching(struct connection *connection)
{
	if (!list_empty(&connection->unsampled))
		finish_sample(connection);
	summarise(connection, ktime_get_ns(), TCPLAB_CLOSED);
	hash_del(&connection->by_sock);
	list_del(&connection->list);
	kfree(connection);
}

/* Tracepoints. */

/*
 * tcp_ack_update_rtt() calls this with the RTT of the newest segment that an ACK covers, of those sent
 * once; below zero: there is none. With SACK or without, it is the sample that congestion controls get.
 */
void tcplab_note_rtt(const struct sock *sk, long rtt_us)
{
	struct connection *connection = rtt_us < 0 ? NULL : connection_of(sk);
	struct tcplab_summary *summary;

	if (!connection)
		return;
	summary = &connection->summary;
	connection->rtt_us = rtt_us;
	summary->rtt_count++;
	summary->rtt_sum_us += rtt_us;
	summary->rtt_min_us = min_t(u64, summary->rtt_min_us, rtt_us);
	summary->rtt_max_us = max_t(u64, summary->rtt_max_us, rtt_us);
}

/* Whether it speaks IPv4, as sockets of IPv6 do with peers whose address is a mapped one. */
static bool is_ipv4(const struct sock *sk)
{
#if IS_ENABLED(CONFIG_IPV6)
	if (sk->sk_family == AF_INET6)
		return ipv6_addr_v4mapped(&sk->sk_v6_daddr);
#endif
	return sk->sk_family == AF_INET;
}

/* All that was sent again so far were SYNs or SYN-ACKs. */
static void open_up(const struct sock *sk)
{
	struct connection *connection = connection_of(sk);

	if (!connection)
		return;
	connection->is_open = true;
	connection->control_repeats = tcp_sk(sk)->total_retrans;
}

/* A segment is sent again. Later kernels pass more arguments, which are left alone. */
static void on_repeat(void *data, const struct sock *sk, const struct sk_buff *skb)
{
	struct connection *connection = skb->len ? NULL : connection_of(sk);

	if (connection)
		connection->control_repeats++;
}

static void on_state(void *data, const struct sock *sk, const int old, const int new)
{
	struct connection *connection;

	if (sk->sk_protocol != IPPROTO_TCP || !is_ipv4(sk))
		return;
	connection = connection_of(sk);
	if (!connection && (new == TCP_SYN_SENT || new == TCP_ESTABLISHED))
		begin_watching((struct sock *)sk, new == TCP_SYN_SENT);
	else if (connection && new == TCP_CLOSE)
		stop_watching(connection);
	if (new == TCP_ESTABLISHED)
		open_up(sk);
	announce_known();
}

/* A segment arrived at an established connection, and is about to be looked at. */
static void on_segment(void *data, struct sock *sk, struct sk_buff *skb)
{
	struct connection *connection = connection_of(sk);

	if (!connection)
		return;
	if (!list_empty(&connection->unsampled))
		finish_sample(connection);
	connection->asked = ktime_get_ns();
	if (skb->len > tcp_hdrlen(skb))
		connection->summary.last_arrival = connection->asked;
	list_add_tail(&connection->unsampled, &unsampled);
	tasklet_schedule(&finisher);
}

static void on_congestion_state(void *data, struct sock *sk, const u8 state)
{
	struct connection *connection = connection_of(sk);

	if (!connection)
		return;
	/*
	 * A SYN that is sent again is none of them, nor are packets that were too large for the path: then
	 * a timer still runs (tcp_simple_retransmit).
	 */
	if (connection->is_open && (state != TCP_CA_Loss || !inet_csk(sk)->icsk_pending)) {
		if (state >= TCP_CA_CWR && connection->state < TCP_CA_CWR)
			connection->summary.episodes++;
		else if (state == TCP_CA_Loss && connection->state < TCP_CA_Loss)
			connection->summary.episodes++;
		if (state == TCP_CA_Loss)
			connection->summary.timeouts++;
	}
	connection->state = state;
}

static bool has_ports(const struct iphdr *ip)
{
	return ip->protocol == IPPROTO_TCP || ip->protocol == IPPROTO_UDP;
}

/* Whether it is a notice that says what became of another packet, and begins with its headers. */
static bool quotes_packet(const struct sk_buff *skb)
{
	const struct iphdr *ip = ip_hdr(skb);
	const u8 *icmp = (const u8 *)ip + ip->ihl * 4;

	return ip->protocol == IPPROTO_ICMP && icmp + 8 + sizeof(*ip) + 8 <= skb_tail_pointer(skb) &&
		*icmp == ICMP_DEST_UNREACH;
}

void tcplab_emit_drop(u32 lane, u64 time, const struct sk_buff *skb, const char *reason)
{
	const struct iphdr *ip = ip_hdr(skb);
	const struct iphdr *about = ip;
	const struct udphdr *ports;
	struct tcplab_drop content = {};

	if (tcplab_start == NEVER || skb->protocol != htons(ETH_P_IP) || !skb_network_header(skb))
		return;
	if (ip->version != 4 || (lane == TCPLAB_NO_LANE && !has_ports(ip)))
		return;
	announce_known();
	if (quotes_packet(skb))
		about = (const struct iphdr *)((const u8 *)ip + ip->ihl * 4 + 8);
	content.address = about->saddr;
	content.peer_address = about->daddr;
	if (has_ports(about)) {
		ports = (const struct udphdr *)((const u8 *)about + about->ihl * 4);
		content.port = ntohs(ports->source);
		content.peer_port = ntohs(ports->dest);
	}
	content.bytes = ntohs(ip->tot_len);
	strscpy(content.reason, reason, sizeof(content.reason));
	tcplab_emit(TCPLAB_DROP, lane, time, &content, sizeof(content));
}

static const char * const reasons[] = {
#undef FN
#undef FNe
#define FN(name) [SKB_DROP_REASON_##name] = #name,
#define FNe(name) FN(name)
	DEFINE_DROP_REASON(FN, FNe)
};

static void on_drop(void *data, struct sk_buff *skb, void *location, enum skb_drop_reason reason
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 11, 0)
		    , struct sock *receiver
#endif
)
{
	/* Disciplines drop without a reason what they take out of the queue. */
	if (reason == SKB_DROP_REASON_NOT_SPECIFIED && tcplab_is_working)
		reason = SKB_DROP_REASON_QDISC_DROP;
	if (reason <= SKB_DROP_REASON_NOT_SPECIFIED || reason >= ARRAY_SIZE(reasons) ||
	    !reasons[reason] || skb_network_header_len(skb) < sizeof(struct iphdr))
		return;
	tcplab_note_drop(skb, reasons[reason]);
}

/*
 * Timers. What they look at is looked at by tasklets, which run between other things, so that it is
 * whole. The timers are hard ones: a soft one that runs out would let timers of connections go early
 * that have slack, and to look at a run would change it.
 */

static u64 sample_time, lane_time;

static void take_samples(struct tasklet_struct *tasklet)
{
	struct connection *connection;

	list_for_each_entry(connection, &in_order, list)
		if (sends_data(connection))
			sample(connection, sample_time);
}
static DECLARE_TASKLET(sampler, take_samples);

static void take_lanes(struct tasklet_struct *tasklet)
{
	tcplab_emit_lanes(lane_time);
	tcplab_begin_interval();
}
static DECLARE_TASKLET(lane_sampler, take_lanes);

static enum hrtimer_restart on_sample_timer(struct hrtimer *timer)
{
	sample_time = ktime_to_ns(hrtimer_get_expires(timer));
	tasklet_schedule(&sampler);
	hrtimer_forward(timer, hrtimer_get_expires(timer), ns_to_ktime(sample_interval));
	return HRTIMER_RESTART;
}

static enum hrtimer_restart on_lane_timer(struct hrtimer *timer)
{
	lane_time = ktime_to_ns(hrtimer_get_expires(timer));
	tasklet_schedule(&lane_sampler);
	hrtimer_forward(timer, hrtimer_get_expires(timer), ns_to_ktime(lane_interval));
	return HRTIMER_RESTART;
}

/*
 * Marks: the times at which the counters of all connections are told, for results of a part of the run.
 * They are told by the timer itself, before any softirq of this nanosecond runs: what happens in it comes
 * after the mark.
 */

static struct hrtimer mark_timer;
static u64 marks_from, marks_to, marks_every;	/* after the start of the experiment; 0: only these two */
static u64 duration;

/* The first mark after this time; NEVER for none. The end of the experiment is not one. */
static u64 next_mark(u64 after)
{
	u64 next = marks_from;

	if (after >= marks_to)
		return NEVER;
	if (after >= marks_from && marks_every)
		next += (div64_u64(after - marks_from, marks_every) + 1) * marks_every;
	else if (after >= marks_from)
		next = marks_to;
	next = min(next, marks_to);
	return next < duration ? next : NEVER;
}

static enum hrtimer_restart on_mark(struct hrtimer *timer)
{
	const u64 now = ktime_to_ns(hrtimer_get_expires(timer));
	struct connection *connection;
	u64 next;

	announce_known();
	list_for_each_entry(connection, &in_order, list)
		summarise(connection, now, TCPLAB_MARKED);
	tcplab_emit(TCPLAB_TICK, 3, now, NULL, 0);
	next = next_mark(now - tcplab_start);
	if (next == NEVER)
		return HRTIMER_NORESTART;
	hrtimer_set_expires(timer, ns_to_ktime(tcplab_start + next));
	return HRTIMER_RESTART;
}

static enum hrtimer_restart on_tick(struct hrtimer *timer)
{
	unsigned long flags;

	tcplab_emit(TCPLAB_TICK, 0, ktime_to_ns(hrtimer_get_expires(timer)), NULL, 0);
	local_irq_save(flags);
	flush();
	local_irq_restore(flags);
	hrtimer_forward(timer, hrtimer_get_expires(timer), ns_to_ktime(TICK_NS));
	return HRTIMER_RESTART;
}

static void start_timer(struct hrtimer *timer, enum hrtimer_restart (*on)(struct hrtimer *),
			u64 interval, enum hrtimer_mode mode)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 13, 0)
	hrtimer_setup(timer, on, CLOCK_MONOTONIC, mode);
#else
	hrtimer_init(timer, CLOCK_MONOTONIC, mode);
	timer->function = on;
#endif
	hrtimer_start(timer, ns_to_ktime(tcplab_start + interval), mode);
}

/* /proc/tcplab */

static int begin_marks(char *from, char *to, char *every)
{
	u64 first;

	if (kstrtou64(from, 10, &marks_from) || kstrtou64(to, 10, &marks_to) ||
	    kstrtou64(every, 10, &marks_every))
		return -EINVAL;
	first = next_mark(0);
	if (first != NEVER)
		start_timer(&mark_timer, on_mark, first, HRTIMER_MODE_ABS_HARD);
	return 0;
}

/*
 * begin START DURATION SAMPLES LINKS [FROM TO EVERY]: nanoseconds, `ack` or `off`. The last three are of
 * marks; an EVERY of 0 is none but FROM and TO.
 */
static int begin(char *text)
{
	char *word[7];
	int i;

	for (i = 0; i < 7; i++)
		word[i] = strsep(&text, " ");
	if (!word[3] || kstrtou64(word[0], 10, &tcplab_start) || kstrtou64(word[1], 10, &duration))
		return -EINVAL;
	tcplab_clock_step = experiment_step;
	samples_acks = !strcmp(word[2], "ack");
	if (!samples_acks && strcmp(word[2], "off")) {
		if (kstrtou64(word[2], 10, &sample_interval) || !sample_interval)
			return -EINVAL;
		start_timer(&sample_timer, on_sample_timer, sample_interval, HRTIMER_MODE_ABS_HARD);
	}
	if (strcmp(word[3], "off")) {
		if (kstrtou64(word[3], 10, &lane_interval) || !lane_interval)
			return -EINVAL;
		start_timer(&lane_timer, on_lane_timer, lane_interval, HRTIMER_MODE_ABS_HARD);
	}
	if (word[6] && begin_marks(word[4], word[5], word[6]))
		return -EINVAL;
	tcplab_emit(TCPLAB_TICK, 1, tcplab_start, NULL, 0);
	start_timer(&tick_timer, on_tick, TICK_NS, HRTIMER_MODE_ABS_HARD);
	return 0;
}

static u16 client_port(const struct connection *connection)
{
	const struct inet_sock *inet = inet_sk(connection->sk);

	return ntohs(connection->is_client ? inet->inet_sport : inet->inet_dport);
}

/* A flow whose connections have their clients' ports from some port on. */
struct flow {
	u64 client, server;	/* where the draws of both sides begin */
	u32 client_host, server_host;
	u16 last;		/* the last of its ports */
	bool is_known;
};

/* By the first of their ports. */
static struct flow *flows;

/*
 * draws FIRST LAST CLIENT SERVER CLIENT_HOST SERVER_HOST: where the draws of the connection of the first
 * of these clients' ports begin, on both sides, and the numbers of the hosts. The connections of the
 * ports after it begin one number further each.
 */
static int set_draws(char *text)
{
	u64 word[6];
	int i;

	for (i = 0; i < ARRAY_SIZE(word); i++)
		if (!text || kstrtou64(strsep(&text, " "), 10, &word[i]))
			return -EINVAL;
	if (word[0] > word[1] || word[1] > U16_MAX)
		return -EINVAL;
	if (!flows)
		flows = vzalloc(array_size(U16_MAX + 1, sizeof(*flows)));
	if (!flows)
		return -ENOMEM;
	flows[word[0]] = (struct flow) {
		.client = word[2],
		.server = word[3],
		.client_host = word[4],
		.server_host = word[5],
		.last = word[1],
		.is_known = true,
	};
	/* Where the other ports' flow begins. */
	for (i = word[0] + 1; i <= word[1]; i++)
		flows[i] = (struct flow) { .last = word[0] };
	return 0;
}

/* The first port of the flow to which a client's port belongs; 0 if it belongs to none. */
static u16 first_port(u16 port)
{
	if (!flows)
		return 0;
	return flows[port].is_known ? port : flows[port].last;
}

u64 tcplab_first_draws(u16 port, bool is_client)
{
	u16 first = first_port(port);

	if (!flows)
		return 0;
	/* A program's own port: of the flow before it. */
	for (first = first ? first : port; first && !flows[first].is_known;)
		first--;
	return port - first + (is_client ? flows[first].client : flows[first].server);
}

bool tcplab_flow_of(const struct sk_buff *skb, u64 *draws, u32 *from, u32 *to)
{
	const struct iphdr *ip = ip_hdr(skb);
	const struct udphdr *ports = (const struct udphdr *)((const u8 *)ip + ip->ihl * 4);
	u16 source, target, first;
	bool is_client;

	if (skb->protocol != htons(ETH_P_IP) || !has_ports(ip) || ip_is_fragment(ip))
		return false;
	source = ntohs(ports->source);
	target = ntohs(ports->dest);
	/* Ports of servers are below those of clients. */
	is_client = source > target;
	first = first_port(max(source, target));
	if (!first)
		return false;
	*draws = tcplab_first_draws(max(source, target), is_client);
	*from = is_client ? flows[first].client_host : flows[first].server_host;
	*to = is_client ? flows[first].server_host : flows[first].client_host;
	return true;
}

u64 *tcplab_draws(const struct sock *sk)
{
	struct connection *connection = connection_of(sk);

	if (!connection)
		return NULL;
	if (!connection->has_drawn)
		connection->draws = tcplab_first_draws(client_port(connection), connection->is_client);
	connection->has_drawn = true;
	return &connection->draws;
}

/*
 * session PORT REPORT: another session begins on the connection of this client's port. What it has
 * done so far was of the one before.
 */
static int begin_session(char *text)
{
	char *word = strsep(&text, " ");
	struct connection *connection;
	u64 now = ktime_get_ns();
	u16 port;

	if (!text || kstrtou16(word, 10, &port))
		return -EINVAL;
	local_bh_disable();
	list_for_each_entry(connection, &in_order, list) {
		if (client_port(connection) != port)
			continue;
		summarise(connection, now, TCPLAB_ENDED);
		connection->before = totals(connection);
		connection->before.acked += tcp_sk(connection->sk)->write_seq - tcp_sk(connection->sk)->snd_una;
		connection->summary = (struct tcplab_summary) { .rtt_min_us = NEVER };
	}
	tcplab_emit(TCPLAB_TEXT, 0, now, text, strlen(text));
	local_bh_enable();
	return 0;
}

static void end(void)
{
	struct connection *connection;
	u64 now = ktime_get_ns();
	unsigned long flags;

	local_bh_disable();
	list_for_each_entry(connection, &in_order, list)
		summarise(connection, now, TCPLAB_ENDED);
	/* Lanes last of all: what they have done in the whole experiment, whatever the interval. */
	tcplab_emit_lanes(now);
	tcplab_emit(TCPLAB_TICK, 2, now, NULL, 0);
	local_irq_save(flags);
	flush();
	stream = -1;
	local_irq_restore(flags);
	local_bh_enable();
}

static ssize_t on_write(struct file *file, const char __user *from, size_t count, loff_t *position)
{
	char *text;
	int error = 0;

	if (count > 4096)
		return -EMSGSIZE;
	text = memdup_user_nul(from, count);
	if (IS_ERR(text))
		return PTR_ERR(text);
	if (!strncmp(text, "draws ", 6))
		error = set_draws(strim(text + 6));
	else if (!strncmp(text, "begin ", 6))
		error = begin(strim(text + 6));
	else if (!strncmp(text, "session ", 8))
		error = begin_session(text + 8);
	else if (!strcmp(strim(text), "end"))
		end();
	else
		tcplab_emit(TCPLAB_TEXT, 0, ktime_get_ns(), text, strlen(text));
	kfree(text);
	return error ? error : count;
}

/*
 * Whoever speaks to us sleeps to the nanosecond, and so do the threads that it starts: the kernel wakes
 * others up to 50 us late, to wake several at once, and prctl takes no 0.
 */
static int on_open(struct inode *inode, struct file *file)
{
	current->timer_slack_ns = 0;
	return 0;
}

static const struct proc_ops channel = { .proc_open = on_open, .proc_write = on_write };

static int __init observer_start(void)
{
	int error;

	error = register_trace_inet_sock_set_state(on_state, NULL) ?:
		register_trace_tcp_probe(on_segment, NULL) ?:
		register_trace_tcp_cong_state_set(on_congestion_state, NULL) ?:
		tracepoint_probe_register(&__tracepoint_tcp_retransmit_skb, (void *)on_repeat,
					  NULL) ?:
		register_trace_kfree_skb(on_drop, NULL);
	if (error)
		return error;
	return proc_create("tcplab", 0200, NULL, &channel) ? 0 : -ENOMEM;
}
device_initcall(observer_start);
