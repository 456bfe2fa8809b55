#include "inject/filter.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/bpf_common.h>
#include <linux/sched.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>

#ifndef PTRACE_SECCOMP_GET_FILTER
#define PTRACE_SECCOMP_GET_FILTER 0x420c
#endif

#define PROGRAMS_MAX 1024 /* the kernel has room for 32,768 instructions in all */

/* --- one program ------------------------------------------------------------------------------ */

#define ALL_KNOWN (~0ULL)

/* Its registers. Jumps lead forward alone, so that it ends. */
struct machine {
	uint32_t a, x, mem[BPF_MEMWORDS];
};

static int load(const struct seccomp_data *data, uint64_t known, uint32_t off, uint32_t *ret)
{
	if (off % 4 || off > sizeof(*data) - 4)
		return -EBADMSG;
	if ((known >> off & 0xf) != 0xf)
		return -EDOM;
	memcpy(ret, (const char *)data + off, 4);
	return 0;
}

static int compute(struct machine *m, uint16_t code, uint32_t k)
{
	uint32_t v = BPF_SRC(code) == BPF_X ? m->x : k;

	switch (BPF_OP(code)) {
	case BPF_ADD:
		m->a += v;
		return 0;
	case BPF_SUB:
		m->a -= v;
		return 0;
	case BPF_MUL:
		m->a *= v;
		return 0;
	case BPF_DIV:
		/* The kernel ends a program with 0 that divides by 0. */
		if (!v)
			return 1;
		m->a /= v;
		return 0;
	case BPF_AND:
		m->a &= v;
		return 0;
	case BPF_OR:
		m->a |= v;
		return 0;
	case BPF_XOR:
		m->a ^= v;
		return 0;
	case BPF_LSH:
		m->a <<= v & 31;
		return 0;
	case BPF_RSH:
		m->a >>= v & 31;
		return 0;
	case BPF_NEG:
		m->a = -m->a;
		return 0;
	}
	return -EBADMSG;
}

static bool compare(const struct machine *m, uint16_t code, uint32_t k)
{
	uint32_t v = BPF_SRC(code) == BPF_X ? m->x : k;

	switch (BPF_OP(code)) {
	case BPF_JEQ:
		return m->a == v;
	case BPF_JGT:
		return m->a > v;
	case BPF_JGE:
		return m->a >= v;
	}
	return m->a & v; /* BPF_JSET */
}

/* One that neither jumps nor returns. 1: the program ends with 0. */
static int execute(struct machine *m, const struct sock_filter *i, const struct seccomp_data *data,
		   uint64_t known)
{
	switch (i->code) {
	case BPF_LD | BPF_W | BPF_ABS:
		return load(data, known, i->k, &m->a);
	case BPF_LD | BPF_W | BPF_LEN:
		m->a = sizeof(*data);
		return 0;
	case BPF_LDX | BPF_W | BPF_LEN:
		m->x = sizeof(*data);
		return 0;
	case BPF_LD | BPF_IMM:
		m->a = i->k;
		return 0;
	case BPF_LDX | BPF_IMM:
		m->x = i->k;
		return 0;
	case BPF_MISC | BPF_TAX:
		m->x = m->a;
		return 0;
	case BPF_MISC | BPF_TXA:
		m->a = m->x;
		return 0;
	}
	if (BPF_CLASS(i->code) == BPF_ALU)
		return compute(m, i->code, i->k);
	if (i->k >= BPF_MEMWORDS)
		return -EBADMSG;
	switch (i->code) {
	case BPF_LD | BPF_MEM:
		m->a = m->mem[i->k];
		return 0;
	case BPF_LDX | BPF_MEM:
		m->x = m->mem[i->k];
		return 0;
	case BPF_ST:
		m->mem[i->k] = m->a;
		return 0;
	case BPF_STX:
		m->mem[i->k] = m->x;
		return 0;
	}
	return -EBADMSG;
}

