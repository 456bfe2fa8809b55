#include "inject/remote_frame.h"

#if defined(__x86_64__)

#include <cpuid.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

/* arch/x86: struct rt_sigframe from its return address on, as rt_sigreturn reads it. */
struct frame {
	uint64_t restore;
	uint64_t flags, link;
	struct {
		uint64_t sp;
		int32_t flags, pad;
		uint64_t size;
	} altstack;
	uint64_t r8, r9, r10, r11, r12, r13, r14, r15, di, si, bp, bx, dx, ax, cx, sp, ip, eflags;
	uint16_t cs, gs, fs, ss;
	uint64_t err, trapno, oldmask, cr2, fpstate, reserved[8];
	uint64_t mask;
};

#define UC_FP_XSTATE         1
#define UC_SIGCONTEXT_SS     2
#define UC_STRICT_RESTORE_SS 4
#define NO_SUCH_ALTSTACK     7 /* the kernel leaves it as it is when these flags make no sense */

/* At 464 of the legacy area, and behind all of it: what is in it (uapi/asm/sigcontext.h). */
#define SW_OFFSET   464
#define XCR0_OFFSET 464 /* in what ptrace gives */
#define MAGIC1      0x46505853u
#define MAGIC2      0x46505845u
struct sw_bytes {
	uint32_t magic1, extended_size;
	uint64_t features;
	uint32_t xstate_size, padding[7];
};

#define LEGACY_BYTES  512
#define HEADER_BYTES  64
#define XFEATURES_AMX (3ULL << 17) /* of a size that not every thread may have */

/* The state of vector registers in the form of a signal's. Returns its bytes with the magic. */
static size_t xstate_for_signal(const struct remote *t, uint8_t *out)
{
	uint64_t features;
	struct sw_bytes sw = { 0 };
	uint32_t size = LEGACY_BYTES + HEADER_BYTES, magic2 = MAGIC2;

	memcpy(&features, t->xstate + XCR0_OFFSET, sizeof(features));
	features &= ~XFEATURES_AMX;
	for (unsigned i = 2; i < 63; i++) {
		unsigned a, b, c, d;

		if (!(features >> i & 1) || !__get_cpuid_count(0xd, i, &a, &b, &c, &d))
			continue;
		if (a + b > size)
			size = a + b;
	}
	if (size > t->xstate_bytes)
		size = (uint32_t)t->xstate_bytes;
	memcpy(out, t->xstate, size);
	sw.magic1 = MAGIC1;
	sw.extended_size = size + (uint32_t)sizeof(magic2);
	sw.features = features;
	sw.xstate_size = size;
	memcpy(out + SW_OFFSET, &sw, sizeof(sw));
	memcpy(out + size, &magic2, sizeof(magic2));
	return size + sizeof(magic2);
}

int remote_frame_put(struct remote *t, const struct user_regs_struct *r, uint64_t stack,
		     uint64_t restore, uint64_t *ret_sp)
{
	static uint8_t fp[REMOTE_XSTATE_MAX + 64] __attribute__((aligned(64)));
	size_t fp_bytes = xstate_for_signal(t, fp);
	uint64_t fp_at = (stack - fp_bytes) & ~63ULL;
	/* The stack is aligned before a call, and 8 off at the entry of a function. */
	uint64_t at = ((fp_at - sizeof(struct frame)) & ~15ULL) - 8;
	struct frame f = {
		.restore = restore,
		.flags = UC_FP_XSTATE | UC_SIGCONTEXT_SS | UC_STRICT_RESTORE_SS,
		.altstack.flags = NO_SUCH_ALTSTACK,
		.r8 = r->r8,
		.r9 = r->r9,
		.r10 = r->r10,
		.r11 = r->r11,
		.r12 = r->r12,
		.r13 = r->r13,
		.r14 = r->r14,
		.r15 = r->r15,
		.di = r->rdi,
		.si = r->rsi,
		.bp = r->rbp,
		.bx = r->rbx,
		.dx = r->rdx,
		.ax = r->rax,
		.cx = r->rcx,
		.sp = r->rsp,
		.ip = r->rip,
		.eflags = r->eflags,
		.cs = (uint16_t)r->cs,
		.ss = (uint16_t)r->ss,
		.fpstate = fp_at,
		.mask = t->mask,
	};

	if (pwrite(t->mem_fd, fp, fp_bytes, (off_t)fp_at) != (ssize_t)fp_bytes ||
	    pwrite(t->mem_fd, &f, sizeof(f), (off_t)at) != (ssize_t)sizeof(f))
		return -EFAULT;
	*ret_sp = at;
	return 0;
}

#endif
