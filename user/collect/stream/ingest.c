#include "collect/stream/ingest_parts.h"
#include "collect/stream/stacks_in_use.h"

#include "base/clock.h"
#include "base/grow.h"
#include "base/syscall_names.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

/* Of a stack taken in sched_switch, before __schedule: on arm64 each part of a program is one. */
#define OWN_FRAMES_MAX    12
#define WAITING_MAX       65536 /* totals that wait for their stacks */
#define WAITS_MORE_NS     100000000000ULL
#define SCHEDULE_SIZE_MAX 0x2000 /* bytes of code; it has some 3,000                     */

/* A frame that marks a missing one. */
static location_id named_location(struct dict *d, uint64_t vaddr, const char *name)
{
	location_id id = dict_location(d, (module_id){ 0 }, vaddr);
	struct line line = { .function = dict_string(d, name) };

	dict_location_name(d, id, &line, 1);
	return id;
}

struct ingest *ingest_new(struct dict *d, struct proc_table *procs,
			  const struct ingest_profiles *profiles, uint64_t schedule_addr)
{
	struct ingest *in = calloc(1, sizeof(*in));

	if (!in)
		return NULL;
	in->dict = d;
	in->procs = procs;
	in->profiles = *profiles;
	in->schedule_addr = schedule_addr;
	in->kernel = dict_module(
		d, &(struct module){ .kind = MODULE_KERNEL, .path = dict_string(d, "[kernel]") });
	in->lost = named_location(d, UINT64_MAX, "[stack lost]");
	in->none = named_location(d, UINT64_MAX - 1, "[no stack]");
	in->no_room = named_location(d, UINT64_MAX - 3, "[no room for more stacks]");
	in->key_pid = dict_string(d, "pid");
	in->key_tid = dict_string(d, "tid");
	in->key_comm = dict_string(d, "comm");
	in->key_thread = dict_string(d, "thread");
	in->key_memory = dict_string(d, "memory");
	in->key_container = dict_string(d, "container");
	in->key_container_id = dict_string(d, "container_id");
	in->key_pod = dict_string(d, "pod");
	in->key_namespace = dict_string(d, "namespace");
	in->key_cgroup = dict_string(d, "cgroup");
	in->key_ns_pid = dict_string(d, "ns_pid");
	return in;
}

void ingest_tracers(struct ingest *in, const struct kernel_function *functions, uint32_t n)
{
	for (uint32_t i = 0; i < n && i < INGEST_TRACERS; i++)
		in->tracers[i] = functions[i];
}

void ingest_wakers(struct ingest *in, const struct kernel_function *function)
{
	in->waking = *function;
}

void ingest_forget(struct ingest *in)
{
	hash_free(in->resolved);
	hash_free(in->labels);
	ingest_forget_shown(in);
}

void ingest_free(struct ingest *in)
{
	if (!in)
		return;
	hash_free(in->resolved);
	hash_free(in->labels);
	hash_free(in->shown);
	hash_free(in->holdings);
	hash_free(in->raw);
	free(in->waiting);
	free(in);
}

void ingest_on_incomplete(struct ingest *in, ingest_incomplete_fn fn, void *ctx)
{
	in->on_incomplete = fn;
	in->incomplete_ctx = ctx;
}

void ingest_on_langs(struct ingest *in, const struct ingest_langs *langs)
{
	in->langs = *langs;
}

void ingest_on_alloc(struct ingest *in, ingest_alloc_fn fn, void *ctx)
{
	assert(in->n_on_alloc < INGEST_ALLOC_LISTENERS);
	in->on_alloc[in->n_on_alloc].fn = fn;
	in->on_alloc[in->n_on_alloc++].ctx = ctx;
}

void ingest_container_lookup(struct ingest *in, ingest_container_fn fn, void *ctx)
{
	in->container_of_process = fn;
	in->container_ctx = ctx;
}

const char *ingest_container_name(struct ingest *in, const struct proc_id *proc)
{
	struct ingest_container c = { 0 };

	if (in->container_of_process)
		in->container_of_process(in->container_ctx, proc, 0, &c);
	return c.name;
}

void ingest_on_own_labels(struct ingest *in, ingest_own_labels_fn fn, void *ctx)
{
	in->own_labels = fn;
	in->own_labels_ctx = ctx;
}

void ingest_on_events(struct ingest *in, ingest_event_fn fn, void *ctx)
{
	in->event = fn;
	in->event_ctx = ctx;
}

