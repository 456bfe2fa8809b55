#include "analyse/sites.h"

#include "analyse/frame.h"
#include "analyse/gc_time.h"
#include "analyse/messengers.h"
#include "analyse/name_match.h"
#include "analyse/nameless.h"
#include "analyse/wait_lang.h"
#include "base/saturate.h"

#include <errno.h>
#include <string.h>

/* --- sites of one stack --- */

/* schedule() and what leads straight to it say nothing about the reason. */
static bool is_scheduler(const char *name)
{
	return strstr(name, "schedule") != NULL || strncmp(name, "__traceiter", 11) == 0 ||
	       strncmp(name, "bpf_", 4) == 0;
}

struct site {
	string_id function;
	const char *module;
	string_id comm, leaf, caller;
	enum wait_kind wait;
	struct wait_meaning meaning;
	int64_t value, count;
};

/* How well a frame of a stack without an asker stands for it. */
static int fallback_rank(const char *name, enum frame_kind kind)
{
	if (kind == FRAME_UNKNOWN)
		return 1;
	return strstr(name, "+0x") ? 2 : 3;
}

/* The site found so far, going through a stack from the leaf on: see the header. */
struct search {
	bool waits;
	bool interpreted;                        /* there are frames of a language    */
	uint32_t lang, go, go_library, fallback; /* the place of a frame; 0: none */
	int best;
};

/* Is this frame, whose place is not 0, the one? `file`: of its source, as far as it is known. */
static bool is_asker(struct search *s, const char *name, const char *file, const struct frame *f,
		     uint32_t place)
{
	int rank;

	if (!frame_is_user(f))
		return false;
	if (s->interpreted) {
		if (f->kind != FRAME_LANG)
			return false;
		s->lang = s->lang ? s->lang : place;
		return !messenger_of_language(name, f->module) && !messenger_file(file);
	}
	if (messenger_of_go(name)) {
		s->go = s->go ? s->go : place;
		return false;
	}
	if (messenger_of_go_library(name)) {
		s->go_library = place; /* nearest the root: what it is all for */
		return false;
	}
	if (f->kind != FRAME_UNKNOWN && !messenger(name, f->module))
		return true;
	/* Of equals, for a wait the one nearest the leaf; for an allocation the one
	 * nearest the root: getaddrinfo, or xmalloc whose caller is not known, says more
	 * than malloc. */
	rank = fallback_rank(name, f->kind);
	if (rank >= s->best + s->waits) {
		s->best = rank;
		s->fallback = place;
	}
	return false;
}

static bool is_interpreted_path(const struct frame_path *path)
{
	for (uint32_t i = 0; i < path->n; i++)
		if (path->frames[i].kind == FRAME_LANG)
			return true;
	return false;
}

/* The node of the language nearest to the leaf; 0: there is none. */
static uint32_t interpreted_node(const struct frame_tree *t, uint32_t node)
{
	while (node && t->nodes[node].kind != FRAME_LANG)
		node = t->nodes[node].parent;
	return node;
}

/* Among the first `n` frames. NULL when there is no user frame; or, with `strict`, none that is surely the program's. */
static const struct frame *find_asker(const struct dict *d, const struct frame_path *path,
				      uint32_t n, bool waits, bool strict)
{
	struct search s = { .waits = waits, .interpreted = is_interpreted_path(path) };
	uint32_t place;

	for (place = n; place > 0; place--) {
		const struct frame *f = &path->frames[place - 1];

		if (is_asker(&s, dict_str(d, f->name), dict_str(d, f->file), f, place))
			break;
	}
	place = place ? place : s.lang;
	if (!strict)
		place = place ?: s.go_library ?: s.go ?: s.fallback;
	return place ? &path->frames[place - 1] : NULL;
}

static uint32_t find_node(const struct frame_tree *t, uint32_t node, bool waits)
{
	struct search s = { .waits = waits, .interpreted = interpreted_node(t, node) };

	for (uint32_t at = node; at; at = t->nodes[at].parent) {
		const struct frame f = { .module = t->nodes[at].module, .kind = t->nodes[at].kind };

		if (is_asker(&s, t->nodes[at].name, "", &f, at))
			return at;
	}
	return s.lang ?: s.go_library ?: s.go ?: s.fallback ?: node;
}

uint32_t site_of_node(const struct frame_tree *t, uint32_t node)
{
	return find_node(t, node, false);
}

uint32_t place_of_node(const struct frame_tree *t, uint32_t node)
{
	return find_node(t, node, true);
}

