#include "base/cell.h"
#include "base/cleanup.h"
#include "base/rights.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

/*
 * Users of our own begin above those that containers and services are given (systemd, "Users, Groups, UIDs and GIDs": up to 0x6fffffff),
 * and each process number has one.
 */
enum { NOBODY = 65534, FIRST_USER = 0x70000000, CLOSE_LAST = 0x7fffffff };

/* --- limits, descriptors ---------------------------------------------------------------------- */

static int compare_ints(const void *a, const void *b)
{
	int x = *(const int *)a, y = *(const int *)b;

	return x < y ? -1 : x > y;
}

static void close_others(const struct cell *c)
{
	int keep[16], from = 0;
	uint32_t n = c->n_keep < 16 ? c->n_keep : 16;

	memcpy(keep, c->keep, n * sizeof(*keep));
	qsort(keep, n, sizeof(*keep), compare_ints);
	for (uint32_t i = 0; i < n; i++) {
		if (keep[i] < 0)
			continue;
		if (keep[i] > from)
			syscall(SYS_close_range, from, keep[i] - 1, 0);
		from = keep[i] + 1;
	}
	syscall(SYS_close_range, from, CLOSE_LAST, 0);
}

static uint64_t data_now(void)
{
	_cleanup_(fclosep) FILE *f = fopen("/proc/self/status", "re");
	unsigned long kb = 0;
	char line[256];

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "VmData: %lu", &kb) == 1)
			break;
	return (uint64_t)kb << 10;
}

/* Both limits: a process of an unprivileged user cannot raise them again. */
static void limit(int what, uint64_t value)
{
	struct rlimit lim = { value, value };

	setrlimit(what, &lim);
}

enum { SHARED_AT_ONCE = 256 };

/*
 * Some of the memory that others see, "rw-s" in maps(5): the list is read before anything of it goes. Returns how many mappings went.
 */
static int leave_some_shared_memory(void)
{
	_cleanup_(fclosep) FILE *f = fopen("/proc/self/maps", "re");
	struct {
		uintptr_t from, to;
	} shared[SHARED_AT_ONCE];
	unsigned long from, to;
	char line[512], may[5];
	int n = 0, gone = 0;

	while (f && n < SHARED_AT_ONCE && fgets(line, sizeof(line), f))
		if (sscanf(line, "%lx-%lx %4s", &from, &to, may) == 3 && may[1] == 'w' &&
		    may[3] == 's') {
			shared[n].from = from;
			shared[n++].to = to;
		}
	for (int i = 0; i < n; i++)
		gone += munmap((void *)shared[i].from, shared[i].to - shared[i].from) == 0;
	return gone;
}

/* A child that was forked could write into its parent's tables. */
static void leave_shared_memory(void)
{
	while (leave_some_shared_memory() == SHARED_AT_ONCE)
		;
}

/* --- files ------------------------------------------------------------------------------------ */

/* The rights over files that a version of Landlock knows; a ruleset that names them and allows none forbids all. */
static uint64_t file_rights(int version)
{
	uint64_t all = (LANDLOCK_ACCESS_FS_MAKE_SYM << 1) - 1;

#ifdef LANDLOCK_ACCESS_FS_REFER
	if (version >= 2)
		all |= LANDLOCK_ACCESS_FS_REFER;
#endif
#ifdef LANDLOCK_ACCESS_FS_TRUNCATE
	if (version >= 3)
		all |= LANDLOCK_ACCESS_FS_TRUNCATE;
#endif
	return all;
}

static int landlock_version(void)
{
	return (int)syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
}

static int open_ruleset(void)
{
	int version = landlock_version();
	struct landlock_ruleset_attr attr = { .handled_access_fs =
						      version > 0 ? file_rights(version) : 0 };

	return version > 0 ? (int)syscall(SYS_landlock_create_ruleset, &attr, sizeof(attr), 0) : -1;
}

/* --- system calls ----------------------------------------------------------------------------- */

/* Of a reader: its files, its memory, the time, its end. fstat is of a descriptor alone (fd_stat.h). */
static const int allowed[] = {
	SCMP_SYS(read),         SCMP_SYS(readv),
	SCMP_SYS(pread64),      SCMP_SYS(preadv),
	SCMP_SYS(write),        SCMP_SYS(writev),
	SCMP_SYS(pwrite64),     SCMP_SYS(lseek),
	SCMP_SYS(ftruncate),    SCMP_SYS(close),
	SCMP_SYS(poll),         SCMP_SYS(ppoll),
	SCMP_SYS(munmap),       SCMP_SYS(mremap),
	SCMP_SYS(madvise),      SCMP_SYS(brk),
	SCMP_SYS(futex),        SCMP_SYS(getrandom),
	SCMP_SYS(fstat),        SCMP_SYS(getpid),
	SCMP_SYS(gettid),       SCMP_SYS(clock_gettime),
	SCMP_SYS(gettimeofday), SCMP_SYS(getrusage),
	SCMP_SYS(sysinfo),      SCMP_SYS(setitimer),
	SCMP_SYS(rt_sigaction), SCMP_SYS(rt_sigprocmask),
	SCMP_SYS(rt_sigreturn), SCMP_SYS(restart_syscall),
	SCMP_SYS(exit),         SCMP_SYS(exit_group),
#if defined(__SANITIZE_ADDRESS__)
	SCMP_SYS(sigaltstack), /* AddressSanitizer asks for it before a function that does not return, and ends where it may not */
#endif
};