static struct raw_stack *raw_find(struct ingest *in, const struct ms_hash *hash)
{
	struct raw_stack *raw;

	HASH_FIND(hh, in->raw, hash, sizeof(*hash), raw);
	if (raw)
		raw->age.used = in->ages;
	return raw;
}

void ingest_stack_used(struct ingest *in, const struct ms_hash *user)
{
	raw_find(in, user);
}

uint32_t ingest_age_stacks(struct ingest *in, uint32_t calls, stack_hash_fn again, void *ctx)
{
	struct raw_stack *raw, *next;
	uint32_t forgotten = 0;

	/* Totals whose stack came after them. */
	for (uint32_t i = 0; i < in->n_waiting; i++)
		raw_find(in, &in->waiting[i].key.user);
	in->ages++;
	HASH_ITER (hh, in->raw, raw, next) {
		enum record_old old = raw->flags & MS_STACK_KERNEL
					      ? RECORD_NOT_OLD
					      : record_old(&raw->age, in->ages, calls);

		if (old == RECORD_SEND_AGAIN)
			again(ctx, &raw->hash);
		if (old != RECORD_FORGET)
			continue;
		HASH_DEL(in->raw, raw);
		free(raw);
		forgotten++;
	}
	return forgotten;
}

static bool is_lang(uint64_t frame)
{
	return frame >> MS_FRAME_TAG_SHIFT == MS_FRAME_LANG;
}

static int add_stack(struct ingest *in, const struct ms_stack_rec *rec, const uint64_t *frames,
		     bool placed, uint32_t as_gen)
{
	struct raw_stack *raw = raw_find(in, &rec->hash);

	if (raw || rec->n_frames > MS_MAX_FRAMES)
		return 0;
	raw = malloc(sizeof(*raw) + rec->n_frames * sizeof(*frames));
	if (!raw)
		return -ENOMEM;
	raw->hash = rec->hash;
	raw->n = rec->n_frames;
	raw->flags = rec->flags;
	raw->verdict = rec->verdict;
	raw->placed = placed;
	raw->as_gen = as_gen;
	raw->age = (struct record_age){ .used = in->ages };
	raw->has_lang = false;
	for (uint32_t i = 0; i < raw->n && !(raw->flags & MS_STACK_KERNEL); i++)
		raw->has_lang |= is_lang(frames[i]);
	memcpy(raw->frames, frames, rec->n_frames * sizeof(*frames));
	HASH_ADD(hh, in->raw, hash, sizeof(raw->hash), raw);
	if (hash_added(raw))
		return 0;
	free(raw);
	return -ENOMEM;
}

int ingest_stack(struct ingest *in, const struct ms_stack_rec *rec, const uint64_t *frames)
{
	for (uint32_t i = 0;
	     in->langs.seen && !(rec->flags & MS_STACK_KERNEL) && i + 1 < rec->n_frames; i++)
		if (is_lang(frames[i]))
			in->langs.seen(in->langs.ctx, (pid_t)rec->tgid, frames + i);
	return add_stack(in, rec, frames, false, 0);
}

int ingest_stack_placed(struct ingest *in, const struct ms_stack_rec *rec, const uint64_t *frames,
			uint32_t as_gen)
{
	return add_stack(in, rec, frames, true, as_gen);
}

/* --- resolving --- */

/* `addr`: behind a call, which may be the last instruction of its function. */
static bool is_tracer(const struct ingest *in, uint64_t addr)
{
	for (int i = 0; i < INGEST_TRACERS; i++)
		if (addr - 1 - in->tracers[i].addr < in->tracers[i].size)
			return true;
	return false;
}

/*
 * A stack taken in sched_switch begins with our own program and the tracepoint's machinery; the
 * thread's own frames begin at __schedule; a waker's begin at try_to_wake_up. One taken in rss_stat begins after the machinery. The
 * number of frames differs between kernels, so functions are recognized by address.
 */
static uint32_t own_frames(const struct ingest *in, const struct raw_stack *raw)
{
	uint32_t n = 0;

	if (raw->flags & MS_STACK_AT_RSS) {
		for (uint32_t i = 0; i < raw->n && i < OWN_FRAMES_MAX; i++)
			if (is_tracer(in, raw->frames[i]))
				n = i + 1;
		return n;
	}
	if (raw->flags & MS_STACK_AT_WAKING) {
		for (uint32_t i = 0; i < raw->n && i < OWN_FRAMES_MAX; i++)
			if (raw->frames[i] - in->waking.addr < in->waking.size)
				return i;
		return 0;
	}
	if (!(raw->flags & MS_STACK_AT_SWITCH) || !in->schedule_addr)
		return 0;
	for (uint32_t i = 0; i < raw->n && i < OWN_FRAMES_MAX; i++)
		if (raw->frames[i] - in->schedule_addr < SCHEDULE_SIZE_MAX)
			return i;
	return 0;
}