enum site_kind sites_kind(const struct profile *p, uint32_t type)
{
	static const char *const allocations[] = {
		"resident",      "returned",      "alloc_space",
		"alloc_objects", "inuse_objects", "inuse_space"
	};
	const struct value_type *t = profile_type(p, type);

	if (NAME_IN(allocations, t->name))
		return SITE_ALLOCATION;
	if (strcmp(t->unit, "nanoseconds") == 0 &&
	    (strcmp(t->name, "blocked") == 0 || strcmp(t->name, "runnable") == 0))
		return SITE_WAIT;
	return SITE_NONE;
}

/* A virtual machine's own code between two functions: "[vtable chunks]". "[Java code that is gone]" was the program's. */
static bool is_stub(const char *name)
{
	return name[0] == '[' && !strstr(name, " that ");
}

static uint32_t caller_of_node(const struct frame_tree *t, uint32_t node)
{
	uint32_t nearest = interpreted_node(t, node), at = nearest;

	while (at && is_stub(t->nodes[at].name))
		at = interpreted_node(t, t->nodes[at].parent);
	return at ?: nearest ?: node;
}

int sites_charge(struct frame_tree *t, enum site_kind kind)
{
	switch (kind) {
	case SITE_ALLOCATION:
		return frame_tree_charge(t, site_of_node);
	case SITE_WAIT:
		return frame_tree_charge(t, place_of_node);
	case SITE_INTERPRETED:
		return frame_tree_charge(t, caller_of_node);
	case SITE_NONE:
		break;
	}
	return 0;
}

static void find_wait(const struct dict *d, const struct frame_path *path, struct site *site)
{
	bool named = false;

	for (uint32_t i = path->n; i-- > 0;) {
		const struct frame *f = &path->frames[i];
		enum wait_kind kind;

		if (!frame_in_kernel(f))
			return;
		kind = wait_kind_of(dict_str(d, f->name));
		if (kind != WAIT_OTHER) {
			site->wait = kind == WAIT_LOCK ? wait_kind_by_lang(d, path) : kind;
			site->leaf = f->name;
			return;
		}
		if (!named && !is_scheduler(dict_str(d, f->name))) {
			site->leaf = f->name;
			named = true;
		}
	}
}

/* Workers of a pool are named by their loop. */
static void name_pool(const struct frame_path *path, struct site *site)
{
	if (site->meaning.pool) {
		site->function = path->frames[site->meaning.loop].name;
		site->module = path->frames[site->meaning.loop].module;
	}
}

/* What is asked of each stack of a profile. */
enum question { ASK_ALLOCATION, ASK_WAIT, ASK_WORK, ASK_LANG_WORK };

static void set_function(struct site *site, const struct frame *asker)
{
	if (asker) {
		site->function = asker->name;
		site->module = asker->module;
	}
}

static bool has_name(const struct dict *d, const struct frame *f)
{
	return f->kind != FRAME_UNKNOWN && !nameless_name(dict_str(d, f->name));
}

static string_id find_named_caller(const struct dict *d, const struct frame_path *path,
				   uint32_t place)
{
	const char *module = path->frames[place].module;

	while (place-- > 0) {
		const struct frame *f = &path->frames[place];

		if (strcmp(f->module, module) != 0)
			break;
		if (has_name(d, f) && site_is_own(d, path, place))
			return f->name;
	}
	return (string_id){ 0 };
}

static struct site site_of_wait(const struct dict *d, const struct frame_path *path)
{
	struct site site = { .module = "", .meaning = wait_meaning_of(d, path) };
	uint32_t n =
		site.meaning.by ?: path->n; /* what a lock calls to wait says less than the lock */

	const struct frame *asker = find_asker(d, path, n, true, false);

	set_function(&site, asker);
	if (asker && !has_name(d, asker))
		site.caller = find_named_caller(d, path, (uint32_t)(asker - path->frames));
	find_wait(d, path, &site);
	name_pool(path, &site);
	return site;
}

/*
 * The collectors of Go and of interpreters run on the stack of who allocates; others have threads of their own, whose
 * callers say nothing.
 */
static const struct frame *find_worker(const struct dict *d, const struct frame_path *path,
				       enum question q)
{
	uint32_t n = gc_place(d, path);
	const struct frame *asker = find_asker(d, path, n, false, true);

	if (!asker || asker->kind == FRAME_LANG)
		return asker;
	if (q == ASK_LANG_WORK)
		return NULL;
	return n == path->n || messenger_of_go(dict_str(d, path->frames[n].name)) ? asker : NULL;
}

static struct site site_of(const struct dict *d, const struct frame_path *path, enum question q)
{
	struct site site = { .module = "" };

