#include "run/push/parts.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* `types`: those that are pushed; none: all of them. Allocations are in `alloc`, as those of a window. */
static const struct {
	const char *name;
	const char *types[2];
} kinds[N_PROFILE_KINDS] = {
	/* what a run names is pushed whole */
	[PROFILE_ONCPU] = { "process_cpu" },
	[PROFILE_OFFCPU] = { "offcpu" },
	[PROFILE_ALLOC] = { "memory" },
	[PROFILE_HEAP] = { "memory", { "inuse_objects", "inuse_space" } },
	[PROFILE_PEAK] = { "memory_peak" },
	[PROFILE_GROWTH] = { "growth" },
	[PROFILE_MAPPINGS] = { "mappings", { "inuse_objects", "inuse_space" } },
	[PROFILE_GOROUTINE] = { "goroutine" },
	[PROFILE_WAKERS] = { "wakers" },
	[PROFILE_SYSCALLS] = { "syscalls" },
};

const char *parts_name(enum profile_kind kind)
{
	/* Of an event: page_faults. */
	return kind < PROFILE_NAMED ? kinds[kind].name : profile_rows[kind].types[0].name;
}

/* --- commands --- */

struct comm {
	char name[24];
	double value; /* of the last type that is pushed */
	labels_id labels;
};

struct comms {
	struct comm *list; /* by value, after comms_rank() */
	uint32_t n;
	labels_id other;
};

/* "kworker/0:1-events" → "kworker": which CPU a thread of the kernel is for does not matter. */
static void comm_word(const char *comm, char out[24])
{
	const char *slash = strchr(comm, '/');
	bool cpu = slash && (slash[1] == 'u' || (slash[1] >= '0' && slash[1] <= '9'));

	snprintf(out, 24, "%.*s", cpu ? (int)(slash - comm) : 23, comm);
}

static const char *comm_of(const struct profile *p, uint32_t sample, char out[24])
{
	const struct label *l =
		dict_label_find(profile_dict(p), profile_sample(p, sample).labels, "comm");

	comm_word(l ? dict_str(profile_dict(p), l->str) : "", out);
	return out;
}

static struct comm *comm_find(const struct comms *c, const char *name, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (strcmp(c->list[i].name, name) == 0)
			return &c->list[i];
	return NULL;
}

static int by_value(const void *a, const void *b)
{
	const struct comm *x = a, *y = b;

	return x->value != y->value ? (x->value < y->value ? 1 : -1) : strcmp(x->name, y->name);
}

static labels_id comm_labels(struct dict *d, const char *name)
{
	struct label label = { .key = dict_string(d, "comm"), .str = dict_string(d, name) };

	return *name ? dict_labels(d, &label, 1) : (labels_id){ 0 };
}

static int comms_rank(const struct profile *p, uint32_t type, struct comms *c)
{
	char name[24];

	for (uint32_t i = 0; i < profile_n_samples(p); i++) {
		struct comm *comm = comm_find(c, comm_of(p, i, name), c->n);
		int64_t value = profile_sample(p, i).values[type];

		if (!comm) {
			struct comm *more = reallocarray(c->list, c->n + 1ul, sizeof(*more));

			if (!more)
				return -ENOMEM;
			c->list = more;
			comm = &more[c->n++];
			*comm = (struct comm){ 0 };
			memcpy(comm->name, name, sizeof(name));
		}
		comm->value += (double)(value > 0 ? value : 0);
	}
	if (c->n)
		qsort(c->list, c->n, sizeof(*c->list), by_value);
	for (uint32_t i = 0; i < c->n; i++)
		c->list[i].labels = comm_labels(profile_dict(p), c->list[i].name);
	c->other = comm_labels(profile_dict(p), "other");
	return 0;
}

/* --- reduce --- */

static uint32_t choose_types(const struct profile *p, enum profile_kind kind, uint32_t *ret_from)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < profile_n_types(p); i++) {
		const char *name = profile_type(p, i)->name;
		bool wanted = !kinds[kind].types[0];

		for (int k = 0; k < 2 && kinds[kind].types[k]; k++)
			wanted |= strcmp(name, kinds[kind].types[k]) == 0;
		if (wanted)
			ret_from[n++] = i;
	}
	return n;
}

static struct profile *like(const struct profile *p, const uint32_t *from, uint32_t n)
{
	struct profile_meta meta = *profile_get_meta(p);
	struct value_type types[PROFILE_MAX_TYPES];
	_cleanup_(profile_freep) struct profile *new = NULL;
	uint32_t shown = meta.default_type;

	meta.default_type = n - 1;
	for (uint32_t i = 0; i < n; i++) {
		types[i] = *profile_type(p, from[i]);
		if (from[i] == shown)
			meta.default_type = i;
	}
	new = profile_new(profile_dict(p), types, n);
	return new &&profile_set_meta(new, &meta) == 0 ? TAKE_PTR(new) : NULL;
}

int parts_reduce(const struct profile *p, enum profile_kind kind, struct profile **ret_profile)
{
	uint32_t from[PROFILE_MAX_TYPES], n = choose_types(p, kind, from);
	_cleanup_(profile_freep) struct profile *new = n ? like(p, from, n) : NULL;
	struct comms comms = { 0 };
	int rc = !n ? 0 : !new ? -ENOMEM : comms_rank(p, from[n - 1], &comms);

	for (uint32_t i = 0; new &&rc == 0 && i < profile_n_samples(p); i++) {
		struct profile_sample s = profile_sample(p, i);
		int64_t values[PROFILE_MAX_TYPES];
		const struct comm *comm;
		bool any = false;
		char name[24];

		for (uint32_t k = 0; k < n; k++)
			any |= (values[k] = s.values[from[k]]) != 0;
		comm = comm_find(&comms, comm_of(p, i, name),
				 comms.n < PARTS_COMMS ? comms.n : PARTS_COMMS);
		if (any)
			rc = profile_add(new, s.stack, comm ? comm->labels : comms.other, values);
	}
	if (rc == 0)
		*ret_profile = new &&profile_n_samples(new) ? TAKE_PTR(new) : NULL;
	free(comms.list);
	return rc;
}

int parts_take(const struct profile *p, uint32_t i, uint32_t n, struct profile **ret_profile)
{
	uint32_t all[PROFILE_MAX_TYPES], n_types = profile_n_types(p);
	_cleanup_(profile_freep) struct profile *new = NULL;
	struct profile_meta meta;
	int rc = 0;

	for (uint32_t k = 0; k < n_types; k++)
		all[k] = k;
	new = like(p, all, n_types);
	if (!new)
		return -ENOMEM;
	meta = *profile_get_meta(p);
	meta.time_ns += (int64_t)i * 1000000;
	rc = profile_set_meta(new, &meta);
	for (uint32_t k = i; rc == 0 && k < profile_n_samples(p); k += n) {
		struct profile_sample s = profile_sample(p, k);

		rc = profile_add(new, s.stack, s.labels, s.values);
	}
	if (rc == 0)
		*ret_profile = TAKE_PTR(new);
	return rc;
}
