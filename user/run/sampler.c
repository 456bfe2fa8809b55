#include "run/sampler.h"

#include "base/small_file.h"
#include "collect/probes/sampler_places.h"
#include "collect/probes/uprobes.h"
#include "proc/launch.h"
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

/* What is not known yet is asked of the next file. */
static uint8_t asks_now(const struct look *l)
{
	return (uint8_t)((l->facts.otel ? 0 : SAMPLER_ASK_NOTES) |
			 (l->facts.heard ? 0 : SAMPLER_ASK_OWN) |
			 (l->facts.jemalloc_conf ? 0 : SAMPLER_ASK_CONTROL));
}

/* `map`: where the file is in the process; NULL: there is no process yet. */
static void take_own(struct look *l, const struct sampler_places *p, const char *path,
		     const struct proc_map *map)
{
	const struct sampler_found *found = &p->found;

	if (!found->kind)
		return;
	l->facts.own = found->kind;
	l->facts.why = found->why;
	l->facts.go = found->sampler && found->sampler->go;
	l->facts.counts = found->sampler && found->sampler->counter;
	l->facts.by_itself = l->facts.go || l->facts.counts;
	l->facts.how = found->sampler ? found->sampler->how : NULL;
	snprintf(l->facts.own_where, sizeof(l->facts.own_where), "%s", path);
	if (found->sampler && !uprobes_cookies())
		l->facts.why =
			"this kernel has no probe cookies (Linux 5.15), which say where arguments are";
	if (!found->sampler || l->facts.why)
		return;
	if (!map)
		l->facts.rate = found->linked_off || found->on_vaddr ? 0 : found->rate;
	else if (p->is_mapped)
		samplers_rate(found, l->pid, map->start - p->vaddr, &l->facts.rate);
	l->facts.rate_known = map && found->rate_vaddr;
	l->facts.heard = l->facts.rate > 0 || l->facts.counts;
}

static void look_into(struct look *l, int fd, const char *path, const struct proc_map *map,
		      uint8_t asks)
{
	struct alloc_image image = { fd, path, open_debug, l };
	struct sampler_places p;
	struct err e;

	if (!asks)
		return;
	if (sampler_places_ask(&image, asks, map ? map->file_off : 0, &p, &e) < 0 &&
	    !*l->facts.unread)
		snprintf(l->facts.unread, sizeof(l->facts.unread), "%.255s", e.msg);
	if (p.control) {
		l->facts.jemalloc_conf = p.control;
		l->facts.jemalloc_prof = p.control_samples;
	}
	take_own(l, &p, path, map);
	if (p.n_sites[SAMPLE_NOTE_ALLOC]) {
		l->facts.otel = true;
		snprintf(l->facts.where, sizeof(l->facts.where), "%s", path);
	}
}

static int look_at(void *ctx, const struct proc_map *map)
{
	_cleanup_(closep) int fd = -1;
	struct look *l = ctx;

	if (!(map->perms & PROC_MAP_EXEC) || map->path[0] != '/' ||
	    (map->ino == l->last_ino && map->dev == l->last_dev))
		return 0;
	l->last_ino = map->ino;
	l->last_dev = map->dev;
	fd = ns_open_mapped(l->pid, map->start, map->end);
	if (fd >= 0)
		look_into(l, fd, map->path, map, asks_now(l));
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

void sampler_look_command(char *const *argv, struct sampler_facts *ret_facts)
{
	_cleanup_(closep) int fd = -1;
	struct look l = { .root = -1 };
	char path[PATH_MAX];

	fd = launch_open_program(argv[0], path);
	if (fd >= 0)
		look_into(&l, fd, path, NULL, SAMPLER_ASK_OWN);
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
