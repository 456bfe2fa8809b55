#include "proc/proc_table.h"

#include "base/grow.h"
#include "proc/jit_files.h"
#include "proc/life.h"
#include "proc/proc_maps.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Another live process that maps an image: the n-th of all. */
static pid_t find_mapper(void *ctx, const struct image *img, uint32_t n)
{
	const struct proc_table *t = ctx;

	for (const struct pid_entry *entry = t->pids; entry; entry = entry->hh.next) {
		const struct life *l = entry->newest;
		const struct space *s = l && !l->exited ? l->newest->space : NULL;

		for (uint32_t i = 0; s && i < s->n; i++) {
			if (s->now[i].image != img)
				continue;
			if (n-- == 0)
				return entry->pid;
			break;
		}
	}
	return 0;
}

struct proc_table *proc_table_new(struct dict *d)
{
	struct proc_table *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->d = d;
	t->drains = 1;
	images_init(&t->images, d, &t->roots, find_mapper, t);
	return t;
}

struct proc_table_stats proc_table_stats(const struct proc_table *t)
{
	return t->stats;
}

/* --- mappings --- */

struct still_mapped {
	struct space *now;
};

static int add_range(void *ctx, const struct proc_map *map)
{
	struct still_mapped *s = ctx;
	struct mapping m = { .addr = map->start, .end = map->end, .merges = true };

	return map->perms & PROC_MAP_EXEC ? space_map(&s->now, &m) : 0;
}

static bool is_still_mapped(void *ctx, const struct mapping *m)
{
	const struct still_mapped *s = ctx;

	for (uint64_t at = m->addr; at < m->end;) {
		const struct mapping *found = space_find(s->now, 0, at);

		if (found)
			return true;
		/* Ranges are whole mappings or pieces of them: the ends and the middle will do. */
		at = at == m->addr && m->end - m->addr > 1 ? m->addr + (m->end - m->addr) / 2
							   : m->end;
	}
	return false;
}

static int prune(struct proc *p)
{
	_cleanup_(space_unrefp) struct space *now = space_new();
	struct still_mapped s = { now };
	int r;

	if (!now || proc_exited(p) || proc_replaced(p))
		return -ENOSPC;
	r = proc_maps_each(p->life->pid, add_range, &s, NULL);
	now = s.now;
	if (r)
		return -ENOSPC;
	r = space_prune(&p->space, is_still_mapped, &s);
	return r < 0 ? r : p->space->n > SPACE_MAX / 2 ? -ENOSPC : 0;
}

/*
 * munmap() is not reported, so a space fills with what is gone; /proc knows what is there. A process that has as many mappings for
 * good would have its list read for each one more: the next look comes after so many that they would fill half a space, and the
 * one after that after twice as many.
 */
static int make_room(struct proc *p)
{
	int r;

	if (p->full) {
		p->full--;
		return -ENOSPC;
	}
	r = prune(p);
	p->full_for = r == 0 ? 0 : p->full_for ? 2 * p->full_for : SPACE_MAX / 2;
	p->full = p->full_for;
	return r;
}

static struct image *image_of(struct proc_table *t, struct proc *p, const struct proc_mmap *m)
{
	_cleanup_(freep) char *path = strdup(m->path ? m->path : "");
	struct image *img;

	if (!path)
		return NULL;
	proc_path_undelete(path);
	img = images_get(&t->images, p->life->pid, m->addr, path, m->dev, m->ino);
	if (!img)
		return NULL;
	/* Whoever mapped it last is the likeliest to be there when the file is wanted. */
	img->pid = p->life->pid;
	img->addr = m->addr;
	img->len = m->len;
	image_seen_from(&t->images, img, p->root);
	return img;
}

void proc_map_add(struct proc_table *t, struct proc *p, const struct proc_mmap *m)
{
	struct mapping map = { .addr = m->addr, .off = m->file_off };
	int r;

	if (!p->space || __builtin_add_overflow(m->addr, m->len, &map.end))
		return;
	map.image = image_of(t, p, m);
	if (!map.image) {
		t->stats.lost_maps++;
		return;
	}
	map.merges = map.image->kind == MODULE_ANON;
	/* The vDSO's vaddrs are offsets into it, whatever offset the kernel gives it. */
	if (map.image->kind == MODULE_VDSO)
		map.off = 0;
	if (!p->exe && map.image->kind == MODULE_ELF)
		proc_set_exe(p, map.image->path);
	r = space_map(&p->space, &map);
	if (r == -ENOSPC && make_room(p) == 0)
		r = space_map(&p->space, &map);
	if (r < 0)
		t->stats.lost_maps++;
}

