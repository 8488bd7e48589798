// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Compound TCP as a congestion control of the Linux kernel.
 *
 * The window is cwnd + dwnd: NewReno's window, and one beside it that grows
 * fast while queues are short and gives way as they build up. Once a round
 * trip, with diff = win (1 - baseRTT / RTT) for the segments in queues:
 *
 *	diff < gamma:	dwnd += win^(3/4) / 8 - 1
 *	else:		dwnd -= diff
 *
 * A loss leaves half of the whole, of which half of cwnd is cwnd; a timeout
 * leaves no dwnd. After each loss gamma goes towards 3/4 of what NewReno alone
 * would have had waiting (tuning by emulation).
 *
 * Written for tcplab from draft-sridharan-tcpm-ctcp-02 (2008) and from tcplab's
 * own crates/cc/src/compound.rs, whose windows it has at every ACK. It keeps
 * the whole window in snd_cwnd, so that the rest of the kernel's TCP needs to
 * know nothing of dwnd.
 */

#include <linux/math64.h>
#include <linux/module.h>
#include <net/tcp.h>

/* dwnd, diff and gamma are in 1/1024 segment. */
#define ONE		1024U
/* No RTT yet, in microseconds. */
#define UNKNOWN		0x7fffffffU
/* Windows are not taken for larger: the products below have 64 bits. */
#define MOST_SEGMENTS	(1U << 22)
/* Andrew's module for Linux (2008): gamma goes a quarter of the way. */
#define LAMBDA		(ONE / 4)

static unsigned int gamma __read_mostly = 30;
module_param(gamma, uint, 0644);
MODULE_PARM_DESC(gamma, "segments that may wait in queues before dwnd gives way");
static bool gamma_tuning __read_mostly = true;
module_param(gamma_tuning, bool, 0644);
MODULE_PARM_DESC(gamma_tuning, "gamma follows what NewReno would have waiting at a loss");
static unsigned int gamma_low __read_mostly = 5;
module_param(gamma_low, uint, 0644);
MODULE_PARM_DESC(gamma_low, "tuning does not go below this");
static unsigned int gamma_high __read_mostly = 30;
module_param(gamma_high, uint, 0644);
MODULE_PARM_DESC(gamma_high, "tuning does not go above this");
static unsigned int low_window __read_mostly = 38;
module_param(low_window, uint, 0644);
MODULE_PARM_DESC(low_window, "dwnd does not grow in a smaller window, in segments");

/* What is taken back with a reduction that was a false alarm. */
struct delay {
	u64	dwnd;		/* whole segments of it are part of snd_cwnd */
	u32	base_rtt;	/* least RTT of the flow, in microseconds */
	u32	gamma;
	u32	diff_reno;	/* what NewReno would have waiting */
	bool	has_diff_reno;	/* measured since the last loss */
};

struct compound {
	struct delay now;
	struct delay before;	/* the last reduction */
	u32	least;		/* least RTT of the round trip, in microseconds */
	u32	begin;		/* snd_nxt when the round trip began */
	bool	begins;		/* the next call of cong_avoid begins one */
	bool	has_before;
};

/* In 1/1024, of segments that a parameter has. */
static u32 fixed(u32 segments)
{
	return min_t(u64, (u64)segments * ONE, U32_MAX);
}

/* Nothing is known of the path. */
static void compound_forget(struct compound *ca)
{
	ca->now = (struct delay) { .base_rtt = UNKNOWN, .gamma = fixed(gamma) };
	ca->begins = true;
}

/* The part of the window that losses govern. */
static u32 compound_cwnd(const struct sock *sk)
{
	const struct compound *ca = inet_csk_ca(sk);
	u32 win = tcp_snd_cwnd(tcp_sk(sk));
	u64 dwnd = ca->now.dwnd / ONE;

	return dwnd < win ? win - (u32)dwnd : 0;
}

/* The kernel may have made snd_cwnd smaller since: dwnd is a part of it. */
static void compound_fit(struct sock *sk)
{
	struct compound *ca = inet_csk_ca(sk);

	ca->now.dwnd = min(ca->now.dwnd, (u64)tcp_snd_cwnd(tcp_sk(sk)) * ONE);
}

static void compound_set_dwnd(struct sock *sk, u64 dwnd)
{
	struct compound *ca = inet_csk_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	u64 win = compound_cwnd(sk) + dwnd / ONE;

	ca->now.dwnd = dwnd;
	tcp_snd_cwnd_set(tp, clamp_t(u64, win, 1, tp->snd_cwnd_clamp));
}

/* What dwnd grows by in a round trip, for both to grow by win^(3/4) / 8. */
static u64 compound_growth(u32 win)
{
	/* The inner root is in 1/2^20, so the outer one is in 1/2^10. */
	u64 power = int_sqrt64((u64)win * int_sqrt64((u64)win << 40));
	u64 both = power / 8;

	return both > ONE ? min(both - ONE, (u64)win * ONE) : 0;
}

/* Of so many segments, what waits in queues if a round trip takes rtt. */
static u32 compound_queued(const struct compound *ca, u32 segments, u32 rtt)
{
	u32 waited = rtt > ca->now.base_rtt ? rtt - ca->now.base_rtt : 0;

	return div_u64((u64)min(segments, MOST_SEGMENTS) * ONE * waited, rtt);
}

