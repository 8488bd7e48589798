// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * What the kernel takes for the machine's own random numbers: always the same ones, so that hash
 * seeds, initial sequence numbers and everything else it draws repeat from boot to boot. And what
 * congestion controls draw: the numbers that `sim` gives the same flow (crates/cc/src/random.rs).
 */
#include <linux/kernel.h>
#include <linux/math64.h>
#include <linux/random.h>
#include <linux/types.h>
#include "record.h"

ssize_t tcplab_getrandom(void *buffer, size_t length, unsigned int flags);

#define STEP 0x9e3779b97f4a7c15ULL

/* SplitMix64 (Steele, Lea, Flood 2014). */
u64 tcplab_mix(u64 value)
{
	value += STEP;
	value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ULL;
	value = (value ^ (value >> 27)) * 0x94d049bb133111ebULL;
	return value ^ (value >> 31);
}

static u64 next(u64 *state)
{
	u64 value = tcplab_mix(*state);

	*state += STEP;
	return value;
}

u64 tcplab_bits(const struct sock *sk)
{
	u64 *state = tcplab_draws(sk);

	return state ? next(state) : get_random_u64();
}

u32 tcplab_below(const struct sock *sk, u32 limit)
{
	return mul_u64_u64_shr(tcplab_bits(sk), limit, 64);
}

u32 tcplab_word(const struct sock *sk)
{
	return tcplab_bits(sk) >> 32;
}

u8 tcplab_byte(const struct sock *sk)
{
	return tcplab_bits(sk) >> 56;
}

/* The client's congestion control may depend on it (TCP-LP), so it is the first that this would draw. */
u32 tcplab_ts_off(u16 port)
{
	u64 state = tcplab_first_draws(port, true);

	return next(&state) >> 32;
}

/* The kernel hashes what it gets; this only has to differ. */
ssize_t tcplab_getrandom(void *buffer, size_t length, unsigned int flags)
{
	static u64 state;
	u8 *bytes = buffer;
	size_t i;

	for (i = 0; i < length; i++)
		bytes[i] = next(&state);
	return length;
}