	if (q == ASK_WAIT)
		return site_of_wait(d, path);
	set_function(&site, q == ASK_ALLOCATION ? find_asker(d, path, path->n, false, false)
						: find_worker(d, path, q));
	if (path->n > 0)
		site.leaf = path->frames[path->n - 1].name;
	return site;
}

static int site_row_of(struct dict *d, stack_id stack, enum question q, struct site_row *ret_row)
{
	_cleanup_(frame_path_fini) struct frame_path path = { 0 };
	struct site site;
	int r = frame_path_set(&path, d, stack);

	if (r < 0)
		return r;
	site = site_of(d, &path, q);
	*ret_row = (struct site_row){
		.function = dict_str(d, site.function),
		.module = site.module,
		.comm = "",
		.leaf = dict_str(d, site.leaf),
		.caller = dict_str(d, site.caller),
		.wait = site.wait,
		.role = site.meaning.role,
		.pool = site.meaning.pool,
	};
	return 0;
}

int site_of_stack(struct dict *d, stack_id stack, struct site_row *ret_row)
{
	return site_row_of(d, stack, ASK_ALLOCATION, ret_row);
}

int site_place_of_stack(struct dict *d, stack_id stack, location_id *ret_location,
			uint32_t *ret_frame)
{
	_cleanup_(frame_path_fini) struct frame_path path = { 0 };
	const struct frame *asker;
	uint32_t leafward;
	int r = frame_path_set(&path, d, stack);

	if (r < 0)
		return r;
	asker = find_asker(d, &path, path.n, false, false);
	if (!asker)
		return -ENOENT;
	/* Frames of the path behind it, which are those nearer the leaf. */
	leafward = path.n - 1 - (uint32_t)(asker - path.frames);
	for (; stack.ix; stack = dict_stack_parent(d, stack)) {
		location_id loc = dict_stack_leaf(d, stack);
		uint32_t n = frame_count(d, loc);

		if (leafward < n) {
			*ret_location = loc;
			*ret_frame = leafward;
			return 0;
		}
		leafward -= n;
	}
	return -ENOENT;
}

int site_of_wait_stack(struct dict *d, stack_id stack, struct site_row *ret_row)
{
	return site_row_of(d, stack, ASK_WAIT, ret_row);
}

bool site_is_own(const struct dict *d, const struct frame_path *path, uint32_t place)
{
	struct search s = { .waits = true, .interpreted = is_interpreted_path(path) };

	const struct frame *f = &path->frames[place];

	return is_asker(&s, dict_str(d, f->name), dict_str(d, f->file), f, 1);
}

uint32_t site_place_of_path(const struct dict *d, const struct frame_path *path,
			    enum site_kind kind)
{
	bool waits = kind == SITE_WAIT;
	uint32_t n = waits ? wait_meaning_of(d, path).by ?: path->n : path->n;
	const struct frame *asker =
		waits || kind == SITE_ALLOCATION ? find_asker(d, path, n, waits, false) : NULL;

	return asker ? (uint32_t)(asker - path->frames) : path->n - 1;
}

/* --- ranking --- */

/* No user function and no reason that we have a word for: the kernel's function is all there is. */
static bool told_by_leaf(const struct site *s)
{
	return !s->function.ix && s->wait == WAIT_OTHER;
}

/* Its rows in the table may be several; what is shown is one. */
static const char *pool_name(const struct idle_pool *pool)
{
	return pool ? pool->name : "";
}

static int by_place(const void *a, const void *b)
{
	const struct site *x = a, *y = b;
	int r = strcmp(pool_name(x->meaning.pool), pool_name(y->meaning.pool));

	if (r == 0 && x->meaning.pool)
		return (y->value > x->value) - (y->value < x->value);
	if (r == 0)
		r = (x->function.ix > y->function.ix) - (x->function.ix < y->function.ix);

	if (r == 0)
		r = strcmp(x->module, y->module);
	if (r == 0)
		r = (int)x->wait - (int)y->wait;
	if (r == 0)
		r = (int)x->meaning.role - (int)y->meaning.role;
	if (r == 0)
		r = (x->comm.ix > y->comm.ix) - (x->comm.ix < y->comm.ix);
	if (r == 0 && told_by_leaf(x))
		r = (x->leaf.ix > y->leaf.ix) - (x->leaf.ix < y->leaf.ix);
	/* The leaf of the largest part stands for all. */
	return r ? r : (y->value > x->value) - (y->value < x->value);
}

