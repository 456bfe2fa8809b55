#include "inject/check.h"

#include "base/cleanup.h"
#include "elf/elf_file.h"
#include "elf/elf_syms.h"
#include "inject/inject.h"
#include "preload/agent.h"
#include "proc/namespace.h"
#include "proc/no_process.h"
#include "proc/proc_maps.h"

#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

/* --- /proc/PID/status and auxv ---------------------------------------------------------------- */

struct status {
	char state;
	int tracer, seccomp;
	bool shadow_stack;
};

static int read_status(pid_t pid, struct status *ret)
{
	_cleanup_(fclosep) FILE *f = NULL;
	char path[64], line[512];

	memset(ret, 0, sizeof(*ret));
	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	f = fopen(path, "re");
	if (!f)
		return -ESRCH;
	while (fgets(line, sizeof(line), f)) {
		sscanf(line, "State: %c", &ret->state);
		sscanf(line, "TracerPid: %d", &ret->tracer);
		sscanf(line, "Seccomp: %d", &ret->seccomp);
		if (strncmp(line, "x86_Thread_features:", 20) == 0)
			ret->shadow_stack = strstr(line, "shstk");
	}
	return 0;
}

static bool is_secure(pid_t pid)
{
	_cleanup_(fclosep) FILE *f = NULL;
	uint64_t pair[2];
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/auxv", (int)pid);
	f = fopen(path, "re");
	while (f && fread(pair, sizeof(pair), 1, f) == 1)
		if (pair[0] == AT_SECURE)
			return pair[1];
	return false;
}

static bool has_agent(pid_t pid)
{
	char path[64], comm[32];
	bool found = false;
	struct dirent *d;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	dir = opendir(path);
	while (dir && !found && (d = readdir(dir))) {
		_cleanup_(fclosep) FILE *f = NULL;
		char file[320];

		snprintf(file, sizeof(file), "/proc/%d/task/%s/comm", (int)pid, d->d_name);
		f = fopen(file, "re");
		found = f && fgets(comm, sizeof(comm), f) && strcmp(comm, "memscope-alloc\n") == 0;
	}
	if (dir)
		closedir(dir);
	return found;
}

/* --- what it maps ----------------------------------------------------------------------------- */

#define COPIES_MAX 8

struct maps {
	pid_t pid;
	const char *library;
	struct proc_map libc; /* its code; path is not kept */
	bool have_libc;
	struct proc_map ours[COPIES_MAX]; /* code that came by memfds of ours */
	uint32_t n_ours;
	bool replaced;  /* the library is mapped from a file that is not at its path any more */
	char other[64]; /* another C library                  */
	char sanitizer[64];
	uint64_t last_end, room, room_size;
};

static const char *base_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static int on_map(void *ctx, const struct proc_map *map)
{
	static const char *const sanitizers[] = { "libasan", "libtsan", "liblsan", "libubsan",
						  "libhwasan" };
	struct maps *m = ctx;
	const char *name = base_of(map->path);

	/* The middle of the largest gap: far from all that grows. */
	if (m->last_end && map->start - m->last_end > m->room_size &&
	    map->start < 0x7fffffff0000ULL) {
		m->room_size = map->start - m->last_end;
		m->room = (m->last_end + m->room_size / 2) & ~0xfffffULL;
	}
	m->last_end = map->end;
	if (!(map->perms & PROC_MAP_EXEC))
		return 0;
	if (strcmp(map->path, INJECT_MEMFD_PATH) == 0 && m->n_ours < COPIES_MAX) {
		m->ours[m->n_ours] = *map;
		m->ours[m->n_ours++].path = "";
	}
	m->replaced |= map->deleted && strcmp(map->path, m->library) == 0;
	for (size_t i = 0; i < sizeof(sanitizers) / sizeof(*sanitizers); i++)
		if (strncmp(name, sanitizers[i], strlen(sanitizers[i])) == 0)
			snprintf(m->sanitizer, sizeof(m->sanitizer), "%.60s", name);
	if (strncmp(name, "ld-musl", 7) == 0 || strncmp(name, "libc.musl", 9) == 0 ||
	    strcmp(name, "libc.so") == 0 || strncmp(name, "libuClibc", 9) == 0)
		snprintf(m->other, sizeof(m->other), "%.60s", name);
	if (!m->have_libc && (strcmp(name, "libc.so.6") == 0 || strncmp(name, "libc-2.", 7) == 0)) {
		m->libc = *map;
		m->libc.path = "";
		m->have_libc = true;
	}
	return 0;
}

