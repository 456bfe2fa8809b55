/* An ingest with profiles of its own, for tests without a kernel: they hand it records. */
#ifndef MEMSCOPE_TESTS_INGEST_FIXTURE_H
#define MEMSCOPE_TESTS_INGEST_FIXTURE_H

#include "collect/session/sources.h"
#include "collect/stream/ingest_wire.h"

struct fixture {
	struct dict *d;
	struct proc_table *procs;
	struct ingest_profiles p; /* those of sources; a test may add others before ingest_new() */
	struct ingest *in;
};

/* Whose records they are. */
static const struct ms_proc self = { .start_ns = 1, .tgid = 4000000, .exec_id = 1 };

static inline struct fixture *fixture_new(struct profile *(*new_profile)(struct dict *d, enum profile_kind kind))
{
	struct fixture *f = calloc(1, sizeof(*f));

	f->d = dict_new();
	f->procs = proc_table_new(f->d);
	f->p.oncpu = new_profile(f->d, PROFILE_ONCPU);
	f->p.offcpu = new_profile(f->d, PROFILE_OFFCPU);
	f->p.alloc = new_profile(f->d, PROFILE_ALLOC);
	f->p.growth = new_profile(f->d, PROFILE_GROWTH);
	return f;
}

static inline int fixture_free(void **state)
{
	struct fixture *f = *state;

	ingest_free(f->in);
	profile_free(f->p.oncpu);
	profile_free(f->p.offcpu);
	profile_free(f->p.alloc);
	profile_free(f->p.heap);
	profile_free(f->p.peak);
	profile_free(f->p.growth);
	profile_free(f->p.sites);
	proc_table_free(f->procs);
	dict_free(f->d);
	free(f);
	return 0;
}

#endif
