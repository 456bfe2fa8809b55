/* Stacks that wait to be walked in user space are bounded, and each is in the profile or counted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "collect/stacks/stacks_parts.h"

static void no_records(void *ctx)
{
	(void)ctx;
}

struct fixture {
	struct dict *dict;
	struct proc_table *procs;
	struct ingest *ingest;
	struct user_stacks *st;
	uint32_t n_deferred;
	bool oom;
};

static void make(struct fixture *f, uint32_t mem_mb)
{
	f->dict = dict_new();
	f->procs = proc_table_new(f->dict);
	f->ingest = ingest_new(f->dict, f->procs, &(struct ingest_profiles){ 0 }, 0);
	f->st = user_stacks_new(&(struct user_stacks_env){ .dict = f->dict,
							   .procs = f->procs,
							   .mem_mb = mem_mb,
							   .n_deferred = &f->n_deferred,
							   .oom = &f->oom,
							   .read_processes = no_records });
	assert_non_null(f->st);
	f->st->ingest = f->ingest;
}

static void unmake(struct fixture *f)
{
	user_stacks_free(f->st);
	ingest_free(f->ingest);
	proc_table_free(f->procs);
	dict_free(f->dict);
}

static void more_than_may_wait_keep_their_first_frame_and_are_counted(void **state)
{
	struct ms_deferred_rec rec = { .pc = 0x1000,
				       .stack_bytes = 32768,
				       .source = SOURCE_OFFCPU };
	uint64_t verdicts[N_SOURCES][N_STACK_VERDICTS];
	uint8_t *bytes = calloc(1, rec.stack_bytes);
	struct fixture f = { 0 };

	(void)state;
	make(&f, 64);
	/* Twice 3/8 of 64 MiB: 48 MiB, of which the records take a little. */
	for (rec.hash.lo = 1; rec.hash.lo <= 3000; rec.hash.lo++)
		assert_int_equal(on_deferred(f.st, &rec, bytes), DRAIN_TAKEN);
	assert_in_range(f.n_deferred, 1500, 1536);
	assert_in_range(f.st->deferred_bytes, 48 << 20, (48 << 20) + 33000);
	assert_int_equal(user_stacks_unkept(f.st), 3000 - f.n_deferred);
	user_stacks_verdicts(f.st, verdicts);
	assert_int_equal(verdicts[SOURCE_OFFCPU][STACK_NO_TABLE], 3000 - f.n_deferred);
	/* None is in memory when all have been finished. */
	user_stacks_walk(f.st, true);
	assert_int_equal(f.n_deferred, 0);
	assert_int_equal(f.st->deferred_bytes, 0);
	assert_int_equal(on_deferred(f.st, &rec, bytes), DRAIN_TAKEN);
	assert_int_equal(f.n_deferred, 1);
	assert_false(f.oom);
	unmake(&f);
	free(bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(more_than_may_wait_keep_their_first_frame_and_are_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