int filter_run(const struct sock_filter *insns, uint32_t n, const struct seccomp_data *data,
	       uint64_t known, uint32_t *ret_action)
{
	struct machine m = { 0 };

	for (uint64_t pc = 0; pc < n; pc++) {
		const struct sock_filter *i = &insns[pc];
		int r;

		switch (BPF_CLASS(i->code)) {
		case BPF_RET:
			if (i->code != (BPF_RET | BPF_K) && i->code != (BPF_RET | BPF_A))
				return -EBADMSG;
			*ret_action = i->code == (BPF_RET | BPF_K) ? i->k : m.a;
			return 0;
		case BPF_JMP:
			if (BPF_OP(i->code) == BPF_JA)
				pc += i->k;
			else if (BPF_OP(i->code) <= BPF_JSET)
				pc += compare(&m, i->code, i->k) ? i->jt : i->jf;
			else
				return -EBADMSG;
			break;
		default:
			r = execute(&m, i, data, known);
			if (r < 0)
				return r;
			if (r > 0) {
				*ret_action = SECCOMP_RET_KILL_THREAD;
				return 0;
			}
		}
	}
	return -EBADMSG;
}

/* --- those of a thread ------------------------------------------------------------------------ */

void filters_fini(struct filters *f)
{
	for (uint32_t i = 0; i < f->n; i++)
		free(f->programs[i].insns);
	free(f->programs);
	memset(f, 0, sizeof(*f));
}

static int cannot_read(pid_t tid, int error, struct err *e)
{
	if (error == EACCES)
		return err_set(
			e, -EPERM,
			"thread %d is under a seccomp filter, and memscope may not read it: it lacks "
			"CAP_SYS_ADMIN, or is under a filter itself",
			(int)tid);
	if (error == EINVAL || error == EIO)
		return err_set(
			e, -EPERM,
			"thread %d is under a seccomp filter, and this kernel does not say what it "
			"allows (CONFIG_CHECKPOINT_RESTORE)",
			(int)tid);
	return err_set(e, -error, "cannot read the seccomp filters of thread %d: %s", (int)tid,
		       strerror(error));
}

/* The kernel says how many instructions it has, and then which. */
static int read_one(pid_t tid, uint32_t ix, struct filter_program *ret)
{
	long n = ptrace(PTRACE_SECCOMP_GET_FILTER, tid, (void *)(uintptr_t)ix, NULL);
	struct sock_filter *insns;

	if (n < 0)
		return -errno;
	if (n < 1 || n > BPF_MAXINSNS)
		return -EINVAL;
	insns = calloc((size_t)n, sizeof(*insns));
	if (!insns)
		return -ENOMEM;
	if (ptrace(PTRACE_SECCOMP_GET_FILTER, tid, (void *)(uintptr_t)ix, insns) != n) {
		free(insns);
		return -EAGAIN;
	}
	*ret = (struct filter_program){ insns, (uint32_t)n };
	return 0;
}

int filters_read(pid_t tid, struct filters *ret_filters, struct err *e)
{
	_cleanup_(filters_fini) struct filters f = { 0 };

	for (;;) {
		struct filter_program *more = realloc(f.programs, (f.n + 1) * sizeof(*more));
		int r = more ? 0 : -ENOMEM;

		if (r == 0) {
			f.programs = more;
			r = f.n < PROGRAMS_MAX ? read_one(tid, f.n, &more[f.n]) : -EFBIG;
		}
		/* The kernel's word for: there are no more. EINVAL of the first: there is none at all. */
		if (r == -ENOENT)
			break;
		if (r < 0)
			return cannot_read(tid, -r, e);
		f.n++;
	}
	*ret_filters = f;
	memset(&f, 0, sizeof(f));
	return 0;
}

int filters_run(const struct filters *f, const struct seccomp_data *data, uint64_t known,
		uint32_t *ret_action)
{
	uint32_t worst = SECCOMP_RET_ALLOW;

	for (uint32_t i = 0; i < f->n; i++) {
		uint32_t action;
		int r = filter_run(f->programs[i].insns, f->programs[i].n, data, known, &action);

		if (r < 0)
			return r;
		/* Of equals the newest counts, which is the last. */
		if ((int32_t)(action & SECCOMP_RET_ACTION_FULL) <=
		    (int32_t)(worst & SECCOMP_RET_ACTION_FULL))
			worst = action;
	}
	*ret_action = worst;
	return 0;
}

/* --- what is called --------------------------------------------------------------------------- */

#define PR_NAME 15

enum when { ALWAYS, WITH_EXACT, WITH_MEMFD };

/* Arguments that decide: bit n of `known` for args[n]. */
struct call {
	const char *name;
	int number;
	bool may_fail; /* an error is handled, or nothing is lost by it */
	uint8_t known;
	uint64_t args[4];
	enum when when;
};

#if defined(__x86_64__)

