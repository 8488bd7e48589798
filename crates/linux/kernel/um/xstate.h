/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Included by arch/x86/um/os-Linux/registers.c.
 *
 * A host takes all of its processor's extended registers or none. Those beyond FP_SIZE (AMX:
 * 8 kB) are not kept for programs here, which cannot use them without asking the host first.
 */
#include <string.h>

static long tcplab_set_xstate(int pid, struct iovec *kept)
{
	static char whole[1 << 16] __attribute__((aligned(64)));
	static unsigned long size;
	struct iovec all = { .iov_base = whole, .iov_len = sizeof(whole) };

	if (!size) {
		if (ptrace(PTRACE_GETREGSET, pid, NT_X86_XSTATE, &all) < 0)
			return -1;
		size = all.iov_len;
		memset(whole, 0, size);
	}
	if (size <= kept->iov_len)
		return ptrace(PTRACE_SETREGSET, pid, NT_X86_XSTATE, kept);
	memcpy(whole, kept->iov_base, kept->iov_len);
	all.iov_len = size;
	return ptrace(PTRACE_SETREGSET, pid, NT_X86_XSTATE, &all);
}