static uint32_t kernel_frames(struct ingest *in, const struct raw_stack *raw, location_id *out)
{
	uint32_t n = 0;

	/* Only where an interrupt found the kernel is the leaf not a return address. */
	for (uint32_t i = own_frames(in, raw); i < raw->n; i++) {
		bool leaf =
			i == 0 &&
			!(raw->flags & (MS_STACK_AT_SWITCH | MS_STACK_AT_RSS | MS_STACK_AT_WAKING));

		out[n++] = dict_location(in->dict, in->kernel,
					 leaf ? raw->frames[i] : raw->frames[i] - 1);
	}
	return n;
}

static location_id user_location(struct ingest *in, struct proc *proc, uint32_t gen, uint64_t frame,
				 bool leaf)
{
	bool exact = leaf || frame >> MS_FRAME_TAG_SHIFT == MS_FRAME_EXACT;
	uint64_t addr = frame & MS_FRAME_ADDR_MASK, pc = exact || !addr ? addr : addr - 1, vaddr;
	module_id module;

	proc_resolve(in->procs, proc, gen, pc, &module, &vaddr);
	return dict_location(in->dict, module, vaddr);
}

/*
 * Native frames of the interpreter itself, from out[first] on, are left out where they only lead from one frame of
 * the language to the next, or execute one: those right behind one, or a leaf that executes one of its bytecodes.
 */
static uint32_t user_frames(struct ingest *in, struct proc *proc, const struct ms_proc *p,
			    uint32_t gen, const struct raw_stack *user, location_id *out)
{
	struct proc_id id = wire_id(p);
	uint32_t n = 0, shown = 0; /* behind the last frame that stays for certain */
	bool below = false;        /* … which is of the language                  */
	bool internal = false;     /* the last native frame is the interpreter's */

	for (uint32_t i = 0; i < user->n; i++) {
		uint64_t frame = user->frames[i];
		bool executes;

		if (is_lang(frame) && i + 1 < user->n) {
			if (below && !in->langs.keep_native)
				n = shown; /* all between was the interpreter's */
			else if (i == 1 && internal && ms_lang_is_bytecode(user->frames[i + 1]) &&
				 !in->langs.keep_native)
				n = 0;
			out[n++] = in->langs.place
					   ? in->langs.place(in->langs.ctx, &id, user->frames + i)
					   : in->none;
			if (i > 0 && in->langs.stub && !in->langs.keep_native &&
			    in->langs.stub(in->langs.ctx, &id, user->frames + i))
				n--;
			shown = n;
			below = true;
			i++;
			continue;
		}
		/* Code that is compiled is executed by no function. */
		executes = i > 1 && is_lang(user->frames[i - 2]) &&
			   ms_lang_has_chain(user->frames[i - 1] >> MS_LANG_SHIFT & 0xf);
		out[n++] = user_location(in, proc, gen, frame, i == 0);
		if (!below && i)
			continue;
		internal = in->langs.internal &&
			   in->langs.internal(in->langs.ctx, &id,
					      dict_location_get(in->dict, out[n - 1])->module);
		below &= internal;
		if (below && executes && !in->langs.keep_native)
			n--;
	}
	return n;
}

static bool is_empty(const struct ms_hash *h)
{
	return !h->lo && !h->hi;
}

bool ingest_missing(struct ingest *in, const struct ms_hash *stack)
{
	return !is_empty(stack) && !raw_find(in, stack);
}