static bool same_place(const struct site *x, const struct site *y)
{
	if (x->meaning.pool || y->meaning.pool)
		return strcmp(pool_name(x->meaning.pool), pool_name(y->meaning.pool)) == 0;
	return x->meaning.role == y->meaning.role && x->function.ix == y->function.ix &&
	       x->wait == y->wait && strcmp(x->module, y->module) == 0 &&
	       x->comm.ix == y->comm.ix && (!told_by_leaf(x) || x->leaf.ix == y->leaf.ix);
}

/* Sorts and merges equal places; the number that is left. */
static uint32_t merge(struct site *sites, uint32_t n)
{
	uint32_t out = 0;

	qsort(sites, n, sizeof(*sites), by_place);
	for (uint32_t i = 0; i < n; i++) {
		if (out > 0 && same_place(&sites[out - 1], &sites[i])) {
			sites[out - 1].value = add_saturating(sites[out - 1].value, sites[i].value);
			sites[out - 1].count = add_saturating(sites[out - 1].count, sites[i].count);
		} else {
			sites[out++] = sites[i];
		}
	}
	return out;
}

static int by_value(const void *a, const void *b)
{
	const struct site_row *x = a, *y = b;
	int r = (y->value > x->value) - (y->value < x->value);

	if (r == 0)
		r = strcmp(x->function, y->function);
	if (r == 0)
		r = strcmp(x->module, y->module);
	if (r == 0)
		r = (int)x->wait - (int)y->wait;
	if (r == 0)
		r = (int)x->role - (int)y->role;
	if (r == 0)
		r = strcmp(x->comm, y->comm);
	return r ? r : strcmp(x->leaf, y->leaf);
}

static void keep_largest(const struct dict *d, const struct site *sites, uint32_t n,
			 struct site_row *out, uint32_t cap, uint32_t *n_out)
{
	for (uint32_t i = 0; i < n; i++) {
		struct site_row row = {
			.function = dict_str(d, sites[i].function),
			.module = sites[i].module,
			.comm = dict_str(d, sites[i].comm),
			.leaf = dict_str(d, sites[i].leaf),
			.caller = dict_str(d, sites[i].caller),
			.wait = sites[i].wait,
			.role = sites[i].meaning.role,
			.pool = sites[i].meaning.pool,
			.value = sites[i].value,
			.count = sites[i].count,
		};

		if (row.value <= 0)
			continue;
		if (*n_out < cap)
			out[(*n_out)++] = row;
		else if (by_value(&row, &out[cap - 1]) < 0)
			out[cap - 1] = row;
		else
			continue;
		for (uint32_t j = *n_out - 1; j > 0 && by_value(&out[j], &out[j - 1]) < 0; j--) {
			struct site_row swap = out[j];

			out[j] = out[j - 1];
			out[j - 1] = swap;
		}
	}
}

/* "kworker/0:1-events" and its like are one. */
static string_id whose(struct dict *d, labels_id labels)
{
	const struct label *comm = dict_label_find(d, labels, "comm");
	const char *name = comm ? dict_str(d, comm->str) : "";

	return dict_string_n(d, name, strcspn(name, "/"));
}

static void find_kernel_worker(struct dict *d, labels_id labels, struct site *site)
{
	site->comm = whose(d, labels);
	site->meaning.pool = idle_kernel_pool(dict_str(d, site->comm), dict_str(d, site->leaf));
	if (site->meaning.pool)
		site->meaning.role = WAIT_ROLE_IDLE;
}

static int rank(const struct profile *p, uint32_t type, int count_type, enum question q,
		struct site_row *out, uint32_t cap)
{
	struct dict *d = profile_dict(p);
	_cleanup_(freep) struct site *sites = calloc(profile_n_samples(p) + 1, sizeof(*sites));
	_cleanup_(frame_path_fini) struct frame_path path = { 0 };
	uint32_t n = 0, n_out = 0;

	if (!sites)
		return -ENOMEM;
	for (uint32_t i = 0; i < profile_n_samples(p); i++) {
		struct profile_sample s = profile_sample(p, i);

		if (s.values[type] <= 0 && (count_type < 0 || s.values[count_type] <= 0))
			continue;
		if (frame_path_set(&path, d, s.stack) < 0)
			return -ENOMEM;
		sites[n] = site_of(d, &path, q);
		if ((q == ASK_WORK || q == ASK_LANG_WORK) && !sites[n].function.ix)
			continue;
		if (q == ASK_WAIT && !sites[n].function.ix)
			find_kernel_worker(d, s.labels, &sites[n]);
		sites[n].value = s.values[type];
		sites[n].count = count_type >= 0 ? s.values[count_type] : 0;
		n++;
	}
	if (dict_oom(d))
		return -ENOMEM;
	if (cap > 0)
		keep_largest(d, sites, merge(sites, n), out, cap, &n_out);
	return (int)n_out;
}