/* --- the C library ---------------------------------------------------------------------------- */

static const struct wanted {
	const char *name;
	size_t offset;
} wanted[] = {
	{ "mmap", offsetof(struct inject_place, mmap) },
	{ "munmap", offsetof(struct inject_place, munmap) },
	{ "mprotect", offsetof(struct inject_place, mprotect) },
	{ "pthread_create", offsetof(struct inject_place, pthread_create) },
	{ "pthread_detach", offsetof(struct inject_place, pthread_detach) },
	{ "dlopen", offsetof(struct inject_place, dlopen) },
	{ "dlsym", offsetof(struct inject_place, dlsym) },
	{ "dlerror", offsetof(struct inject_place, dlerror) },
};

static bool is_wanted(const char *name)
{
	for (size_t i = 0; i < sizeof(wanted) / sizeof(*wanted); i++) {
		size_t len = strlen(wanted[i].name);

		if (strncmp(name, wanted[i].name, len) == 0 && (!name[len] || name[len] == '@'))
			return true;
	}
	return false;
}

/* mov $15, %rax; syscall: what a handler of a signal returns into. */
static int find_restore(struct elf_file *elf, const struct proc_map *map, uint64_t *ret_addr)
{
	static const uint8_t code[] = { 0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05 };
	uint64_t bytes = map->end - map->start;
	_cleanup_(freep) uint8_t *text = NULL;
	const uint8_t *at;

	if (bytes > 64 << 20)
		return -EFBIG;
	text = malloc(bytes);
	if (!text)
		return -ENOMEM;
	if (map->file_off + bytes > elf_file_size(elf))
		bytes = elf_file_size(elf) - map->file_off;
	if (map->file_off > elf_file_size(elf) ||
	    elf_file_read(elf, map->file_off, text, bytes, NULL) < 0)
		return -EIO;
	at = memmem(text, bytes, code, sizeof(code));
	if (!at)
		return -ENOENT;
	*ret_addr = map->start + (uint64_t)(at - text);
	return 0;
}

static int look_into_libc(const struct maps *m, struct inject_place *place, struct err *e)
{
	_cleanup_(elf_file_closep) struct elf_file *elf = NULL;
	_cleanup_(elf_syms_freep) struct elf_syms *syms = NULL;
	_cleanup_(closep) int fd = ns_open_mapped(m->pid, m->libc.start, m->libc.end);
	const struct elf_segment *segs;
	uint64_t vaddr;
	uint32_t n;
	int r;

	if (fd < 0)
		return err_set(e, fd, "cannot read the C library of process %d: %s", (int)m->pid,
			       strerror(-fd));
	r = elf_file_open(fd, "its C library", &elf, e);
	if (r == 0)
		r = elf_syms_load_some(elf, is_wanted, &syms, e);
	if (r < 0)
		return r;
	segs = elf_file_segments(elf, &n);
	if (!elf_segments_off_to_vaddr(segs, n, m->libc.file_off, &vaddr))
		return err_set(e, -EBADMSG,
			       "the C library of process %d is not mapped as its file "
			       "says",
			       (int)m->pid);
	for (size_t i = 0; i < sizeof(wanted) / sizeof(*wanted); i++) {
		struct elf_sym sym;

		if (elf_syms_find_name(syms, wanted[i].name, &sym, 1) < 1)
			return err_set(
				e, -EOPNOTSUPP,
				"the C library of process %d has no %s: it is older than glibc "
				"2.34",
				(int)m->pid, wanted[i].name);
		*(uint64_t *)((char *)place + wanted[i].offset) = m->libc.start - vaddr + sym.vaddr;
	}
	if (find_restore(elf, &m->libc, &place->restore) < 0)
		return err_set(
			e, -EOPNOTSUPP,
			"the C library of process %d has no code that signal handlers return "
			"into",
			(int)m->pid);
	return 0;
}

/* --- the library ------------------------------------------------------------------------------ */

/* `fd` has the same bytes as our library. */
static bool is_same_library(int fd, const void *ours, size_t bytes)
{
	struct stat st;
	bool same;
	void *theirs;

	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || (size_t)st.st_size != bytes)
		return false;
	theirs = malloc(bytes);
	same = theirs && pread(fd, theirs, bytes, 0) == (ssize_t)bytes &&
	       memcmp(ours, theirs, bytes) == 0;
	free(theirs);
	return same;
}

