#include "inject/check.h"

#include "base/cleanup.h"
#include "elf/elf_file.h"
#include "elf/elf_syms.h"
#include "inject/inject.h"
#include "proc/namespace.h"
#include "proc/proc_maps.h"

#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

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

struct maps {
	pid_t pid;
	struct proc_map libc; /* its code; path is not kept */
	bool have_libc;
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

static int open_map(pid_t pid, const struct proc_map *map)
{
	char path[96];

	snprintf(path, sizeof(path), "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, (int)pid,
		 map->start, map->end);
	return open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
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
	_cleanup_(closep) int fd = open_map(m->pid, &m->libc);
	const struct elf_segment *segs;
	uint64_t vaddr;
	uint32_t n;
	int r;

	if (fd < 0)
		return err_set(e, -errno, "cannot read the C library of process %d: %s",
			       (int)m->pid, strerror(errno));
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

/* The file at that path in the process's own view is ours. */
static int check_library(pid_t pid, const char *library, struct err *e)
{
	struct ns_roots roots = { 0 };
	struct stat ours, theirs;
	int root = ns_roots_add(&roots, pid), fd, r = 0;

	fd = root < 0 ? root : ns_roots_open(&roots, root, library);
	if (fd < 0 || fstat(fd, &theirs) < 0 || stat(library, &ours) < 0)
		r = err_set(
			e, -ENOENT,
			"process %d does not see %s, where the library is: it has a file system of "
			"its own (a container); a copy at the same path there will do",
			(int)pid, library);
	/* A copy is fine, an older one is not. */
	else if (theirs.st_size != ours.st_size)
		r = err_set(e, -ENOENT,
			    "process %d sees another file at %s than the library of this memscope",
			    (int)pid, library);
	if (fd >= 0)
		close(fd);
	ns_roots_fini(&roots);
	return r;
}

static int check_machine(pid_t pid, struct err *e)
{
	_cleanup_(elf_file_closep) struct elf_file *elf = NULL;
	_cleanup_(closep) int fd = -1;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0 && (errno == EACCES || errno == EPERM))
		return err_set(
			e, -errno,
			"process %d may not be looked into: it has capabilities that memscope "
			"has not",
			(int)pid);
	if (fd < 0)
		return err_set(e, -errno,
			       "process %d has no program: it is the kernel's, or has ended",
			       (int)pid);
	if (elf_file_open(fd, path, &elf, NULL) < 0 || !elf_file_is64(elf) ||
	    elf_file_machine(elf) != EM_X86_64)
		return err_set(e, -EOPNOTSUPP, "process %d is not a program for x86-64", (int)pid);
	return 0;
}

/* --- all of it -------------------------------------------------------------------------------- */

int inject_look(pid_t pid, const char *library, uint64_t room_bytes, struct inject_place *ret_place,
		struct err *e)
{
	struct maps m = { .pid = pid };
	struct inject_place place = { 0 };
	struct status st;
	int r;

#if !defined(__x86_64__)
	return err_set(e, -EOPNOTSUPP, "a library can be injected on x86-64 only");
#endif
	if (read_status(pid, &st) < 0)
		return err_set(e, -ESRCH, "there is no process %d", (int)pid);
	if (strchr("ZX", st.state))
		return err_set(e, -ESRCH, "process %d has ended", (int)pid);
	if (strchr("Tt", st.state))
		return err_set(e, -EBUSY, "process %d is stopped: SIGCONT lets it go on", (int)pid);
	if (st.tracer)
		return err_set(e, -EBUSY, "process %d is traced by process %d, a debugger",
			       (int)pid, st.tracer);
	if (st.seccomp)
		return err_set(
			e, -EPERM,
			"process %d is under seccomp: a system call that its filter does not "
			"expect may end it",
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
		r = check_library(pid, library, e);
	if (r < 0)
		return r;
	place.room = m.room;
	*ret_place = place;
	return 0;
}

int inject_check(pid_t pid, const char *library, struct err *e)
{
	struct inject_place place;

	return inject_look(pid, library, 1 << 20, &place, e);
}
