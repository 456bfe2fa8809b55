#include "proc/proc_mem.h"
#include "base/grow.h"
#include "base/small_file.h"
#include "proc/no_process.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>

#define ROLLUP_REST    100       /* see the header */
#define LAST_ROLLUP_NS 200000000 /* at the end of a run it may take that */
#define MAPPED_NS      60000000000

struct member {
	pid_t pid;
	int dir_fd;          /* /proc/PID: reads fail with ESRCH once the process is gone */
	char where[32];      /* "task/TID/" once the main thread has ended, else "" */
	int64_t own_pss_kb;  /* anonymous and swap by PSS, when it was just read */
	int64_t cpu_seen_ns; /* CPU time already counted in an interval */
	struct mem_sample last;
};

struct proc_mem {
	struct member *members;
	uint32_t n, cap;
	uint32_t
		next; /* where who is asked for next is likely to be: they are asked for in the same order each time */
	int64_t last_ns; /* CLOCK_MONOTONIC of the sample before */
	int64_t gone_minor, gone_major, gone_cpu_ns;
	int64_t rollup_last_ns, rollup_took_ns;
	double rollup_rest; /* so many times as long nothing is read */
	bool no_rollup;
};

static int64_t clock_ns(clockid_t id)
{
	struct timespec ts;

	if (clock_gettime(id, &ts) < 0)
		return -1;
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

/* A small /proc file as text. The length, or -errno (-ESRCH: the process is gone). */
static int read_at(int dir_fd, const char *name, char *buf, size_t size)
{
	int r = small_file_read(dir_fd, name, buf, size);

	/* A /proc/PID that outlived its process has no entries. */
	return r == -ENOENT && faccessat(dir_fd, "stat", F_OK, 0) < 0 ? -ESRCH : r;
}

/* The number of the row `Name:   123 kB`, MEM_UNKNOWN when there is no such row. */
static int64_t row_value(const char *text, const char *name)
{
	size_t len = strlen(name);

	for (const char *line = text; line; line = strchr(line, '\n')) {
		if (*line == '\n')
			line++;
		if (strncmp(line, name, len) == 0 && line[len] == ':')
			return strtoll(line + len + 1, NULL, 10);
	}
	return MEM_UNKNOWN;
}

static int64_t add(int64_t a, int64_t b)
{
	if (a < 0)
		return b;
	return b < 0 ? a : a + b;
}

/* The fields of stat after the command, which may hold anything, blanks and brackets too. */
struct stat_fields {
	char state;
	int64_t minor_faults, major_faults, cpu_ticks;
};

static int parse_stat(const char *text, struct stat_fields *ret_fields)
{
	const char *p = strrchr(text, ')');
	unsigned long minor, major, user, system;
	char state;

	/* proc(5): state ppid pgrp session tty tpgid flags minflt cminflt majflt cmajflt utime
	 * stime */
	if (!p || sscanf(p + 1, " %c %*d %*d %*d %*d %*d %*u %lu %*u %lu %*u %lu %lu", &state,
			 &minor, &major, &user, &system) != 5)
		return -EBADMSG;
	*ret_fields = (struct stat_fields){
		.state = state,
		.minor_faults = (int64_t)minor,
		.major_faults = (int64_t)major,
		.cpu_ticks = (int64_t)(user + system),
	};
	return 0;
}

/* The process's CPU clock is exact; the ticks of stat come in steps of 10 ms. */
static int64_t cpu_time_ns(pid_t pid, int64_t ticks)
{
	clockid_t clock;
	int64_t ns = -1;

	if (clock_getcpuclockid(pid, &clock) == 0)
		ns = clock_ns(clock);
	return ns >= 0 ? ns : ticks * (1000000000 / sysconf(_SC_CLK_TCK));
}

/*
 * A process whose main thread has ended while others run has no memory rows of its own; any
 * living thread shows them. Writes the directory ("task/TID/") of one.
 */
static bool find_living_thread(int dir_fd, char *path, size_t size)
{
	int fd = openat(dir_fd, "task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *ent;
	char text[4096], file[64];
	bool found = false;

	if (!dir) {
		closep(&fd);
		return false;
	}
	while (!found && (ent = readdir(dir))) {
		if (!isdigit((unsigned char)ent->d_name[0]))
			continue;
		snprintf(file, sizeof(file), "task/%.20s/status", ent->d_name);
		if (read_at(dir_fd, file, text, sizeof(text)) < 0 || row_value(text, "VmRSS") < 0)
			continue;
		snprintf(path, size, "task/%.20s/", ent->d_name);
		found = true;
	}
	closedir(dir);
	return found;
}

static void take_status(const char *text, struct mem_sample *s)
{
	s->rss_kb = row_value(text, "VmRSS");
	s->vsz_kb = row_value(text, "VmSize");
	s->anonymous_kb = row_value(text, "RssAnon");
	s->file_kb = add(row_value(text, "RssFile"), row_value(text, "RssShmem"));
	s->swap_kb = row_value(text, "VmSwap");
	s->own_kb = add(s->anonymous_kb, s->swap_kb);
	s->threads = row_value(text, "Threads");
}

static int read_rollup(struct member *m)
{
	struct mem_sample *s = &m->last;
	char text[4096], file[64];
	int r;

	snprintf(file, sizeof(file), "%ssmaps_rollup", m->where);
	r = read_at(m->dir_fd, file, text, sizeof(text));
	if (r <= 0)
		return r;
	s->pss_kb = row_value(text, "Pss");
	s->shared_kb = add(row_value(text, "Shared_Clean"), row_value(text, "Shared_Dirty"));
	s->private_kb = add(row_value(text, "Private_Clean"), row_value(text, "Private_Dirty"));
	/* Before Linux 5.4 Pss has no parts. */
	m->own_pss_kb = row_value(text, "Pss_Anon");
	m->own_pss_kb =
		m->own_pss_kb < 0 ? s->private_kb : add(m->own_pss_kb, row_value(text, "SwapPss"));
	return 0;
}

/* One process. -ESRCH when it has ended, as a zombie too. */
static int read_member(struct member *m, struct mem_sample *ret_sample)
{
	struct mem_sample s = { .pss_kb = MEM_UNKNOWN,
				.shared_kb = MEM_UNKNOWN,
				.private_kb = MEM_UNKNOWN,
				.processes = 1 };
	struct stat_fields st;
	char text[4096], file[64];
	int r;

	r = read_at(m->dir_fd, "stat", text, sizeof(text));
	if (r < 0)
		return r;
	r = parse_stat(text, &st);
	if (r < 0)
		return r;
	s.minor_faults = st.minor_faults;
	s.major_faults = st.major_faults;
	s.cpu_ns = cpu_time_ns(m->pid, st.cpu_ticks);

	r = read_at(m->dir_fd, "status", text, sizeof(text));
	if (r < 0)
		return r;
	take_status(text, &s);
	if (st.state == 'Z' || st.state == 'X') {
		int64_t threads = s.threads;

		if (threads <= 1 || !find_living_thread(m->dir_fd, m->where, sizeof(m->where)))
			return -ESRCH;
		snprintf(file, sizeof(file), "%sstatus", m->where);
		r = read_at(m->dir_fd, file, text, sizeof(text));
		if (r < 0)
			return r;
		take_status(text, &s);
	}
	*ret_sample = s;
	return 0;
}

struct proc_mem *proc_mem_new(void)
{
	struct proc_mem *m = calloc(1, sizeof(*m));

	if (!m)
		return NULL;
	m->last_ns = clock_ns(CLOCK_MONOTONIC);
	m->rollup_rest = ROLLUP_REST;
	return m;
}

void proc_mem_free(struct proc_mem *m)
{
	if (!m)
		return;
	for (uint32_t i = 0; i < m->n; i++)
		close(m->members[i].dir_fd);
	free(m->members);
	free(m);
}

static bool is_member(struct proc_mem *m, pid_t pid)
{
	for (uint32_t i = 0; i < m->n; i++) {
		const struct member *one = &m->members[(m->next + i) % m->n];

		/* A directory of a process that has ended does not speak for who has its pid
		 * now. */
		if (one->pid == pid && faccessat(one->dir_fd, "stat", F_OK, 0) == 0) {
			m->next = (uint32_t)(one - m->members) + 1;
			return true;
		}
	}
	return false;
}

int proc_mem_add(struct proc_mem *m, pid_t pid, bool newborn, struct err *e)
{
	_cleanup_(closep) int fd = -1;
	struct member member = { .pid = pid };
	char path[32];
	int r;

	if (is_member(m, pid))
		return 0;
	snprintf(path, sizeof(path), "/proc/%d", pid);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT)
		return err_no_process(e, pid);
	if (fd < 0)
		return err_set(e, -errno, "%s: %s", path, strerror(errno));

	member.dir_fd = fd;
	r = read_member(&member, &member.last);
	if (r < 0)
		return err_set(e, r,
			       r == -ESRCH ? "process %d has ended"
					   : "process %d: cannot read its state",
			       pid);
	member.cpu_seen_ns = newborn ? 0 : member.last.cpu_ns;

	if (!GROW(m->members, m->n, m->cap))
		return err_set(e, -ENOMEM, "out of memory for process %d", pid);
	m->members[m->n++] = member;
	TAKE_FD(fd);
	return 0;
}

/* An ended process leaves; what it had counted stays. */
static void drop_member(struct proc_mem *m, uint32_t i)
{
	const struct mem_sample *last = &m->members[i].last;

	m->gone_minor += last->minor_faults;
	m->gone_major += last->major_faults;
	m->gone_cpu_ns += last->cpu_ns;
	close(m->members[i].dir_fd);
	m->members[i] = m->members[--m->n];
}

static int compare_pids(const void *a, const void *b)
{
	return *(const pid_t *)a - *(const pid_t *)b;
}

void proc_mem_keep(struct proc_mem *m, const pid_t *pids, uint32_t n)
{
	for (uint32_t i = 0; i < m->n;) {
		if (bsearch(&m->members[i].pid, pids, n, sizeof(*pids), compare_pids))
			i++;
		else
			drop_member(m, i);
	}
}

static void sum_sizes(struct mem_sample *sum, const struct mem_sample *s)
{
	sum->rss_kb = add(sum->rss_kb, s->rss_kb);
	sum->vsz_kb = add(sum->vsz_kb, s->vsz_kb);
	sum->anonymous_kb = add(sum->anonymous_kb, s->anonymous_kb);
	sum->file_kb = add(sum->file_kb, s->file_kb);
	sum->swap_kb = add(sum->swap_kb, s->swap_kb);
	sum->pss_kb = add(sum->pss_kb, s->pss_kb);
	sum->shared_kb = add(sum->shared_kb, s->shared_kb);
	sum->private_kb = add(sum->private_kb, s->private_kb);
	sum->threads = add(sum->threads, s->threads);
	sum->minor_faults += s->minor_faults;
	sum->major_faults += s->major_faults;
	sum->cpu_ns += s->cpu_ns;
	sum->processes++;
}

/* pss, shared and private of all members: of all or of none, or the sums would jump. */
static void read_rollups(struct proc_mem *m)
{
	int64_t start_ns = clock_ns(CLOCK_MONOTONIC);

	if (m->no_rollup ||
	    (double)(start_ns - m->rollup_last_ns) < m->rollup_rest * (double)m->rollup_took_ns)
		return;
	for (uint32_t i = 0; i < m->n; i++) /* gone or not permitted: the rest still holds */
		read_rollup(&m->members[i]);
	m->rollup_last_ns = clock_ns(CLOCK_MONOTONIC);
	m->rollup_took_ns = m->rollup_last_ns - start_ns;
}

int proc_mem_sample(struct proc_mem *m, struct mem_sample *ret_sample)
{
	struct mem_sample sum = {
		.rss_kb = MEM_UNKNOWN,
		.vsz_kb = MEM_UNKNOWN,
		.anonymous_kb = MEM_UNKNOWN,
		.file_kb = MEM_UNKNOWN,
		.swap_kb = MEM_UNKNOWN,
		.pss_kb = MEM_UNKNOWN,
		.shared_kb = MEM_UNKNOWN,
		.private_kb = MEM_UNKNOWN,
		.own_kb = MEM_UNKNOWN,
		.threads = MEM_UNKNOWN,
	};
	int64_t now_ns;

	for (uint32_t i = 0; i < m->n;) {
		struct member *member = &m->members[i];
		int r = read_member(member, &member->last);

		member->own_pss_kb = MEM_UNKNOWN;
		if (r == -ESRCH) {
			drop_member(m, i);
			continue;
		}
		/* Any other error (no descriptor left, say): it lives, with what was seen last. */
		if (member->last.cpu_ns > member->cpu_seen_ns) {
			sum.interval_cpu_ns += member->last.cpu_ns - member->cpu_seen_ns;
			member->cpu_seen_ns = member->last.cpu_ns;
		}
		i++;
	}
	if (m->n == 0)
		return -ESRCH;
	now_ns = clock_ns(CLOCK_MONOTONIC);
	read_rollups(m);
	for (uint32_t i = 0; i < m->n; i++) {
		const struct member *member = &m->members[i];

		sum_sizes(&sum, &member->last);
		sum.own_kb = add(sum.own_kb, m->n == 1 ? member->last.own_kb : member->own_pss_kb);
	}

	sum.minor_faults += m->gone_minor;
	sum.major_faults += m->gone_major;
	sum.cpu_ns += m->gone_cpu_ns;
	sum.time_ns = clock_ns(CLOCK_REALTIME);
	sum.interval_ns = now_ns - m->last_ns;
	m->last_ns = now_ns;
	*ret_sample = sum;
	return 0;
}

void proc_mem_rollup_rest(struct proc_mem *m, double times)
{
	m->rollup_rest = times;
}

void proc_mem_quick(struct proc_mem *m)
{
	m->no_rollup = true;
}

void proc_mem_last(struct proc_mem *m)
{
	if (m->rollup_took_ns <= LAST_ROLLUP_NS)
		m->rollup_took_ns = 0;
}

uint32_t proc_mem_count(const struct proc_mem *m)
{
	return m->n;
}

/* Resident pages of the kernel's maps: those that are mapped here are the kernel's own. */
static int64_t read_mapped_maps_kb(void)
{
	_cleanup_(fclosep) FILE *f = fopen("/proc/self/smaps", "re");
	char line[4352];
	bool of_map = false;
	long long kb, sum = 0;

	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "Rss: %lld kB", &kb) == 1)
			sum += of_map ? kb : 0;
		else if (strstr(line, "-"))
			of_map = strstr(line, "anon_inode:bpf-map") != NULL;
	}
	return sum;
}

