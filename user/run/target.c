#include "run/target.h"

#include "base/cleanup.h"
#include "base/small_file.h"
#include "proc/no_process.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <regex.h>
#include <string.h>
#include <sys/resource.h>

#define PF_KTHREAD 0x00200000 /* linux/sched.h */
#define MAX_CPUS   4096

/* A whole decimal number at *s, which moves behind it; -1 when there is none or it is too large. */
static long parse_number(const char **s)
{
	char *end;
	long n;

	if (!isdigit((unsigned char)**s))
		return -1;
	errno = 0;
	n = strtol(*s, &end, 10);
	*s = end;
	return errno || n > INT_MAX ? -1 : n;
}

int target_parse_pids(const char *list, const char *option, pid_t *out, uint32_t cap, struct err *e)
{
	const char *s = list;
	uint32_t n = 0;

	for (;;) {
		long pid = parse_number(&s);
		bool again = false;

		if (pid <= 0 || (*s && *s != ','))
			return err_set(e, -EINVAL,
				       "%s takes process ids separated by commas, not \"%.64s\"",
				       option, list);
		for (uint32_t i = 0; i < n; i++)
			again |= out[i] == pid;
		if (!again && n == cap)
			return err_set(e, -EINVAL, "%s takes at most %u processes", option, cap);
		if (!again)
			out[n++] = (pid_t)pid;
		if (!*s++)
			return (int)n;
	}
}

int target_parse_cpus(const char *list, bool *wanted, uint32_t cap, struct err *e)
{
	const char *s = list;
	int n = 0;

	for (;;) {
		long from = parse_number(&s), to = from;

		if (*s == '-') {
			s++;
			to = parse_number(&s);
		}
		if (from < 0 || to < from || to >= (long)cap || (*s && *s != ','))
			return err_set(e, -EINVAL, "-C takes CPU numbers like 0,2-3, not \"%.64s\"",
				       list);
		for (; from <= to; from++) {
			n += !wanted[from];
			wanted[from] = true;
		}
		if (!*s++)
			return n;
	}
}

int target_check_cpus(const bool *wanted, uint32_t cap, struct err *e)
{
	static bool online[MAX_CPUS];
	char list[4096] = "";
	_cleanup_(fclosep) FILE *f = fopen("/sys/devices/system/cpu/online", "re");

	if (!f || !fgets(list, sizeof(list), f))
		return 0;
	list[strcspn(list, "\n")] = '\0';
	if (target_parse_cpus(list, online, MAX_CPUS, NULL) < 0)
		return 0;
	for (uint32_t i = 0; i < cap; i++)
		if (wanted[i] && (i >= MAX_CPUS || !online[i]))
			return err_set(e, -ENXIO, "-C: CPU %u is not online; these are: %.128s", i,
				       list);
	return 0;
}

bool target_cmdline(pid_t pid, char *buf, size_t cap)
{
	char path[64];
	_cleanup_(fclosep) FILE *f = NULL;
	size_t n;

	snprintf(path, sizeof(path), "/proc/%d/cmdline", (int)pid);
	f = fopen(path, "re");
	n = f ? fread(buf, 1, cap - 1, f) : 0;
	while (n && !buf[n - 1])
		n--;
	for (size_t i = 0; i < n; i++)
		if (!buf[i])
			buf[i] = ' ';
	buf[n] = '\0';
	return n > 0;
}

/* Whole, not by lines: the name in it may hold a newline. NULL: there is no such process. */
static char *read_stat(pid_t pid, char *buf, size_t cap)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	return small_file_read(AT_FDCWD, path, buf, cap) > 0 ? buf : NULL;
}

/* Is `of` the process `p`, its parent, or one of theirs? */
static bool is_ancestor(pid_t of, pid_t p)
{
	for (int i = 0; i < 64 && p > 1; i++) {
		char line[1024], *paren;

		if (p == of)
			return true;
		if (!read_stat(p, line, sizeof(line)) || !(paren = strrchr(line, ')')))
			return false;
		p = (pid_t)strtol(paren + 4, NULL, 10);
	}
	return false;
}

static int compile(const char *pattern, regex_t *re, struct err *e)
{
	char why[128];
	int rc = regcomp(re, pattern, REG_EXTENDED | REG_NOSUB);

	if (!rc)
		return 0;
	regerror(rc, re, why, sizeof(why));
	return err_set(e, -EINVAL, "-n takes an extended regular expression; \"%.64s\" is none: %s",
		       pattern, why);
}

int target_check_pattern(const char *pattern, struct err *e)
{
	regex_t re;
	int rc = compile(pattern, &re, e);

	if (rc == 0)
		regfree(&re);
	return rc;
}

/* We, the shell or sudo that has the pattern on its own line, and who writes our files. */
static bool is_our_own(pid_t pid)
{
	return is_ancestor(pid, getpid()) || is_ancestor(getpid(), pid);
}

/* Returns 0 to go on; anything else ends the search. */
typedef int (*found_fn)(void *ctx, pid_t pid, const char *cmdline);

static int find_each(const char *pattern, found_fn fn, void *ctx, struct err *e)
{
	char cmdline[TARGET_CMDLINE_MAX];
	regex_t re;
	DIR *dir;
	int rc = compile(pattern, &re, e);

	if (rc < 0)
		return rc;
	dir = opendir("/proc");
	for (struct dirent *d; rc == 0 && dir && (d = readdir(dir));) {
		pid_t pid = (pid_t)strtol(d->d_name, NULL, 10);

		if (pid > 0 && target_cmdline(pid, cmdline, sizeof(cmdline)) &&
		    !regexec(&re, cmdline, 0, NULL, 0) && !is_our_own(pid))
			rc = fn(ctx, pid, cmdline);
	}
	if (dir)
		closedir(dir);
	regfree(&re);
	return rc;
}