/* Where its function is, in a copy that is mapped; 0: it is another build. */
static uint64_t find_agent(pid_t pid, const struct proc_map *map, const void *ours, size_t bytes)
{
	_cleanup_(elf_file_closep) struct elf_file *elf = NULL;
	_cleanup_(elf_syms_freep) struct elf_syms *syms = NULL;
	_cleanup_(closep) int fd = ns_open_mapped(pid, map->start, map->end);
	const struct elf_segment *segs;
	struct elf_sym sym;
	uint64_t vaddr;
	uint32_t n;

	if (fd < 0 || !is_same_library(fd, ours, bytes) ||
	    elf_file_open(fd, INJECT_MEMFD, &elf, NULL) < 0 ||
	    elf_syms_load(elf, &syms, NULL) < 0 ||
	    elf_syms_find_name(syms, AGENT_FUNCTION, &sym, 1) < 1)
		return 0;
	segs = elf_file_segments(elf, &n);
	if (!elf_segments_off_to_vaddr(segs, n, map->file_off, &vaddr))
		return 0;
	return map->start - vaddr + sym.vaddr;
}

/* The file at that path in the process's own view is ours, and may be mapped as code. */
static bool sees_library(pid_t pid, const char *library, const void *ours, size_t bytes)
{
	_cleanup_(closep) int fd = ns_open_seen(pid, library);
	struct statvfs fs;

	return fd >= 0 && is_same_library(fd, ours, bytes) && fstatvfs(fd, &fs) == 0 &&
	       !(fs.f_flag & ST_NOEXEC);
}

/* How the library is to come. */
static int look_for_library(const struct maps *m, struct inject_place *place, struct err *e)
{
	_cleanup_(closep) int fd = open(m->library, O_RDONLY | O_CLOEXEC);
	struct stat st;
	void *ours;

	if (fd < 0 || fstat(fd, &st) < 0 || st.st_size <= 0)
		return err_set(e, fd < 0 ? -errno : -EINVAL, "cannot read %s", m->library);
	ours = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (ours == MAP_FAILED)
		return err_set(e, -errno, "cannot read %s: %s", m->library, strerror(errno));
	for (uint32_t i = 0; i < m->n_ours && !place->agent; i++)
		place->agent = find_agent(m->pid, &m->ours[i], ours, (size_t)st.st_size);
	place->memfds = m->n_ours;
	place->memfd = !place->agent &&
		       (m->replaced || !sees_library(m->pid, m->library, ours, (size_t)st.st_size));
	munmap(ours, (size_t)st.st_size);
	return 0;
}

/* By the stat of process `n` in that /proc. 0: there is none. */
static uint64_t started_at(int proc_fd, long n)
{
	/* What is mounted above a file of /proc is none of its. */
	const struct open_how how = {
		.flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV,
	};
	_cleanup_(closep) int fd = -1;
	unsigned long long ticks = 0;
	char path[32], line[1024], *paren;
	ssize_t len;

	snprintf(path, sizeof(path), "%ld/stat", n);
	fd = (int)syscall(SYS_openat2, proc_fd, path, &how, sizeof(how));
	len = fd < 0 ? -1 : read(fd, line, sizeof(line) - 1);
	line[len > 0 ? len : 0] = '\0';
	paren = strrchr(line, ')');

	if (paren)
		sscanf(paren + 2,
		       "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu",
		       &ticks);
	return ticks;
}

/*
 * The directory that the process sees as /proc, if that is one of the kernel's: whatever lies there instead, the process's own links,
 * pipes and file systems, nobody is asked for a file in it.
 */
static int open_its_proc(pid_t pid)
{
	struct ns_roots roots = { 0 };
	int root = ns_roots_add(&roots, pid);
	int fd = root < 0 ? root : ns_roots_open_dir(&roots, root, "/proc");
	struct statfs fs;

	ns_roots_fini(&roots);
	if (fd >= 0 && (fstatfs(fd, &fs) < 0 || fs.f_type != PROC_SUPER_MAGIC)) {
		close(fd);
		fd = -ENOENT;
	}
	return fd;
}

/*
 * The library reads /proc/self/maps, and comes through /proc/thread-self/fd: the process must have /proc at its
 * place, one in which it is to be seen, by one of its numbers.
 */