bool site_row_same(const struct site_row *a, const struct site_row *b)
{
	if (a->pool || b->pool)
		return strcmp(pool_name(a->pool), pool_name(b->pool)) == 0;
	return a->wait == b->wait && a->role == b->role && strcmp(a->function, b->function) == 0 &&
	       strcmp(a->module, b->module) == 0 && strcmp(a->comm, b->comm) == 0;
}

int sites_allocations(const struct profile *p, uint32_t type, int count_type, struct site_row *out,
		      uint32_t cap)
{
	return rank(p, type, count_type, ASK_ALLOCATION, out, cap);
}

int sites_work(const struct profile *p, uint32_t type, struct site_row *out, uint32_t cap)
{
	int n = rank(p, type, -1, ASK_LANG_WORK, out, cap);

	return n ? n : rank(p, type, -1, ASK_WORK, out, cap);
}

int sites_waits(const struct profile *p, uint32_t type, int count_type, struct site_row *out,
		uint32_t cap)
{
	return rank(p, type, count_type, ASK_WAIT, out, cap);
}

/* The ways into the kernel that a probed instruction takes: x86's breakpoint, single step and the
 * system calls that stand for them on newer kernels; arm64's; and the page of stepped copies. */
static bool in_probe(const struct dict *d, const struct frame_path *path)
{
	static const char *const entries[] = {
		"asm_exc_int3",
		"asm_exc_debug",
		"uprobe_notify_resume",
		"uprobe_handle_trampoline",
		"__x64_sys_uprobe",
		"__x64_sys_uretprobe",
		"el0_brk64",
		"el0_softstp",
		"el0_dbg",
	};

	for (uint32_t i = path->n; i-- > 0;) {
		const struct frame *f = &path->frames[i];

		if (!frame_in_kernel(f))
			return strcmp(f->module, "[uprobes]") == 0;
		if (NAME_IN(entries, dict_str(d, f->name)))
			return true;
	}
	return false;
}

/*
 * A probe at a return is a system call of its own (x86), made at the address to which the function returns: the
 * way into the kernel and out of it, with whatever is traced there, but none of the calls that programs
 * make; those are made in the C library.
 */
static bool in_return_probe(const struct dict *d, const struct frame_path *path)
{
	bool entered = false;

	for (uint32_t i = path->n; i-- > 0;) {
		const struct frame *f = &path->frames[i];
		const char *name = dict_str(d, f->name);

		if (!frame_in_kernel(f))
			return entered && frame_is_user(f) && !messenger_module(f->module);
		if (strncmp(name, "__x64_sys_", 10) == 0)
			return false;
		entered |= strcmp(name, "entry_SYSCALL_64_after_hwframe") == 0;
	}
	return false;
}

static bool in_any_probe(const struct dict *d, const struct frame_path *path)
{
	return in_probe(d, path) || in_return_probe(d, path);
}

/* From the leaf down through the kernel and the C library: was it for an allocator? */
static bool in_allocator(const struct dict *d, const struct frame_path *path)
{
	if (in_probe(d, path))
		return false; /* our own doing */
	for (uint32_t i = path->n; i-- > 0;) {
		const struct frame *f = &path->frames[i];

		if (frame_in_kernel(f))
			continue;
		if (!frame_is_user(f))
			return false;
		if (messenger_allocator(dict_str(d, f->name)))
			return true;
		if (!messenger_module(f->module))
			return false;
	}
	return false;
}

static bool leaf_in_kernel(const struct dict *d, const struct frame_path *path)
{
	return path->n > 0 && frame_in_kernel(&path->frames[path->n - 1]);
}

int sites_allocator_value(const struct profile *p, uint32_t type, int64_t *ret_value)
{
	return frame_path_sum(p, type, in_allocator, ret_value);
}

int sites_probe_value(const struct profile *p, uint32_t type, bool returns, int64_t *ret_value)
{
	return frame_path_sum(p, type, returns ? in_any_probe : in_probe, ret_value);
}

int sites_kernel_value(const struct profile *p, uint32_t type, int64_t *ret_value)
{
	return frame_path_sum(p, type, leaf_in_kernel, ret_value);
}

int64_t sites_preempted_value(const struct profile *p, uint32_t blocked, uint32_t runnable)
{
	int64_t value = 0;

	for (uint32_t i = 0; i < profile_n_samples(p); i++) {
		struct profile_sample s = profile_sample(p, i);

		if (s.values[blocked] <= 0 && s.values[runnable] > 0)
			value = add_saturating(value, s.values[runnable]);
	}
	return value;
}