/* A round trip in congestion avoidance is over, of which rtt is the least. */
static void compound_adjust(struct sock *sk, u32 rtt)
{
	struct compound *ca = inet_csk_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	u32 win = tcp_snd_cwnd(tp), diff;

	if (!rtt || rtt == UNKNOWN)
		return;
	diff = compound_queued(ca, win, rtt);
	ca->now.diff_reno = compound_queued(ca, compound_cwnd(sk), rtt);
	ca->now.has_diff_reno = true;

	if (diff >= ca->now.gamma) {
		compound_set_dwnd(sk, ca->now.dwnd > diff ? ca->now.dwnd - diff : 0);
		/* Slow start would take it all back. */
		tp->snd_ssthresh = min(tp->snd_ssthresh, tcp_snd_cwnd(tp));
	} else if (win >= low_window) {
		compound_set_dwnd(sk, ca->now.dwnd +
				      compound_growth(min(win, MOST_SEGMENTS)));
	}
}

/* Gamma goes towards 3/4 of what NewReno had waiting in a full queue. */
static void compound_tune(struct compound *ca)
{
	u64 sample = (u64)ca->now.diff_reno * 3 / 4;
	u64 tuned = ((u64)(ONE - LAMBDA) * ca->now.gamma + LAMBDA * sample) / ONE;

	if (ca->now.has_diff_reno && gamma_tuning)
		ca->now.gamma = max_t(u64, min_t(u64, tuned, fixed(gamma_high)),
				      fixed(gamma_low));
	ca->now.has_diff_reno = false;
}

static void compound_init(struct sock *sk)
{
	struct compound *ca = inet_csk_ca(sk);

	compound_forget(ca);
	ca->least = UNKNOWN;
	ca->has_before = false;
}

static void compound_pkts_acked(struct sock *sk, const struct ack_sample *sample)
{
	struct compound *ca = inet_csk_ca(sk);
	u32 rtt;

	if (sample->rtt_us < 0)
		return;
	rtt = clamp_t(u32, sample->rtt_us, 1, UNKNOWN - 1);
	ca->now.base_rtt = min(ca->now.base_rtt, rtt);
	ca->least = min(ca->least, rtt);
}

static void compound_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	struct compound *ca = inet_csk_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	bool is_over = !ca->begins && after(ack, ca->begin);
	bool is_starting = tcp_in_slow_start(tp);
	u32 rtt = ca->least;

	if (ca->begins || is_over) {
		ca->least = UNKNOWN;
		ca->begin = tp->snd_nxt;
		ca->begins = false;
	}
	if (!tcp_is_cwnd_limited(sk))
		return;
	compound_fit(sk);
	if (is_starting)
		acked = tcp_slow_start(tp, acked);
	if (acked)
		tcp_cong_avoid_ai(tp, tcp_snd_cwnd(tp), acked);
	if (is_over && !is_starting)
		compound_adjust(sk, rtt);
}

/* Called once for each reduction, when snd_cwnd is still the old one. */
static u32 compound_ssthresh(struct sock *sk)
{
	struct compound *ca = inet_csk_ca(sk);
	u32 kept = max(tcp_snd_cwnd(tcp_sk(sk)) / 2, 2U);
	u64 half, rest;

	compound_fit(sk);
	ca->before = ca->now;
	ca->has_before = true;
	half = (u64)compound_cwnd(sk) * ONE / 2;
	rest = (u64)kept * ONE > half ? (u64)kept * ONE - half : 0;
	compound_tune(ca);
	ca->now.dwnd = min(rest, ca->now.dwnd);
	/* RTTs until the repair is over tell of the repair. */
	ca->begins = true;
	return kept;
}

static u32 compound_undo_cwnd(struct sock *sk)
{
	struct compound *ca = inet_csk_ca(sk);

	if (ca->has_before) {
		u32 base_rtt = min(ca->now.base_rtt, ca->before.base_rtt);

		ca->now = ca->before;
		ca->now.base_rtt = base_rtt;
		ca->has_before = false;
	}
	return tcp_reno_undo_cwnd(sk);
}

static void compound_set_state(struct sock *sk, u8 state)
{
	/* After a timeout the path may be another. */
	if (state == TCP_CA_Loss)
		compound_forget(inet_csk_ca(sk));
}

static void compound_cwnd_event(struct sock *sk, enum tcp_ca_event event)
{
	struct compound *ca = inet_csk_ca(sk);

	/* What delay allowed was for the path as it was before the pause. */
	if (event == CA_EVENT_CWND_RESTART) {
		ca->now.dwnd = 0;
		ca->has_before = false;
		ca->begins = true;
	}
}

static struct tcp_congestion_ops compound __read_mostly = {
	.name		= "compound",
	.owner		= THIS_MODULE,
	.init		= compound_init,
	.ssthresh	= compound_ssthresh,
	.cong_avoid	= compound_cong_avoid,
	.pkts_acked	= compound_pkts_acked,
	.set_state	= compound_set_state,
	.cwnd_event	= compound_cwnd_event,
	.undo_cwnd	= compound_undo_cwnd,
};

static int __init compound_register(void)
{
	BUILD_BUG_ON(sizeof(struct compound) > ICSK_CA_PRIV_SIZE);
	return tcp_register_congestion_control(&compound);
}

static void __exit compound_unregister(void)
{
	tcp_unregister_congestion_control(&compound);
}

module_init(compound_register);
module_exit(compound_unregister);
MODULE_DESCRIPTION("Compound TCP");
MODULE_LICENSE("Dual MIT/GPL");