/*
 * They are there from the start. To ask is to have the kernel walk all memory of this process, which was a twelfth of what a service took
 * whose metrics were read every two seconds: so what it said holds for a minute.
 */
static int64_t mapped_maps_kb(void)
{
	static int64_t until_ns, kb;
	int64_t now = clock_ns(CLOCK_MONOTONIC);

	if (now >= until_ns) {
		until_ns = now + MAPPED_NS;
		kb = read_mapped_maps_kb();
	}
	return kb;
}

void proc_mem_self(int64_t *ret_cpu_ns, int64_t *ret_rss_kb, int64_t *ret_peak_kb)
{
	char text[4096] = "";
	const char *hwm;
	int64_t maps_kb = mapped_maps_kb();
	long pages = 0;
	struct rusage ru;
	_cleanup_(closep) int fd = open("/proc/self", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	getrusage(RUSAGE_SELF, &ru);
	*ret_cpu_ns = ((int64_t)ru.ru_utime.tv_sec + ru.ru_stime.tv_sec) * 1000000000 +
		      ((int64_t)ru.ru_utime.tv_usec + ru.ru_stime.tv_usec) * 1000;
	if (fd >= 0 && read_at(fd, "statm", text, sizeof(text)) > 0)
		sscanf(text, "%*d %ld", &pages);
	*ret_rss_kb = pages * (sysconf(_SC_PAGESIZE) / 1024) - maps_kb;
	/* Not ru_maxrss, which is also that of whom we were before an exec. Maps are mapped from the
	 * start. */
	*ret_peak_kb = 0;
	if (fd >= 0 && read_at(fd, "status", text, sizeof(text)) > 0 &&
	    (hwm = strstr(text, "\nVmHWM:")))
		*ret_peak_kb = strtoll(hwm + 7, NULL, 10) - maps_kb;
	if (*ret_peak_kb < *ret_rss_kb)
		*ret_peak_kb = *ret_rss_kb;
}