bool proc_table_meets(struct proc_table *t, pid_t pid, uint64_t addr, uint64_t len)
{
	struct life *l = life_running(t, pid);

	return l && l->newest->space && space_meets(l->newest->space, addr, addr + len);
}

bool proc_table_is_anon(const char *path)
{
	return image_is_anon(path);
}

bool proc_table_knows(struct proc_table *t, pid_t pid, const struct proc_mmap *m)
{
	struct life *l = life_running(t, pid);
	uint64_t end;

	return l && l->newest->space && !__builtin_add_overflow(m->addr, m->len, &end) &&
	       image_is_anon(m->path ? m->path : "") && space_holds(l->newest->space, m->addr, end);
}

uint32_t proc_table_mmap(struct proc_table *t, uint64_t ns, pid_t pid, const struct proc_mmap *m)
{
	struct life *l = life_running(t, pid);
	uint32_t before;

	if (!l)
		return 0;
	before = proc_generation(l->newest);
	if (ns > l->scanned_ns)
		proc_map_add(t, l->newest, m);
	if (proc_generation(l->newest) != before)
		l->newest->gen_ns[proc_generation(l->newest) % PROC_GENS] = ns;
	return proc_generation(l->newest);
}

void proc_resolve(struct proc_table *t, struct proc *p, uint32_t gen, uint64_t addr,
		  module_id *ret_module, uint64_t *ret_vaddr)
{
	const struct mapping *m = p && p->space ? space_find(p->space, gen, addr) : NULL;
	struct image *img = m ? m->image : NULL;

	if (!img) {
		t->stats.unresolved++;
		*ret_module = (module_id){ 0 };
		*ret_vaddr = addr;
		return;
	}
	*ret_module = image_module(&t->images, img);
	if (img->kind == MODULE_ELF)
		*ret_vaddr = image_vaddr(&t->images, img, addr - m->addr + m->off);
	else if (img->kind == MODULE_VDSO)
		*ret_vaddr = addr - m->addr + m->off;
	else
		*ret_vaddr = addr;
}

/* The image that is the program itself, by the path it was started as; else the lowest. */
static bool is_main(const struct proc *p, const struct image *img)
{
	return p->exe && !strcmp(img->path, p->exe);
}

uint32_t proc_images(struct proc_table *t, struct proc *p, struct proc_image *out, uint32_t cap)
{
	const struct space *s = p->space;
	uint32_t n = 0;

	/* Twice over the mappings: the main binary, then the others. */
	for (int others = 0; s && others < 2; others++) {
		for (uint32_t i = 0; i < s->n; i++) {
			const struct mapping *m = &s->now[i];
			bool seen = m->image->kind != MODULE_ELF ||
				    is_main(p, m->image) == (others == 1);

			for (uint32_t k = i; !seen && k-- > 0;)
				seen = s->now[k].image == m->image;
			if (seen)
				continue;
			if (n < cap)
				out[n] = (struct proc_image){ image_module(&t->images, m->image),
							      m->addr, m->end - m->addr, m->off };
			n++;
		}
	}
	return n;
}

uint32_t proc_mappings(struct proc_table *t, struct proc *p, struct proc_mapping *out, uint32_t cap)
{
	const struct space *s = p->space;

	for (uint32_t i = 0; s && i < s->n && i < cap; i++) {
		const struct mapping *m = &s->now[i];
		struct image *img = m->image;
		struct proc_mapping *to = &out[i];

		*to = (struct proc_mapping){ .addr = m->addr, .end = m->end, .kind = img->kind };
		to->module = image_module(&t->images, img);
		if (img->kind == MODULE_ELF)
			to->bias = image_bias(&t->images, img, m->addr, m->end - m->addr, m->off);
		else if (img->kind == MODULE_VDSO)
			to->bias = m->addr - m->off;
		to->readable = img->state == IMAGE_READ;
	}
	return s ? s->n : 0;
}

int proc_table_open_module(struct proc_table *t, module_id m, struct err *e)
{
	struct image *img = images_find(&t->images, m);

	if (!img)
		return err_set(e, -ENOENT, "%s: no process was seen to map it",
			       dict_str(t->d, dict_module_get(t->d, m)->path));
	return image_open(&t->images, img, e);
}

int proc_table_open_beside(struct proc_table *t, module_id m, const char *path, bool host)
{
	struct image *img = images_find(&t->images, m);

	if (!host && !img)
		return -ENOENT;
	return ns_roots_open(&t->roots, host ? -1 : img->beside, path);
}