static int check_proc(pid_t pid, struct err *e)
{
	_cleanup_(closep) int own = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC), its = -1;
	_cleanup_(fclosep) FILE *f = NULL;
	char path[96], line[512];
	bool seen = false;

	its = open_its_proc(pid);
	if (own < 0 || its < 0)
		return err_set(
			e, -ENOENT,
			"process %d has no /proc in its file system, which the library reads there",
			(int)pid);
	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	f = fopen(path, "re");
	while (f && !seen && fgets(line, sizeof(line), f)) {
		char *at = strncmp(line, "NSpid:", 6) == 0 ? line + 6 : NULL;

		for (char *end; at && !seen; at = end) {
			long n = strtol(at, &end, 10);

			if (end == at)
				break;
			uint64_t here = started_at(own, pid);

			seen = here && started_at(its, n) == here;
		}
	}
	return seen ? 0
		    : err_set(e, -ENOENT,
			      "process %d does not see itself in its /proc, which the library reads there",
			      (int)pid);
}

static int check_machine(pid_t pid, struct err *e)
{
	_cleanup_(elf_file_closep) struct elf_file *elf = NULL;
	_cleanup_(closep) int fd = ns_open_link(pid, "exe");

	if (fd == -EACCES || fd == -EPERM)
		return err_set(
			e, fd,
			"process %d may not be looked into: it has capabilities that memscope "
			"has not",
			(int)pid);
	if (fd < 0)
		return err_set(e, fd, "process %d has no program: it is the kernel's, or has ended",
			       (int)pid);
	if (elf_file_open(fd, "its program", &elf, NULL) < 0 || !elf_file_is64(elf) ||
	    elf_file_machine(elf) != EM_X86_64)
		return err_set(e, -EOPNOTSUPP, "process %d is not a program for x86-64", (int)pid);
	return 0;
}

/* --- all of it -------------------------------------------------------------------------------- */

int inject_look(pid_t pid, const char *library, uint64_t room_bytes, bool held,
		struct inject_place *ret_place, struct err *e)
{
	struct maps m = { .pid = pid, .library = library };
	struct inject_place place = { 0 };
	struct status st;
	int r;

#if !defined(__x86_64__)
	return err_set(e, -EOPNOTSUPP, "a library can be injected on x86-64 only");
#endif
	if (read_status(pid, &st) < 0)
		return err_no_process(e, pid);
	if (strchr("ZX", st.state))
		return err_set(e, -ESRCH, "process %d has ended", (int)pid);
	if (strchr("Tt", st.state) && !held)
		return err_set(e, -EBUSY, "process %d is stopped: SIGCONT lets it go on", (int)pid);
	if (st.tracer && !held)
		return err_set(e, -EBUSY, "process %d is traced by process %d, a debugger",
			       (int)pid, st.tracer);
	if (st.seccomp == SECCOMP_MODE_STRICT)
		return err_set(
			e, -EPERM,
			"process %d is in seccomp's strict mode, which allows no system call that "
			"loading the library takes",
			(int)pid);
	if (st.shadow_stack)
		return err_set(e, -EOPNOTSUPP,
			       "process %d has shadow stacks, which see a call that nobody made",
			       (int)pid);
	if (is_secure(pid))
		return err_set(e, -EPERM,
			       "process %d runs with other privileges than who started it "
			       "(AT_SECURE): such programs load no foreign code",
			       (int)pid);
	r = check_machine(pid, e);
	if (r == 0)
		r = proc_maps_each(pid, on_map, &m, e);
	if (r < 0)
		return r;
	if (*m.other)
		return err_set(e, -EOPNOTSUPP, "process %d has another C library than glibc (%s)",
			       (int)pid, m.other);
	if (!m.have_libc)
		return err_set(e, -EOPNOTSUPP,
			       "process %d is a static program: it has no calls that could be led "
			       "elsewhere",
			       (int)pid);
	if (*m.sanitizer)
		return err_set(e, -EOPNOTSUPP,
			       "process %d runs under a sanitizer (%s), which has the allocator to "
			       "itself",
			       (int)pid, m.sanitizer);
	if (has_agent(pid))
		return err_set(e, -EAGAIN, "another memscope has its library in process %d now",
			       (int)pid);
	if (m.room_size < 16 * room_bytes)
		return err_set(e, -ENOMEM, "process %d has no address space left", (int)pid);
	r = look_into_libc(&m, &place, e);
	if (r == 0)
		r = check_proc(pid, e);
	if (r == 0)
		r = look_for_library(&m, &place, e);
	if (r < 0)
		return r;
	place.room = m.room;
	*ret_place = place;
	return 0;
}
