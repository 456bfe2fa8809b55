#include "proc/life.h"

#include <stdlib.h>
#include <string.h>

static void forget_threads(struct proc *p)
{
	hash_free(p->threads);
	p->n_threads = p->n_ended = 0;
}

static void lineage_unref(struct lineage *line)
{
	if (line && --line->refs == 0)
		free(line);
}

/* One owner less of a life; ends with the oldest ancestor that nobody else needs. */
static void life_unref(struct life *l)
{
	while (l && --l->refs == 0) {
		struct proc *parent = l->parent;

		lineage_unref(l->lineage);
		free(l);
		if (!parent || --parent->refs)
			return;
		l = parent->life;
		free(parent->exe);
		free(parent);
	}
}

/* The life lets go of an image: its addresses and threads are no longer asked for. */
static void drop_image(struct proc *p)
{
	struct life *l = p->life;

	forget_threads(p);
	space_unref(p->space);
	p->space = NULL;
	p->older = NULL;
	if (--p->refs)
		return;
	free(p->exe);
	free(p);
	life_unref(l);
}

static void drop_life(struct life *l)
{
	while (l->newest) {
		struct proc *p = l->newest;

		l->newest = p->older;
		drop_image(p);
	}
	life_unref(l);
}

/* --- lookup
 * -------------------------------------------------------------------------------------- */

static struct pid_entry *entry_of(const struct proc_table *t, pid_t pid)
{
	struct pid_entry *entry;

	HASH_FIND(hh, t->pids, &pid, sizeof(pid), entry);
	return entry;
}

/* The newest life of a pid, whether it lives or not; NULL. */
static struct life *life_of(const struct proc_table *t, pid_t pid)
{
	struct pid_entry *entry = entry_of(t, pid);

	return entry ? entry->newest : NULL;
}

struct life *life_running(const struct proc_table *t, pid_t pid)
{
	struct life *l = life_of(t, pid);

	return l && !l->exited ? l : NULL;
}

/* The smallest fork time >= start_ns; one that has been named has just that start. */
static struct life *life_by_start(const struct proc_table *t, const struct proc_id *id)
{
	struct life *best = NULL;

	for (struct life *l = life_of(t, (pid_t)id->pid); l; l = l->older) {
		if (l->start_ns == id->start_ns && l->start_ns)
			return l;
		if (l->start_ns || l->forked_ns < id->start_ns ||
		    (l->fork_seen && l->forked_ns - id->start_ns > FORK_TAKES_NS))
			continue;
		if (!best || l->forked_ns < best->forked_ns)
			best = l;
	}
	return best;
}

static struct proc *image_by_exec_id(struct life *l, uint32_t exec_id)
{
	struct lineage *line = l->lineage;
	int32_t nth;

	if (!line->known) {
		line->known = true;
		line->base = exec_id - l->offset - l->newest->nth;
		line->slack = l->newest->nth;
		line->guessed = l;
	}
	/* Signed, so that ids on both sides compare; they wrap. */
	nth = (int32_t)(exec_id - line->base - l->offset);
	if (l == line->guessed && nth > (int32_t)l->newest->nth &&
	    nth - (int32_t)l->newest->nth <= (int32_t)line->slack) {
		uint32_t too_low = (uint32_t)nth - l->newest->nth;

		line->base += too_low;
		line->slack -= too_low;
		nth = (int32_t)l->newest->nth;
	}
	for (struct proc *p = l->newest; p; p = p->older)
		if ((int32_t)p->nth == nth)
			return p;
	return NULL;
}

struct proc *proc_table_find(struct proc_table *t, const struct proc_id *id)
{
	struct life *l = life_by_start(t, id);
	struct proc *p = l ? image_by_exec_id(l, id->exec_id) : NULL;

	if (p)
		l->start_ns = id->start_ns;
	else
		t->stats.unknown_procs++;
	return p;
}

bool proc_id_of(const struct proc *p, struct proc_id *ret_id)
{
	const struct life *l = p->life;

	if (!l->start_ns || !l->lineage->known)
		return false;
	*ret_id = (struct proc_id){ .pid = (uint32_t)l->pid,
				    .exec_id = l->lineage->base + l->offset + p->nth,
				    .start_ns = l->start_ns };
	return true;
}

struct proc *proc_table_live(struct proc_table *t, pid_t pid)
{
	struct life *l = life_running(t, pid);

	return l ? l->newest : NULL;
}

struct proc *proc_table_last(struct proc_table *t, pid_t pid)
{
	struct life *l = life_of(t, pid);

	return l ? l->newest : NULL;
}

