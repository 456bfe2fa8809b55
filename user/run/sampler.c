#include "run/sampler.h"

#include "base/small_file.h"
#include "collect/probes/samplers.h"
#include "collect/probes/uprobes.h"
#include "elf/elf_syms.h"
#include "elf/sdt.h"
#include "proc/namespace.h"
#include "proc/proc_maps.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ENVIRON_BYTES_MAX = 8 << 20 }; /* execve(2) allows 6 MiB */

struct look {
	pid_t pid;
	struct sampler_facts facts;
	uint64_t last_dev, last_ino;
	struct ns_roots roots;
	int root;
};

static bool has_sites(struct elf_file *elf)
{
	_cleanup_(sdt_notes_freep) struct sdt_notes *notes = NULL;

	if (sdt_notes_load(elf, &notes, NULL) < 0)
		return false;
	for (uint32_t i = 0; i < sdt_notes_count(notes); i++) {
		const struct sdt_note *note = sdt_notes_at(notes, i);

		if (strcmp(note->provider, "otel_memory") == 0 && strcmp(note->name, "alloc") == 0)
			return true;
	}
	return false;
}

/* jemalloc by its control function, under each of the names that it is built with. */
static const char *const known[][2] = {
	{ "mallctl", "MALLOC_CONF" },
	{ "je_mallctl", "JE_MALLOC_CONF" },
	{ "_rjem_mallctl", "_RJEM_MALLOC_CONF" },
	{ "_rjem_je_mallctl", "_RJEM_MALLOC_CONF" },
};

static bool is_known(const char *name)
{
	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++) {
		size_t len = strlen(known[i][0]);

		if (strncmp(name, known[i][0], len) == 0 && (!name[len] || name[len] == '@'))
			return true;
	}
	return false;
}

static const char *jemalloc_conf(struct elf_syms *syms)
{
	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
		if (elf_syms_find_name(syms, known[i][0], NULL, 0) > 0)
			return known[i][1];
	return NULL;
}

/* Only its sampler takes stacks, so only with it does a library of jemalloc import an unwinder. */
static bool imports_unwinder(struct elf_file *elf)
{
	static const char *const names[] = { "_Unwind_Backtrace", "unw_backtrace" };
	_cleanup_(freep) uint8_t *names_of_file = NULL;
	const struct elf_section *sec;

	if (elf_file_find_section(elf, ".dynstr", &sec, NULL) < 0 ||
	    elf_file_read_section(elf, sec, &names_of_file, NULL) < 0)
		return false;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (memmem(names_of_file, sec->size, names[i], strlen(names[i]) + 1))
			return true;
	return false;
}

static void look_for_jemalloc(struct look *l, struct elf_file *elf)
{
	_cleanup_(elf_syms_freep) struct elf_syms *syms = NULL;

	if (l->facts.jemalloc_conf || elf_syms_load_some(elf, is_known, &syms, NULL) < 0)
		return;
	l->facts.jemalloc_conf = jemalloc_conf(syms);
	if (l->facts.jemalloc_conf)
		l->facts.jemalloc_prof = imports_unwinder(elf);
}

/*
 * free() it; NULL: it cannot be read. A process may say that it has any memory of its own there, and any amount (prctl(2), PR_SET_MM). Most
 * have a page: to ask the allocator for all that it may be would change how it gives out what is large from then on.
 */
static char *read_environ(pid_t pid, int *ret_n)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/environ", (int)pid);
	for (size_t room = 64 << 10;; room *= 2) {
		_cleanup_(freep) char *all = malloc(room);

		*ret_n = all ? small_file_read(AT_FDCWD, path, all, room) : -1;
		if (*ret_n < 0)
			return NULL;
		if ((size_t)*ret_n < room - 1 || room >= ENVIRON_BYTES_MAX)
			return TAKE_PTR(all);
	}
}

/* VARIABLE=…prof:true… in the environment that the process was started with. */
static bool turned_on(pid_t pid, const char *variable)
{
	size_t len = strlen(variable);
	int n;
	_cleanup_(freep) char *all = read_environ(pid, &n);

	for (const char *item = all; n > 0 && item < all + n; item += strlen(item) + 1)
		if (strncmp(item, variable, len) == 0 && item[len] == '=' &&
		    strstr(item + len, "prof:true"))
			return true;
	return false;
}

static int open_debug(void *ctx, const char *path, bool host)
{
	const struct look *l = ctx;

	return ns_roots_open(&l->roots, host ? -1 : l->root, path);
}