bool ingest_resolve(struct ingest *in, struct proc *proc, const struct ms_total_key *key,
		    stack_id *ret_stack)
{
	struct raw_stack *user = is_empty(&key->user) ? NULL : raw_find(in, &key->user);
	struct raw_stack *kernel = is_empty(&key->kernel) ? NULL : raw_find(in, &key->kernel);
	struct resolved_key k;
	struct resolved *res;
	uint32_t n = 0;

	if (!in->finishing &&
	    ((!user && !is_empty(&key->user)) || (!kernel && !is_empty(&key->kernel))))
		return false;
	memset(&k, 0, sizeof(k));
	k.proc = proc;
	k.user = key->user;
	k.kernel = key->kernel;
	k.as_gen = user && user->placed ? user->as_gen : key->as_gen;
	HASH_FIND(hh, in->resolved, &k, sizeof(k), res);
	if (res) {
		*ret_stack = res->stack;
		return true;
	}
	if (kernel)
		n = kernel_frames(in, kernel, in->scratch);
	if (user)
		n += user_frames(in, proc, &key->proc, (uint32_t)k.as_gen, user, in->scratch + n);
	if (!user && !is_empty(&key->user))
		in->scratch[n++] = in->lost;
	if (!n)
		in->scratch[n++] = in->none; /* viewers drop samples without a frame */
	*ret_stack = dict_stack(in->dict, in->scratch, n);

	/* It may come yet. */
	if ((!user && !is_empty(&key->user)) || (!kernel && !is_empty(&key->kernel)))
		return true;
	res = hash_new(in->resolved, key, &k);
	if (res) /* only a cache */
		res->stack = *ret_stack;
	return true;
}

static uint32_t text_label(struct ingest *in, string_id key, const char *text, struct label *set,
			   uint32_t n)
{
	if (text)
		set[n++] = (struct label){ .key = key, .str = dict_string(in->dict, text) };
	return n;
}

/* Adds the container of a process to its labels; returns the new number of labels. *ret_unsure: it may be in another. */
static uint32_t whose(struct ingest *in, const struct ms_proc *p, bool shown, uint64_t cgroup_id,
		      struct label *set, uint32_t n, bool *ret_unsure)
{
	struct proc_id id = wire_id(p);
	struct ingest_container c = { 0 };

	if (in->container_of_process)
		in->container_of_process(in->container_ctx, &id, cgroup_id, &c);
	n = text_label(in, in->key_container, c.name, set, n);
	n = text_label(in, in->key_container_id, c.id, set, n);
	n = text_label(in, in->key_pod, c.pod, set, n);
	n = text_label(in, in->key_namespace, c.namespace, set, n);
	n = text_label(in, in->key_cgroup, c.cgroup, set, n);
	if (c.ns_pid && shown)
		set[n++] = (struct label){ .key = in->key_ns_pid, .num = c.ns_pid };
	*ret_unsure = c.unsure;
	return n;
}

labels_id ingest_labels(struct ingest *in, struct proc *proc, const struct ms_proc *p, uint32_t tid,
			uint64_t cgroup_id, const char *memory)
{
	struct thread_key k;
	struct thread_labels *lab;
	struct label set[10 + INGEST_OWN_LABELS];
	uint32_t n = 0;
	labels_id labels;
	const char *name;
	bool unsure, process;

	memset(&k, 0, sizeof(k));
	k.proc = proc;
	k.tid = (uint64_t)p->tgid << 32 | tid;
	k.memory = memory;
	k.own = in->own;
	HASH_FIND(hh, in->labels, &k, sizeof(k), lab);
	if (lab)
		return lab->labels;
	process = ingest_process_shown(in, proc, p);
	name = proc && tid ? proc_thread_comm(proc, (pid_t)tid) : NULL;
	if (tid && process && !ingest_thread_shown(in, proc, p, tid)) {
		tid = 0;
		k.tid = (uint64_t)p->tgid << 32;
		k.name = name ? dict_string(in->dict, name).ix : 0;
		HASH_FIND(hh, in->labels, &k, sizeof(k), lab);
		if (lab)
			return lab->labels;
	}
	if (process)
		set[n++] = (struct label){ .key = in->key_pid, .num = p->tgid };
	n = text_label(in, in->key_comm, proc && *proc_comm(proc) ? proc_comm(proc) : "[unknown]",
		       set, n);
	if (tid && process)
		set[n++] = (struct label){ .key = in->key_tid, .num = tid };
	if (name && *name)
		set[n++] =
			(struct label){ .key = in->key_thread, .str = dict_string(in->dict, name) };
	if (memory)
		set[n++] = (struct label){ .key = in->key_memory,
					   .str = dict_string(in->dict, memory) };
	n = whose(in, p, process, cgroup_id, set, n, &unsure);
	if (in->own && in->own_labels)
		n += in->own_labels(in->own_labels_ctx,
				    &(struct proc_id){ p->tgid, p->exec_id, p->start_ns }, in->own,
				    set + n);
	labels = dict_labels(in->dict, set, n);
	if (unsure || (!process && !(proc && proc_exited(proc))))
		return labels; /* may be others soon */
	lab = hash_new(in->labels, key, &k);
	if (lab) /* only a cache */
		lab->labels = labels;
	return labels;
}