#define ANONYMOUS (MAP_PRIVATE | MAP_ANONYMOUS)
#define STACK     (ANONYMOUS | MAP_STACK | MAP_NORESERVE)
#define THREAD                                                                                     \
	(CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM |        \
	 CLONE_SETTLS | CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID)

static const struct call calls[] = {
	/* Of the thread that is borrowed: memory, a thread, the way back. */
	{ "mmap",
	  SYS_mmap,
	  false,
	  0xc,
	  { 0, 0, PROT_READ | PROT_WRITE, ANONYMOUS | MAP_FIXED_NOREPLACE } },
	{ "munmap", SYS_munmap },
	{ "mprotect (executable)", SYS_mprotect, false, 4, { 0, 0, PROT_READ | PROT_EXEC } },
	{ "rt_sigreturn", SYS_rt_sigreturn },
	{ "ppoll", SYS_ppoll },
	{ "mmap", SYS_mmap, false, 0xc, { 0, 0, PROT_NONE, STACK } },
	{ "mprotect", SYS_mprotect, false, 4, { 0, 0, PROT_READ | PROT_WRITE } },
	{ "rt_sigprocmask", SYS_rt_sigprocmask },
	{ "rt_sigaction", SYS_rt_sigaction },
	{ "clone3", SYS_clone3, false },
	{ "futex", SYS_futex },
	/* Of the thread that is started. */
	{ "set_robust_list", SYS_set_robust_list, true },
	{ "rseq", SYS_rseq, true },
	{ "close_range", SYS_close_range, false, 7, { 0, ~0U, 2 } },
	{ "gettid", SYS_gettid },
	{ "getpid", SYS_getpid },
	{ "exit", SYS_exit },
	{ "madvise", SYS_madvise, true },
	{ "sched_getaffinity", SYS_sched_getaffinity, true },
	{ "getrandom", SYS_getrandom, true },
	{ "brk", SYS_brk, true },
	{ "mmap", SYS_mmap, false, 0xc, { 0, 0, PROT_NONE, ANONYMOUS | MAP_NORESERVE } },
	{ "mmap", SYS_mmap, false, 0xc, { 0, 0, PROT_READ | PROT_WRITE, ANONYMOUS } },
	/* Of the dynamic linker: memfd or path. */
	{ "memfd_create", SYS_memfd_create, false, 2, { 0, 3 }, WITH_MEMFD },
	{ "openat", SYS_openat },
	{ "read", SYS_read },
	{ "pread64", SYS_pread64, true },
	{ "fstat", SYS_fstat, true }, /* one of these two, by the version */
	{ "newfstatat", SYS_newfstatat, true },
	{ "close", SYS_close },
	{ "mmap", SYS_mmap, false, 0xc, { 0, 0, PROT_READ, MAP_PRIVATE | MAP_DENYWRITE } },
	{ "mmap (executable)",
	  SYS_mmap,
	  false,
	  0xc,
	  { 0, 0, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED | MAP_DENYWRITE } },
	{ "mmap",
	  SYS_mmap,
	  false,
	  0xc,
	  { 0, 0, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED | MAP_DENYWRITE } },
	{ "mprotect", SYS_mprotect, false, 4, { 0, 0, PROT_READ } },
	/* Of the library. */
	{ "prctl (PR_SET_NAME)", SYS_prctl, true, 1, { PR_NAME } },
	{ "pipe2", SYS_pipe2 },
	{ "poll", SYS_poll },
	{ "write", SYS_write },
	{ "clock_nanosleep", SYS_clock_nanosleep, true },
	{ "memfd_create", SYS_memfd_create, false, 2, { 0, 3 }, WITH_EXACT },
	{ "mmap (shared)",
	  SYS_mmap,
	  false,
	  0xc,
	  { 0, 0, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE },
	  WITH_EXACT },
	{ "membarrier", SYS_membarrier, true, 0, { 0 }, WITH_EXACT },
	/* Of the library, in the program's own threads. */
	{ "process_vm_readv", SYS_process_vm_readv, true, 0, { 0 }, WITH_EXACT },
	{ "sigaltstack", SYS_sigaltstack, true, 0, { 0 }, WITH_EXACT },
	{ "tgkill", SYS_tgkill, true, 0, { 0 }, WITH_EXACT },
};

#else
static const struct call calls[] = { { "none", -1 } };
#endif