struct proc *proc_table_first(struct proc_table *t, pid_t pid)
{
	struct life *l = life_of(t, pid);

	while (l && l->older)
		l = l->older;
	return l ? l->newest : NULL;
}

/* --- beginnings and ends
 * ------------------------------------------------------------------------- */

static struct proc *image_new(struct life *l, struct space *space)
{
	struct proc *p = space ? calloc(1, sizeof(*p)) : NULL;

	if (!p) {
		space_unref(space);
		return NULL;
	}
	p->life = l;
	l->refs++;
	p->refs = 1;
	p->space = space;
	p->root = -1;
	p->older = l->newest;
	p->nth = l->newest ? l->newest->nth + 1 : 0;
	l->newest = p;
	return p;
}

static struct lineage *lineage_of(const struct proc *parent)
{
	struct lineage *line = parent ? parent->life->lineage : calloc(1, sizeof(*line));

	if (line)
		line->refs++;
	return line;
}

static bool enter(struct proc_table *t, struct life *l)
{
	struct pid_entry *entry = hash_get(t->pids, pid, &l->pid);

	if (!entry)
		return false;
	if (entry->newest)
		life_end(entry->newest, l->forked_ns);
	l->older = entry->newest;
	entry->newest = l;
	return true;
}

struct life *life_begin(struct proc_table *t, pid_t pid, uint64_t forked_ns, struct proc *parent)
{
	struct life *l = calloc(1, sizeof(*l));
	struct proc *p = NULL;

	if (l) {
		*l = (struct life){ .pid = pid,
				    .forked_ns = forked_ns,
				    .began = t->drains,
				    .threads = 1,
				    .refs = 1 };
		l->lineage = lineage_of(parent);
		if (l->lineage)
			p = image_new(l, parent && parent->space ? space_ref(parent->space)
								 : space_new());
	}
	if (!p || !enter(t, l)) {
		t->stats.lost_procs++;
		if (l)
			drop_life(l);
		return NULL;
	}
	if (parent) {
		l->offset = parent->life->offset + parent->nth;
		l->parent = parent;
		parent->refs++;
		p->root = parent->root;
		memcpy(p->comm, parent->comm, sizeof(p->comm));
		if (parent->exe)
			p->exe = strdup(parent->exe);
	}
	return l;
}

void life_end(struct life *l, uint64_t ns)
{
	if (l->exited)
		return;
	l->exited = true;
	if (l->newest)
		l->newest->end_ns = ns;
}

struct proc *life_exec(struct proc_table *t, struct life *l, uint64_t ns, const char *comm)
{
	struct proc *before = l->newest, *p = image_new(l, space_new());

	if (!p) {
		t->stats.lost_procs++;
		return NULL;
	}
	/* An exec ends all other threads. */
	l->threads = 1;
	l->leader_exited = false;
	before->end_ns = ns;
	p->root = before->root;
	proc_set_comm(p, l->pid, comm);
	return p;
}

static void unlink_old_images(struct life *l, uint64_t ns)
{
	struct proc **at = &l->newest;

	while (*at) {
		struct proc *p = *at;

		if (p == l->newest || !p->end_ns || p->end_ns >= ns) {
			at = &p->older;
			continue;
		}
		*at = p->older;
		drop_image(p);
	}
}

/* Whose parent is forgotten has none: a line of forks, each of which ends, would be kept from its first on. */
static void leave_parent(struct life *l)
{
	struct proc *parent = l->parent;

	if (!parent || !parent->life->retired)
		return;
	l->parent = NULL;
	if (--parent->refs)
		return;
	l = parent->life;
	free(parent->exe);
	free(parent);
	life_unref(l);
}

static void leave_parents(struct proc_table *t)
{
	struct pid_entry *entry, *next;

	HASH_ITER (hh, t->pids, entry, next)
		for (struct life *l = entry->newest; l; l = l->older)
			leave_parent(l);
}

void proc_table_retire(struct proc_table *t, uint64_t ns)
{
	struct pid_entry *entry, *next;

	HASH_ITER (hh, t->pids, entry, next) {
		struct life **at = &entry->newest;

		while (*at) {
			struct life *l = *at;

			if (l->exited && l->newest->end_ns < ns) {
				*at = l->older;
				l->retired = true;
				drop_life(l);
			} else {
				unlink_old_images(l, ns);
				at = &l->older;
			}
		}
		if (!entry->newest) {
			HASH_DELETE(hh, t->pids, entry);
			free(entry);
		}
	}
	leave_parents(t);
}