/* Memory that is mapped may be read and written, not executed. */
static bool allow_data(scmp_filter_ctx filter, int call)
{
	return seccomp_rule_add(filter, SCMP_ACT_ALLOW, call, 1,
				SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0)) == 0;
}

/* Of a cell that is sent descriptors, or asks for them. */
static const int messages[] = { SCMP_SYS(recvmsg), SCMP_SYS(sendmsg) };

static scmp_filter_ctx filter_new(bool may_message)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(EPERM));
	bool ok = filter && allow_data(filter, SCMP_SYS(mmap)) &&
		  allow_data(filter, SCMP_SYS(mprotect));

	/* Else kernels before 5.16 turn speculative loads off for whoever has a filter, at a cost. */
	if (ok)
		seccomp_attr_set(filter, SCMP_FLTATR_CTL_SSB, 1);
	for (size_t i = 0; ok && i < sizeof(allowed) / sizeof(*allowed); i++)
		ok = seccomp_rule_add(filter, SCMP_ACT_ALLOW, allowed[i], 0) == 0;
	for (size_t i = 0; ok && may_message && i < sizeof(messages) / sizeof(*messages); i++)
		ok = seccomp_rule_add(filter, SCMP_ACT_ALLOW, messages[i], 0) == 0;
	if (!ok && filter)
		seccomp_release(filter);
	return ok ? filter : NULL;
}

/* Programs of the kernel's filter, without and with messages: making one takes longer than all the rest of a cell. */
static struct sock_fprog prepared[2];

static void prepare(struct sock_fprog *ret, bool may_message)
{
	_cleanup_(closep) int fd = memfd_create("memscope-filter", MFD_CLOEXEC);
	scmp_filter_ctx filter = filter_new(may_message);
	struct sock_filter *code = NULL;
	off_t bytes = 0;

	if (fd >= 0 && filter && seccomp_export_bpf(filter, fd) == 0)
		bytes = lseek(fd, 0, SEEK_END);
	if (bytes > 0 && bytes / (off_t)sizeof(*code) <= UINT16_MAX)
		code = malloc((size_t)bytes);
	if (code && pread(fd, code, (size_t)bytes, 0) == bytes)
		*ret = (struct sock_fprog){ (unsigned short)(bytes / (off_t)sizeof(*code)), code };
	else
		free(code);
	if (filter)
		seccomp_release(filter);
}

void cell_prepare(void)
{
	for (int i = 0; i < 2; i++)
		if (!prepared[i].len)
			prepare(&prepared[i], i == 1);
}

static void filter_calls(bool may_message)
{
	const struct sock_fprog *p = &prepared[may_message];
	scmp_filter_ctx filter;

	if (p->len &&
	    syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_SPEC_ALLOW, p) == 0)
		return;
	filter = filter_new(may_message);
	if (filter) {
		seccomp_load(filter);
		seccomp_release(filter);
	}
}

/* --- all of it -------------------------------------------------------------------------------- */

static bool become(uid_t user)
{
	return setresgid(user, user, user) == 0 && setresuid(user, user, user) == 0;
}

static void become_nobody(void)
{
	/* A user namespace may have few users. */
	if (geteuid() != 0 || setgroups(0, NULL) < 0 ||
	    !(become(FIRST_USER + (uid_t)getpid()) || become(NOBODY)))
		prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	/* Of a user who has some. */
	rights_drop();
}

void cell_enter(const struct cell *c)
{
	_cleanup_(closep) int ruleset = -1;

	signal(SIGPIPE, SIG_DFL);
	signal(SIGXFSZ, SIG_IGN);
	leave_shared_memory();
	limit(RLIMIT_DATA, data_now() + c->data_bytes);
	limit(RLIMIT_CPU, c->cpu_s);
	limit(RLIMIT_CORE, 0);
	limit(RLIMIT_FSIZE, c->file_bytes);
	close_others(c);
	ruleset = open_ruleset();
	/* Libraries would open files that a file names. */
	limit(RLIMIT_NOFILE, c->files);
	limit(RLIMIT_NPROC, 0);
	become_nobody();
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	/* After the change of user, with which the kernel forgets it. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (ruleset >= 0)
		syscall(SYS_landlock_restrict_self, ruleset, 0);
	filter_calls(c->files > 0);
}

uint32_t cell_walls(void)
{
	uint32_t action = SECCOMP_RET_ERRNO, walls = geteuid() == 0 ? CELL_USER : 0;

	if (landlock_version() > 0)
		walls |= CELL_FILES;
	if (syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) == 0)
		walls |= CELL_CALLS;
	return walls;
}