/* `map`: where the file is in the process; NULL: there is no process yet. */
static void look_for_own(struct look *l, struct elf_file *elf, const char *path,
			 const struct proc_map *map)
{
	struct alloc_image image = { elf_file_fd(elf), path, open_debug, l };
	const struct elf_segment *segs;
	struct sampler_found found;
	uint64_t vaddr;
	uint32_t n;

	if (l->facts.heard)
		return;
	samplers_find(&image, &found);
	if (!found.kind)
		return;
	l->facts.own = found.kind;
	l->facts.why = found.why;
	l->facts.go = found.sampler && found.sampler->go;
	l->facts.counts = found.sampler && found.sampler->counter;
	l->facts.by_itself = l->facts.go || l->facts.counts;
	l->facts.how = found.sampler ? found.sampler->how : NULL;
	snprintf(l->facts.own_where, sizeof(l->facts.own_where), "%s", path);
	if (found.sampler && !uprobes_cookies())
		l->facts.why =
			"this kernel has no probe cookies (Linux 5.15), which say where arguments are";
	if (!found.sampler || l->facts.why)
		return;
	segs = elf_file_segments(elf, &n);
	if (!map)
		l->facts.rate = found.linked_off || found.on_vaddr ? 0 : found.rate;
	else if (elf_segments_off_to_vaddr(segs, n, map->file_off, &vaddr))
		samplers_rate(&found, l->pid, map->start - vaddr, &l->facts.rate);
	l->facts.rate_known = map && found.rate_vaddr;
	l->facts.heard = l->facts.rate > 0 || l->facts.counts;
}

static int look_at(void *ctx, const struct proc_map *map)
{
	_cleanup_(elf_file_closep) struct elf_file *elf = NULL;
	_cleanup_(closep) int fd = -1;
	struct look *l = ctx;

	if (!(map->perms & PROC_MAP_EXEC) || map->path[0] != '/' ||
	    (map->ino == l->last_ino && map->dev == l->last_dev))
		return 0;
	l->last_ino = map->ino;
	l->last_dev = map->dev;
	fd = ns_open_mapped(l->pid, map->start, map->end);
	if (fd < 0 || elf_file_open(fd, map->path, &elf, NULL) < 0)
		return 0;
	look_for_jemalloc(l, elf);
	look_for_own(l, elf, map->path, map);
	if (!l->facts.otel && has_sites(elf)) {
		l->facts.otel = true;
		snprintf(l->facts.where, sizeof(l->facts.where), "%s", map->path);
	}
	return 0;
}

void sampler_look(pid_t pid, struct sampler_facts *ret_facts)
{
	struct look l = { .pid = pid };

	l.root = ns_roots_add(&l.roots, pid);
	proc_maps_each(pid, look_at, &l, NULL);
	ns_roots_fini(&l.roots);
	if (l.facts.jemalloc_conf)
		l.facts.jemalloc_on = turned_on(pid, l.facts.jemalloc_conf);
	*ret_facts = l.facts;
}

/* As execvp() looks for it. */
static int open_command(const char *name, char path[PATH_MAX])
{
	const char *dirs = getenv("PATH");
	int fd = -1;

	if (strchr(name, '/')) {
		snprintf(path, PATH_MAX, "%s", name);
		return open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	}
	for (const char *dir = dirs; dir && *dir && fd < 0;) {
		int len = (int)strcspn(dir, ":");

		snprintf(path, PATH_MAX, "%.*s/%s", len, dir, name);
		if (access(path, X_OK) == 0)
			fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
		dir += len + (dir[len] == ':');
	}
	return fd;
}

void sampler_look_command(char *const *argv, struct sampler_facts *ret_facts)
{
	_cleanup_(elf_file_closep) struct elf_file *elf = NULL;
	_cleanup_(closep) int fd = -1;
	struct look l = { .root = -1 };
	char path[PATH_MAX];

	fd = open_command(argv[0], path);
	if (fd >= 0 && elf_file_open(fd, path, &elf, NULL) == 0)
		look_for_own(&l, elf, path, NULL);
	*ret_facts = l.facts;
}

void sampler_advise(const struct sampler_facts *facts, char *buf, size_t cap)
{
	buf[0] = '\0';
	if (!facts->own || facts->heard)
		return;
	if (facts->why)
		snprintf(buf, cap, "the sampler of %s cannot be listened to: %s", facts->own,
			 facts->why);
	else if (facts->go)
		snprintf(
			buf, cap,
			"Go's own sampler is off in this program: it never asks for a heap profile, so "
			"Go's linker turns it off, or runtime.MemProfileRate is 0; importing "
			"net/http/pprof turns it on");
	else if (facts->how)
		snprintf(buf, cap, "the sampler of %s is off: %s", facts->own, facts->how);
	else
		snprintf(
			buf, cap,
			"jemalloc's own sampler is off: %s=prof:true,lg_prof_sample:19 turns it on when "
			"the process is started",
			facts->jemalloc_conf ? facts->jemalloc_conf : "MALLOC_CONF");
}

bool sampler_library(char *ret_path, size_t cap)
{
	static const char *const places[] = { "%.*s" SAMPLER_LIBRARY,
					      "%.*s../lib/memscope/" SAMPLER_LIBRARY };
	char exe[PATH_MAX], path[PATH_MAX + 64], real[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
	char *slash;

	if (n <= 0)
		return false;
	exe[n] = '\0';
	slash = strrchr(exe, '/');
	for (size_t i = 0; slash && i < sizeof(places) / sizeof(*places); i++) {
		snprintf(path, sizeof(path), places[i], (int)(slash + 1 - exe), exe);
		if (realpath(path, real) && access(real, R_OK) == 0 && strlen(real) < cap) {
			memcpy(ret_path, real, strlen(real) + 1);
			return true;
		}
	}
	return false;
}