static bool is_made(const struct call *c, bool exact, bool memfd)
{
	return c->when == ALWAYS || (c->when == WITH_EXACT && exact) ||
	       (c->when == WITH_MEMFD && memfd);
}

uint32_t filter_calls(bool exact, bool memfd, uint32_t *ret_numbers, uint32_t cap)
{
	uint32_t n = 0;

	for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++)
		if (is_made(&calls[i], exact, memfd) && n < cap)
			ret_numbers[n++] = (uint32_t)calls[i].number;
	return n;
}

/* What the filters say of a call. The instruction's address, and other arguments, are not known. */
static int answer(const struct filters *f, const struct call *c, uint32_t *ret_action)
{
	struct seccomp_data data = { .nr = c->number, .arch = AUDIT_ARCH_X86_64 };
	uint64_t known = 0xff; /* nr, arch */

	for (int i = 0; i < 4; i++) {
		data.args[i] = c->args[i];
		if (c->known >> i & 1)
			known |= 0xffULL << (offsetof(struct seccomp_data, args) + 8 * (size_t)i);
	}
	return filters_run(f, &data, known, ret_action);
}

static bool is_error(uint32_t action)
{
	action &= SECCOMP_RET_ACTION_FULL;
	/* Without a tracer that asked for it, the call fails with ENOSYS: we do not. */
	return action == SECCOMP_RET_ERRNO || action == SECCOMP_RET_TRACE;
}

static bool is_allowed(uint32_t action)
{
	action &= SECCOMP_RET_ACTION_FULL;
	return action == SECCOMP_RET_ALLOW || action == SECCOMP_RET_LOG;
}

static void describe(int r, uint32_t action, char *buf, size_t cap)
{
	const char *what = "it would end the process";

	if (r == -EDOM)
		what = "its answer depends on more than is known before";
	else if (r < 0)
		what = "it is not understood";
	else if ((action & SECCOMP_RET_ACTION_FULL) == SECCOMP_RET_ERRNO) {
		const char *name = strerrorname_np((int)(action & SECCOMP_RET_DATA));

		snprintf(buf, cap, "it would fail with %s", name ? name : "an error");
		return;
	} else if ((action & SECCOMP_RET_ACTION_FULL) == SECCOMP_RET_TRACE)
		what = "it would be handed to a tracer";
	else if ((action & SECCOMP_RET_ACTION_FULL) == SECCOMP_RET_USER_NOTIF)
		what = "another process would be asked";
	else if ((action & SECCOMP_RET_ACTION_FULL) == SECCOMP_RET_TRAP)
		what = "it would raise SIGSYS";
	else if ((action & SECCOMP_RET_ACTION_FULL) == SECCOMP_RET_KILL_THREAD)
		what = "it would end the thread";
	snprintf(buf, cap, "%s", what);
}

static int denied(pid_t pid, const struct call *c, int r, uint32_t action, struct err *e)
{
	char what[96];

	describe(r, action, what, sizeof(what));
	return err_set(
		e, -EPERM,
		"process %d is under a seccomp filter that does not allow %s, which loading the "
		"library takes: %s",
		(int)pid, c->name, what);
}

int filters_check(const struct filters *f, pid_t pid, bool exact, bool memfd, struct err *e)
{
#if defined(__x86_64__)
	/* What the C library does where clone3 is not known, as for Docker's profile before 2021. */
	static const struct call clone = { "clone", SYS_clone, false, 1, { THREAD } };
#endif

	for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++) {
		const struct call *c = &calls[i];
		uint32_t action = 0;
		int r;

		if (!is_made(c, exact, memfd))
			continue;
		r = answer(f, c, &action);
#if defined(__x86_64__)
		if (r == 0 && c->number == SYS_clone3 && is_error(action) &&
		    ((action & SECCOMP_RET_ACTION_FULL) == SECCOMP_RET_TRACE ||
		     (action & SECCOMP_RET_DATA) == ENOSYS)) {
			c = &clone;
			r = answer(f, c, &action);
		}
#endif
		if (r < 0 || !(is_allowed(action) || (c->may_fail && is_error(action))))
			return denied(pid, c, r, action, e);
	}
	return 0;
}

bool filters_allow_skipping(const struct filters *f)
{
	static const struct call skipped = { "-1", -1 };
	uint32_t action = 0;

	return answer(f, &skipped, &action) == 0 && (is_allowed(action) || is_error(action));
}
