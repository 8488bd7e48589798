// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * What the kernel takes for the machine's own random numbers: always the same ones, so that hash
 * seeds, initial sequence numbers and everything else it draws repeat from boot to boot.
 */
#include <linux/kernel.h>
#include <linux/types.h>

ssize_t tcplab_getrandom(void *buffer, size_t length, unsigned int flags);

/* SplitMix64 (Steele, Lea, Flood 2014). The kernel hashes what it gets; this only has to differ. */
ssize_t tcplab_getrandom(void *buffer, size_t length, unsigned int flags)
{
	static u64 state;
	u8 *bytes = buffer;
	size_t i;

	for (i = 0; i < length; i++) {
		u64 value = state += 0x9e3779b97f4a7c15ULL;

		value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ULL;
		value = (value ^ (value >> 27)) * 0x94d049bb133111ebULL;
		bytes[i] = value ^ (value >> 31);
	}
	return length;
}
