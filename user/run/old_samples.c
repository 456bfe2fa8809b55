#include "run/old_samples.h"

#include "collect/stream/ingest.h"
#include "model/profile_checkpoint.h"
#include "model/profile_fold.h"
#include "run/run.h"

#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#define FOLD_NS    300000000000ULL
#define KEPT_BYTES (4 << 20)

/* What samples that are put together keep of their labels. */
static const char *const kept[] = { "container", "container_id", "pod",
				    "namespace", "cgroup",       "memory" };
enum { N_KEPT = sizeof(kept) / sizeof(*kept) };

struct old_samples {
	struct run *run;
	uint64_t due_ns;
	stack_id stack; /* of all of them */
	struct profile_checkpoint had[N_PROFILE_KINDS];
};

struct old_samples *old_samples_new(struct run *r)
{
	const struct line line = { .function = dict_string(r->dict, "[not seen for minutes]") };
	location_id at = dict_location_lines(r->dict, (module_id){ 0 }, 0, &line, 1);
	struct old_samples *o = calloc(1, sizeof(*o));

	if (!o)
		return NULL;
	o->run = r;
	o->stack = dict_stack(r->dict, &at, 1);
	return o;
}

void old_samples_free(struct old_samples *o)
{
	for (int i = 0; o && i < N_PROFILE_KINDS; i++)
		profile_checkpoint_fini(&o->had[i]);
	free(o);
}

static labels_id of_container(struct dict *d, labels_id labels)
{
	struct label keep[N_KEPT];
	uint32_t n = 0;

	for (uint32_t i = 0; i < N_KEPT; i++) {
		const struct label *l = dict_label_find(d, labels, kept[i]);

		if (l)
			keep[n++] = *l;
	}
	return dict_labels(d, keep, n);
}

struct fold {
	const struct old_samples *o;
	const struct profile_checkpoint *had;
};

static bool where(void *ctx, uint32_t sample, stack_id *stack, labels_id *labels)
{
	const struct fold *f = ctx;

	if (!profile_checkpoint_has(f->had, sample))
		return false;
	*stack = f->o->stack;
	*labels = of_container(f->o->run->dict, *labels);
	return true;
}

static bool is_folded(int kind)
{
	return profile_rows[kind].source != SOURCE_ALLOC && kind != PROFILE_GOROUTINE;
}

void old_samples_tick(struct old_samples *o, uint64_t now_ns)
{
	struct run *r = o->run;
	uint32_t fewer;

	if (now_ns < o->due_ns)
		return;
	o->due_ns = now_ns + FOLD_NS;
	ingest_forget(r->ingest);
	for (int kind = 0; kind < profile_kinds(); kind++) {
		struct fold f = { o, &o->had[kind] };

		if (!r->profiles[kind] || !is_folded(kind) || dict_oom(r->dict))
			continue;
		if (profile_fold(r->profiles[kind], where, &f, &fewer) == 0)
			profile_checkpoint_take(r->profiles[kind], &o->had[kind]);
	}
	dict_labels_sweep(r->dict);
	malloc_trim(KEPT_BYTES); /* what was between others does not come back by itself */
}
