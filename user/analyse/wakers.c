#include "analyse/wakers.h"

#include "base/cleanup.h"
#include "base/hash.h"
#include "base/saturate.h"

#include <errno.h>
#include <string.h>

enum { WAKEUPS, BLOCKED_NS };
enum {
	DEEPEST = 8192
}; /* frames of a waker that are looked at: two stacks of 2,048 and what is inlined fit */

struct key {
	string_id function, module, comm, waker, by, by_module;
	uint32_t wait;
};

struct group {
	struct key key;
	struct waker_row row;
	UT_hash_handle hh;
};

/* A joined stack, taken apart. */
struct ended {
	stack_id wait, waker; /* each as it was; 0: there is none */
	const char *name;     /* of the waker                     */
	bool of_user;         /* the waker has user frames        */
};

static const char *leaf_name(const struct dict *d, stack_id s)
{
	const struct location *l = dict_location_get(d, dict_stack_leaf(d, s));

	return l->n_lines ? dict_str(d, l->lines[0].function) : "";
}

static bool is_kernel(const struct dict *d, location_id id)
{
	module_id module = dict_location_get(d, id)->module;

	return module.ix && dict_module_get(d, module)->kind == MODULE_KERNEL;
}

/* From the leaf: the waker's name, its frames from the root to the leaf, the mark, the wait. */
static bool take_apart(struct dict *d, stack_id joined, struct ended *ret)
{
	_cleanup_(freep) location_id *frames = calloc(DEEPEST, sizeof(*frames));
	stack_id s = dict_stack_parent(d, joined);
	uint32_t n = 0;

	*ret = (struct ended){ .name = leaf_name(d, joined) };
	for (; frames && s.ix && n < DEEPEST && strcmp(leaf_name(d, s), WAKERS_MARK) != 0;
	     s = dict_stack_parent(d, s)) {
		frames[n++] = dict_stack_leaf(d, s);
		ret->of_user |= !is_kernel(d, frames[n - 1]);
	}
	if (!frames || !s.ix || n == DEEPEST)
		return false;
	for (uint32_t i = 0; i < n / 2; i++) {
		location_id frame = frames[i];

		frames[i] = frames[n - 1 - i];
		frames[n - 1 - i] = frame;
	}
	ret->wait = dict_stack_parent(d, s);
	ret->waker = n ? dict_stack(d, frames, n) : (stack_id){ 0 };
	return true;
}

static void add_sums(struct waker_sums *sums, const struct ended *e, int64_t ns)
{
	sums->total_ns = add_saturating(sums->total_ns, ns);
	if (strcmp(e->name, WAKERS_INTERRUPT) == 0)
		sums->interrupt_ns = add_saturating(sums->interrupt_ns, ns);
	else if (strcmp(e->name, WAKERS_UNKNOWN) == 0)
		sums->unknown_ns = add_saturating(sums->unknown_ns, ns);
	else if (!e->of_user)
		sums->other_ns = add_saturating(sums->other_ns, ns);
}

/* The kernel's function that woke: below try_to_wake_up() and what merely leads there. */
static const char *kernel_function(const struct dict *d, stack_id waker)
{
	static const char *const lead[] = { "try_to_wake_up",
					    "default_wake_function",
					    "__wake_up_common",
					    "__wake_up_sync_key",
					    "__wake_up",
					    "autoremove_wake_function",
					    "wake_up_process",
					    "wake_up_q",
					    "__wake_up_common_lock",
					    "__wake_up_locked_key",
					    "pollwake",
					    "ep_poll_callback",
					    "ep_autoremove_wake_function",
					    "sock_def_readable",
					    "__wake_up_sync" };

	for (; waker.ix; waker = dict_stack_parent(d, waker)) {
		const char *name = leaf_name(d, waker);
		size_t i = 0;

		while (i < sizeof(lead) / sizeof(*lead) && strcmp(lead[i], name) != 0)
			i++;
		if (i == sizeof(lead) / sizeof(*lead))
			return name;
	}
	return "";
}

/* Of a wait without a user frame: whose it is, up to a '/' (all kworkers are one). */
static string_id comm_of(struct dict *d, const struct site_row *wait, labels_id labels)
{
	const struct label *comm = *wait->function ? NULL : dict_label_find(d, labels, "comm");
	const char *name = comm ? dict_str(d, comm->str) : "";

	return dict_string_n(d, name, strcspn(name, "/"));
}

static int add_row(struct dict *d, struct group **groups, const struct ended *e,
		   const struct profile_sample *s)
{
	struct site_row wait, by = { .function = "", .module = "" };
	struct group *g;
	struct key key;

	if (site_of_wait_stack(d, e->wait, &wait) < 0 ||
	    (e->of_user && site_of_wait_stack(d, e->waker, &by) < 0))
		return -ENOMEM;
	if (!*by.function) {
		by.function = kernel_function(d, e->waker);
		by.module = "[kernel]";
	}
	memset(&key, 0, sizeof(key));
	key.function = dict_string(d, wait.function);
	key.module = dict_string(d, wait.module);
	key.comm = comm_of(d, &wait, s->labels);
	key.wait = wait.wait;
	key.waker = dict_string(d, e->name);
	key.by = dict_string(d, by.function);
	key.by_module = dict_string(d, by.module);
	HASH_FIND(hh, *groups, &key, sizeof(key), g);
	if (!g) {
		g = hash_new(*groups, key, &key);
		if (!g)
			return -ENOMEM;
		g->row = (struct waker_row){ .wait = wait,
					     .waker = dict_str(d, key.waker),
					     .by = dict_str(d, key.by),
					     .by_module = dict_str(d, key.by_module) };
		g->row.wait.value = g->row.wait.count = 0;
		g->row.wait.comm = dict_str(d, key.comm);
	}
	g->row.wait.count = add_saturating(g->row.wait.count, s->values[WAKEUPS]);
	g->row.wait.value = add_saturating(g->row.wait.value, s->values[BLOCKED_NS]);
	return 0;
}

static int longest_first(const struct group *a, const struct group *b)
{
	const struct waker_row *x = &a->row, *y = &b->row;

	if (x->wait.value != y->wait.value)
		return x->wait.value < y->wait.value ? 1 : -1;
	return memcmp(&a->key, &b->key, sizeof(a->key));
}

int wakers_rank(const struct profile *p, struct waker_row *out, uint32_t cap,
		struct waker_sums *ret_sums)
{
	struct waker_sums sums = { 0 };
	struct dict *d = profile_dict(p);
	struct group *groups = NULL;
	uint32_t n = 0;
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < profile_n_samples(p); i++) {
		struct profile_sample s = profile_sample(p, i);
		struct ended e;

		if (!take_apart(d, s.stack, &e))
			continue;
		add_sums(&sums, &e, s.values[BLOCKED_NS]);
		if (strcmp(e.name, WAKERS_INTERRUPT) != 0 && strcmp(e.name, WAKERS_UNKNOWN) != 0)
			r = add_row(d, &groups, &e, &s);
	}
	if (groups)
		HASH_SORT(groups, longest_first);
	for (const struct group *g = groups; r == 0 && g && n < cap; g = g->hh.next)
		if (g->row.wait.value > 0)
			out[n++] = g->row;
	hash_free(groups);
	if (r < 0)
		return r;
	*ret_sums = sums;
	return (int)n;
}