labels_id ingest_process_labels(struct ingest *in, const struct proc_id *id)
{
	const struct ms_proc p = { .tgid = id->pid,
				   .exec_id = id->exec_id,
				   .start_ns = id->start_ns };

	in->own = 0;
	return ingest_labels(in, ingest_proc(in, &p), &p, 0, 0, NULL);
}

const char *ingest_memory_name(const struct ms_total_key *key)
{
	static const char *const names[MS_N_MEMORY_KINDS] = { "file", "anonymous", "shared" };

	return key->memory < MS_N_MEMORY_KINDS ? names[key->memory] : NULL;
}

struct proc *ingest_proc(struct ingest *in, const struct ms_proc *p)
{
	struct proc_id id = wire_id(p);

	return proc_table_find(in->procs, &id);
}

/* --- samples --- */

static int wait_for_stack(struct ingest *in, const struct ms_total_key *key,
			  const struct ms_total *total, uint64_t slot)
{
	if (!GROW(in->waiting, in->n_waiting, in->cap_waiting))
		return -ENOMEM;
	in->waiting[in->n_waiting++] = (struct waiting){ *key, *total, slot, now_ns() };
	return 0;
}

void ingest_report_stack(struct ingest *in, const struct ms_total_key *key, uint64_t count)
{
	struct proc_id id = wire_id(&key->proc);
	const struct raw_stack *user;

	if ((!in->on_incomplete && !in->langs.native) || is_empty(&key->user))
		return;
	user = raw_find(in, &key->user);
	if (user && in->langs.native && !user->has_lang)
		in->langs.native(in->langs.ctx, &id, user->frames, user->n, count);
	if (user && in->on_incomplete && user->verdict != MS_COMPLETE)
		in->on_incomplete(in->incomplete_ctx, &id, key->as_gen,
				  (enum stack_verdict)user->verdict, user->frames, user->n, count);
}

void ingest_wait_values(const struct ms_total_key *key, const struct ms_total *total,
			int64_t values[4])
{
	int first = key->state == MS_BLOCKED ? 0 : 2;

	values[first] = (int64_t)total->count;
	values[first + 1] = (int64_t)total->value;
}

/* What happened, as the leaf of its stack. */
static location_id leaf_named(struct ingest *in, const char *name)
{
	struct line line = { .function = dict_string(in->dict, name) };

	return dict_location_lines(in->dict, (module_id){ 0 }, 0, &line, 1);
}

static location_id syscall_leaf(struct ingest *in, uint32_t nr)
{
	char name[SYSCALL_NAME_MAX + 16], call[SYSCALL_NAME_MAX];

	snprintf(name, sizeof(name), "syscall:%s",
		 syscall_name(nr & ~MS_SYSCALL_COMPAT, nr & MS_SYSCALL_COMPAT, call));
	return leaf_named(in, name);
}

/* A total of events; the stacks of some stand for others. */
static int add_event(struct ingest *in, const struct ms_total_key *key,
		     const struct ms_total *total, uint64_t slot, stack_id stack, labels_id labels)
{
	int64_t values[4] = { (int64_t)total->value }, seen = (int64_t)total->count;
	struct ingest_event event =
		in->event ? in->event(in->event_ctx, key->bucket) : (struct ingest_event){ 0 };
	struct value_error error;
	int r;

	if (!event.profile)
		return 0;
	if (event.leaf)
		stack = dict_stack_push(in->dict, stack, leaf_named(in, event.leaf));
	if (!event.counts) {
		values[1] = values[0];
		values[0] = seen;
	}
	r = ingest_add_total(in, event.profile, stack, labels, values, key, slot, 0);
	if (r < 0 || !event.counts || !total->before)
		return r;
	error = (struct value_error){ .samples = (double)seen,
				      .unseen = (double)(values[0] - seen),
				      .v = (double)total->before };
	error.vc = error.v * ((double)values[0] / (double)seen - 0.5);
	return profile_add_error(event.profile, stack, labels, 0, &error);
}