void proc_table_free(struct proc_table *t)
{
	struct pid_entry *entry, *next;

	if (!t)
		return;
	HASH_ITER (hh, t->pids, entry, next) {
		while (entry->newest) {
			struct life *l = entry->newest;

			entry->newest = l->older;
			drop_life(l);
		}
		HASH_DELETE(hh, t->pids, entry);
		free(entry);
	}
	free(t->ended.at);
	free(t->ended_before.at);
	images_fini(&t->images);
	ns_roots_fini(&t->roots);
	free(t);
}

/* --- what is known about an image
 * ---------------------------------------------------------------- */

static void copy_comm(char to[COMM_BYTES], const char *from)
{
	size_t len = strnlen(from, COMM_BYTES - 1);

	memset(to, 0, COMM_BYTES);
	memcpy(to, from, len);
}

static struct thread_name *thread_of(const struct proc *p, pid_t tid)
{
	struct thread_name *name;

	HASH_FIND(hh, p->threads, &tid, sizeof(tid), name);
	return name;
}

/* NULL: out of memory, or too many. */
static struct thread_name *thread_get(struct proc *p, pid_t tid)
{
	struct thread_name *name = thread_of(p, tid);

	if (!name && p->n_threads < THREAD_NAMES_MAX) {
		name = hash_new(p->threads, tid, &tid);
		p->n_threads += name != NULL;
	}
	return name;
}

void proc_set_comm(struct proc *p, pid_t tid, const char *comm)
{
	struct thread_name *name;

	if (tid == p->life->pid) {
		copy_comm(p->comm, comm);
		return;
	}
	name = thread_get(p, tid);
	if (!name)
		return;
	p->n_ended -= name->ended && *name->comm;
	copy_comm(name->comm, comm);
	p->n_ended += name->ended && *name->comm;
}

static void thread_drop(struct proc *p, struct thread_name *name)
{
	p->n_ended -= name->ended && *name->comm;
	p->n_threads--;
	HASH_DEL(p->threads, name);
	free(name);
}

void proc_thread_begins(const struct proc_table *t, struct proc *p, pid_t tid)
{
	struct thread_name *name = thread_of(p, tid);

	if (name && name->ended)
		thread_drop(p, name);
	name = thread_get(p, tid);
	if (name)
		name->began = t->drains;
}

bool proc_thread_ends(struct proc *p, pid_t tid)
{
	struct thread_name *name = thread_of(p, tid);

	if (!name || name->ended)
		return false;
	name->ended = true;
	p->n_ended += *name->comm != '\0';
	return true;
}

bool proc_thread_stays(const struct proc_table *t, const struct proc *p, pid_t tid)
{
	const struct thread_name *name = thread_of(p, tid);

	return name ? !name->ended && name->began != t->drains : tid == p->life->pid;
}

bool proc_stays(const struct proc_table *t, const struct proc *p)
{
	return !p->life->exited && p->life->began != t->drains;
}

void proc_thread_forget(struct proc *p, pid_t tid)
{
	struct thread_name *name = thread_of(p, tid);

	if (name && name->ended && (!*name->comm || p->n_ended > ENDED_NAMES_MAX))
		thread_drop(p, name);
}

void proc_set_exe(struct proc *p, const char *path)
{
	free(p->exe);
	p->exe = strdup(path);
}

pid_t proc_pid(const struct proc *p)
{
	return p->life->pid;
}

const char *proc_comm(const struct proc *p)
{
	return p->comm;
}

const char *proc_thread_comm(const struct proc *p, pid_t tid)
{
	const struct thread_name *name = thread_of(p, tid);

	return name && *name->comm && strcmp(name->comm, p->comm) != 0 ? name->comm : NULL;
}

const char *proc_exe(const struct proc *p)
{
	return p->exe ? p->exe : "";
}

bool proc_replaced(const struct proc *p)
{
	return p->end_ns && p != p->life->newest;
}

bool proc_exited(const struct proc *p)
{
	return p->life->exited;
}

struct proc *proc_parent(const struct proc *p)
{
	return p->life->parent;
}

uint32_t proc_generation(const struct proc *p)
{
	return p->space ? p->space->gen : 0;
}

uint32_t proc_generation_at(const struct proc *p, uint32_t gen, uint64_t ns)
{
	uint32_t now = proc_generation(p), at = now;

	if (gen >= now) /* ahead: of records that are not read yet */
		return now;
	while (at > gen && now - at < PROC_GENS && p->gen_ns[at % PROC_GENS] > ns)
		at--;
	return at > gen && now - at < PROC_GENS ? at : gen;
}