int proc_table_open_in(struct proc_table *t, pid_t pid, const char *path)
{
	const struct proc *p = proc_table_live(t, pid) ?: proc_table_first(t, pid);

	return p && p->root >= 0 ? ns_roots_open(&t->roots, p->root, path) : -ENOENT;
}

int proc_table_open_perf_map(struct proc_table *t, module_id m)
{
	const struct image *img = images_find(&t->images, m);

	return img ? jit_open_perf_map(&t->images, img) : -ENOENT;
}

int proc_table_open_jitdump(struct proc_table *t, module_id m)
{
	const struct image *img = images_find(&t->images, m);

	return img ? jit_open_dump(&t->images, img) : -ENOENT;
}

bool proc_table_in_own_root(const struct proc_table *t, module_id m)
{
	const struct image *img = images_find(&t->images, m);

	return img && ns_root_is_own(&t->roots, img->beside);
}

bool proc_table_sees_own_root(struct proc_table *t, pid_t pid)
{
	const struct proc *p = proc_table_live(t, pid) ?: proc_table_first(t, pid);

	return p && ns_root_is_own(&t->roots, p->root);
}

/* --- records --- */

/* A parent's pid may have been a child's, when both were scanned after that fork. */
static bool descends_from(const struct life *l, const struct life *other)
{
	for (; l; l = l->parent ? l->parent->life : NULL)
		if (l == other)
			return true;
	return false;
}

void proc_table_fork(struct proc_table *t, uint64_t ns, pid_t pid, pid_t ppid, pid_t tid)
{
	struct life *l = life_running(t, pid), *parent;

	if (pid == ppid) {
		if (l && ns > l->scanned_ns) {
			l->threads++;
			proc_thread_begins(t, l->newest, tid);
		}
		return;
	}
	parent = life_running(t, ppid);
	if (l && ns <= l->scanned_ns) {
		/* /proc showed its outcome already; the record adds the parent and the time. */
		if (!l->parent && parent && !l->fork_seen && !descends_from(parent, l)) {
			l->parent = parent->newest;
			l->parent->refs++;
		}
		l->forked_ns = ns;
		l->fork_seen = true;
		return;
	}
	if (!parent) {
		if (l)
			life_end(l, ns);
		return;
	}
	l = life_begin(t, pid, ns, parent->newest);
	if (l)
		l->fork_seen = true;
}

void proc_table_comm(struct proc_table *t, uint64_t ns, pid_t pid, pid_t tid, const char *comm,
		     bool exec)
{
	struct life *l = life_running(t, pid);
	struct proc *p;
	int root;

	if (l && ns <= l->scanned_ns)
		return;
	/* All mappings of the new image follow an exec; the one before it stays empty. */
	if (!l && exec)
		l = life_begin(t, pid, ns, NULL);
	if (!l)
		return;
	if (!exec) {
		proc_set_comm(l->newest, tid, comm);
		return;
	}
	p = life_exec(t, l, ns, comm);
	if (!p)
		return;
	/* Container runtimes enter the container's root before they exec what runs in it. */
	root = ns_roots_add(&t->roots, pid);
	if (root >= 0)
		p->root = root;
	else if (root == -ENOSPC || root == -ENOMEM)
		p->root = NS_NO_ROOT; /* not the parent's: unknown */
}

static void ended_add(struct proc_table *t, struct proc *p, pid_t tid)
{
	struct ended_threads *e = &t->ended;

	if (!GROW(e->at, e->n, e->cap))
		return;
	if (proc_thread_ends(p, tid))
		e->at[e->n++] = (struct ended_thread){ proc_pid(p), tid };
}

void proc_table_drained(struct proc_table *t)
{
	struct ended_threads done = t->ended_before;

	for (uint32_t i = 0; i < done.n; i++) {
		struct life *l = life_running(t, done.at[i].pid);

		if (l)
			proc_thread_forget(l->newest, done.at[i].tid);
	}
	done.n = 0;
	t->ended_before = t->ended;
	t->ended = done;
	t->drains++;
}

void proc_table_exit(struct proc_table *t, uint64_t ns, pid_t pid, pid_t tid)
{
	struct life *l = life_running(t, pid);

	if (!l || ns <= l->scanned_ns)
		return;
	if (tid == pid)
		l->leader_exited = true;
	else
		ended_add(t, l->newest, tid);
	if (l->threads > 0)
		l->threads--;
	/* The leader may end before other threads; the process ends with the last of them. */
	if (l->leader_exited && l->threads == 0)
		life_end(l, ns);
}