static int add_total(struct ingest *in, const struct ms_total_key *key,
		     const struct ms_total *total, uint64_t slot)
{
	int64_t count = (int64_t)total->count, value = (int64_t)total->value;
	struct proc *proc = ingest_proc(in, &key->proc);
	struct profile *p = NULL;
	int64_t values[4] = {};
	labels_id labels;
	stack_id stack;

	if (!ingest_resolve(in, proc, key, &stack))
		return wait_for_stack(in, key, total, slot);
	if (in->finishing && ingest_missing(in, &key->user))
		in->stats.lost_stacks += total->count;
	if (!proc)
		in->stats.unknown_process += total->count;
	in->own = key->source == MS_ONCPU || key->source == MS_OFFCPU ? key->bucket : 0;
	labels = ingest_labels(in, proc, &key->proc, key->tid, total->cgroup_id,
			       key->source == MS_GROWTH ? ingest_memory_name(key) : NULL);
	in->own = 0;
	ingest_report_stack(in, key, total->count);
	switch (key->source) {
	case MS_ONCPU:
		p = in->profiles.oncpu;
		in->stats.oncpu_samples += total->count;
		values[0] = count;
		values[1] = value;
		break;
	case MS_OFFCPU:
		p = in->profiles.offcpu;
		ingest_wait_values(key, total, values);
		break;
	case MS_SYSCALLS:
		p = in->profiles.syscalls;
		stack = dict_stack_push(in->dict, stack, syscall_leaf(in, key->bucket));
		values[0] = count;
		values[1] = value;
		break;
	case MS_EVENTS:
		return add_event(in, key, total, slot, stack, labels);
	case MS_GROWTH:
		p = in->profiles.growth;
		values[key->state == MS_RETURNED] = value;
		if (key->state == MS_RETURNED)
			in->stats.returned_bytes += total->value;
		else
			in->stats.resident_bytes += total->value;
		break;
	}
	return p ? ingest_add_total(in, p, stack, labels, values, key, slot, total->before) : 0;
}

int ingest_total(struct ingest *in, const struct ms_total_key *key, const struct ms_total *total)
{
	return add_total(in, key, total, ingest_slot(in, key));
}

/* Of a process that has ended nothing is known soon; the tables of one that lives may take long to make. */
static bool waits_too_long(struct ingest *in, const struct waiting *w, uint64_t until_ns)
{
	const struct proc *proc;

	if (w->since_ns >= until_ns || until_ns == UINT64_MAX)
		return until_ns == UINT64_MAX;
	proc = ingest_proc(in, &w->key.proc);
	return !proc || proc_exited(proc) || until_ns - w->since_ns > WAITS_MORE_NS;
}

static bool still_waits(struct ingest *in, const struct waiting *w)
{
	return ingest_missing(in, &w->key.user) || ingest_missing(in, &w->key.kernel);
}

int ingest_waiting(struct ingest *in, uint64_t until_ns)
{
	uint32_t n = in->n_waiting, too_many = n > WAITING_MAX ? n - WAITING_MAX : 0, left = 0;
	int r = 0;

	for (uint32_t i = 0; i < n; i++) {
		const struct waiting w = in->waiting[i];

		in->finishing = i < too_many || waits_too_long(in, &w, until_ns);
		if (r < 0 || (!in->finishing && still_waits(in, &w)))
			in->waiting[left++] = w;
		else
			r = add_total(in, &w.key, &w.total, w.slot);
	}
	in->n_waiting = left;
	in->finishing = false;
	return r;
}

int ingest_finish(struct ingest *in)
{
	int r = ingest_waiting(in, UINT64_MAX);

	in->finishing = true;
	return r == 0 && dict_oom(in->dict) ? -ENOMEM : r;
}

bool ingest_place_stack(struct ingest *in, const struct event_key *of, stack_id *ret_stack)
{
	struct ms_total_key key = wire_key(of);

	return ingest_resolve(in, ingest_proc(in, &key.proc), &key, ret_stack);
}

enum stack_verdict ingest_place_verdict(struct ingest *in, const struct event_key *of)
{
	struct ms_total_key key = wire_key(of);
	const struct raw_stack *user = raw_find(in, &key.user);

	return user && user->verdict < N_STACK_VERDICTS ? (enum stack_verdict)user->verdict
							: STACK_LOST;
}

bool ingest_place(struct ingest *in, const struct event_key *of, stack_id *ret_stack,
		  labels_id *ret_labels)
{
	struct ms_total_key key = wire_key(of);
	struct proc *proc = ingest_proc(in, &key.proc);

	if (!ingest_resolve(in, proc, &key, ret_stack))
		return false;
	*ret_labels = ingest_labels(in, proc, &key.proc, key.tid, 0, NULL);
	return true;
}

void ingest_stats(const struct ingest *in, struct ingest_stats *ret_stats)
{
	*ret_stats = in->stats;
}