struct matches {
	uint32_t n;
	pid_t pid;
	char list[400]; /* for a sentence */
	size_t used;
};

static int add_match(void *ctx, pid_t pid, const char *cmdline)
{
	struct matches *m = ctx;

	m->pid = pid;
	if (m->n++ < 5)
		m->used +=
			(size_t)snprintf(m->list + m->used, sizeof(m->list) - m->used,
					 "%s%d (%.40s)", m->n > 1 ? ", " : "", (int)pid, cmdline);
	return 0;
}

int target_find(const char *pattern, pid_t *ret_pid, struct err *e)
{
	struct matches m = { 0 };
	int rc = find_each(pattern, add_match, &m, e);

	if (rc < 0)
		return rc;
	if (!m.n)
		return err_set(e, -ESRCH,
			       "no running process has a command line that matches \"%.64s\"",
			       pattern);
	if (m.n > 1)
		return err_set(e, -EEXIST, "%u processes match \"%.64s\": %s%s; name one with -p",
			       m.n, pattern, m.list, m.n > 5 ? ", …" : "");
	*ret_pid = m.pid;
	return 0;
}

struct oldest {
	bool (*skip)(void *ctx, pid_t pid);
	void *ctx;
	pid_t pid;
	uint64_t started;
};

/* In clock ticks since boot: the 22nd field of stat (proc(5)), the 20th after the name. */
static uint64_t start_ticks(pid_t pid)
{
	char line[1024], *at;

	if (!read_stat(pid, line, sizeof(line)) || !(at = strrchr(line, ')')))
		return UINT64_MAX;
	for (int field = 2; at && field < 22; field++)
		at = strchr(at + 1, ' ');
	return at ? strtoull(at, NULL, 10) : UINT64_MAX;
}

static int keep_oldest(void *ctx, pid_t pid, const char *cmdline)
{
	struct oldest *o = ctx;
	uint64_t started = start_ticks(pid);

	(void)cmdline;
	if (o->skip && o->skip(o->ctx, pid))
		return 0;
	if (!o->pid || started < o->started || (started == o->started && pid < o->pid)) {
		o->pid = pid;
		o->started = started;
	}
	return 0;
}

int target_find_oldest(const char *pattern, bool (*skip)(void *ctx, pid_t pid), void *ctx,
		       pid_t *ret_pid)
{
	struct oldest o = { .skip = skip, .ctx = ctx };
	int rc = find_each(pattern, keep_oldest, &o, NULL);

	if (rc < 0)
		return rc;
	if (!o.pid)
		return -ESRCH;
	*ret_pid = o.pid;
	return 0;
}

/* The number behind `key` in /proc/PID/status; -1 when there is none. */
static long status_field(pid_t pid, const char *key)
{
	char path[64], line[256];
	_cleanup_(fclosep) FILE *f = NULL;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		if (strncmp(line, key, strlen(key)) == 0)
			return strtol(line + strlen(key), NULL, 10);
	return -1;
}

int target_of_thread(pid_t tid, pid_t *ret_pid, struct err *e)
{
	long pid = status_field(tid, "Tgid:");

	if (pid <= 0)
		return err_set(e, -ESRCH, "there is no thread %d", (int)tid);
	*ret_pid = (pid_t)pid;
	return 0;
}

int target_check(pid_t pid, struct err *e)
{
	char line[1024], name[64] = "";
	unsigned flags = 0;
	char *open, *close;
	long tgid;

	if (!read_stat(pid, line, sizeof(line)) || !(open = strchr(line, '(')) ||
	    !(close = strrchr(line, ')')))
		return err_no_process(e, pid);
	snprintf(name, sizeof(name), "%.*s", (int)(close - open - 1), open + 1);
	if (sscanf(close + 2, "%*c %*d %*d %*d %*d %*d %u", &flags) == 1 && (flags & PF_KTHREAD))
		return err_set(
			e, -EINVAL,
			"process %d (%s) is a kernel thread and has no memory of its own; memscope -a -K shows "
			"what kernel threads do",
			(int)pid, name);
	if (pid == getpid())
		return err_set(e, -EINVAL, "memscope does not profile itself");
	tgid = status_field(pid, "Tgid:");
	if (tgid > 0 && tgid != pid)
		return err_set(e, -EINVAL, "%d is a thread of process %ld: use -t %d, or -p %ld",
			       (int)pid, tgid, (int)pid, tgid);
	return 0;
}

void target_file_word(const char *name, char *out, uint32_t cap)
{
	snprintf(out, cap, "%.48s", *name ? name : "_");
	if (*out == '.')
		*out = '_'; /* and never the directory above */
	for (char *c = out; *c; c++)
		if (!isalnum((unsigned char)*c) && !strchr("._+-", *c))
			*c = '_';
}

void target_comm(pid_t pid, char *out, uint32_t cap)
{
	char path[64];
	_cleanup_(fclosep) FILE *f = NULL;

	snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
	f = fopen(path, "re");
	if (!f || !fgets(out, (int)cap, f))
		snprintf(out, cap, "pid");
	out[strcspn(out, "\n")] = '\0';
}

void target_file_name(pid_t pid, char *out, uint32_t cap)
{
	target_comm(pid, out, cap);
	for (char *c = out; *c; c++)
		if (!isalnum((unsigned char)*c) && !strchr("._+", *c))
			*c = '_';
}

void target_raise_files(void)
{
	struct rlimit lim;

	if (getrlimit(RLIMIT_NOFILE, &lim) == 0 && lim.rlim_cur < lim.rlim_max) {
		lim.rlim_cur = lim.rlim_max;
		setrlimit(RLIMIT_NOFILE, &lim);
	}
}
