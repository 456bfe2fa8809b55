/*
 * A child whose heap is known, walked from outside: what it says itself (its own list of blocks,
 * malloc_usable_size(), mallinfo2()) is what the walk finds, to the byte.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "heap/census.h"
#include "heap/process.h"

enum { BLOCKS = 3000, THREADS = 4, LARGE = 5 };

static uint32_t clocks; /* looks at this thread's CPU time */
static time_t cpu_sec;  /* more than there was             */

int clock_gettime(clockid_t id, struct timespec *now)
{
	int rc = (int)syscall(SYS_clock_gettime, id, now);

	if (id == CLOCK_THREAD_CPUTIME_ID) {
		clocks++;
		now->tv_sec += cpu_sec;
	}
	return rc;
}

/* What the child says of itself. */
struct said {
	volatile int ready, n;
	struct mallinfo2 info;
	struct {
		void *addr;
		size_t usable;
		int live;
	} blocks[THREADS * BLOCKS + 2 * LARGE];
	pthread_barrier_t all_done;
};

static struct said *said;

static void say(void *block, int live)
{
	int i = __atomic_fetch_add(&said->n, 1, __ATOMIC_SEQ_CST);

	said->blocks[i].addr = block;
	said->blocks[i].usable = live ? malloc_usable_size(block) : 0;
	said->blocks[i].live = live;
}

/* Sizes of every tcache bin and beyond; two of three are released: in tcache, fastbins and bins. */
static void *work(void *arg)
{
	static __thread void *mine[BLOCKS];
	unsigned seed = (unsigned)(uintptr_t)arg * 7919 + 1;

	for (int i = 0; i < BLOCKS; i++) {
		size_t size = (size_t)rand_r(&seed) % (i % 10 ? 300 : 20000);

		mine[i] = malloc(size);
		memset(mine[i], 0xa5, size);
	}
	for (int i = 0; i < BLOCKS; i++)
		say(mine[i], i % 3 == 0);
	for (int i = 0; i < BLOCKS; i++)
		if (i % 3)
			free(mine[i]);
	pthread_barrier_wait(&said->all_done);
	pthread_barrier_wait(&said->all_done);
	pause();
	return NULL;
}

static void be_known(void)
{
	static void *mine[BLOCKS];
	pthread_t threads[THREADS];

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	pthread_barrier_init(&said->all_done, NULL, THREADS);
	for (int i = 1; i < THREADS; i++)
		pthread_create(&threads[i], NULL, work, (void *)(intptr_t)i);
	for (int i = 0; i < LARGE; i++) {
		void *block = malloc((size_t)(i + 1) << 20), *gone = malloc((size_t)(i + 1) << 20);

		memset(block, 1, 4096);
		say(block, 1);
		say(gone, 0);
		free(gone);
	}
	for (int i = 0; i < BLOCKS; i++)
		mine[i] = malloc((size_t)(i % 400) + 1);
	for (int i = 0; i < BLOCKS; i++)
		say(mine[i], i % 3 == 0);
	for (int i = 0; i < BLOCKS; i++)
		if (i % 3)
			free(mine[i]);
	pthread_barrier_wait(&said->all_done);
	said->info = mallinfo2();
	said->ready = 1;
	pthread_barrier_wait(&said->all_done);
	for (;;)
		pause();
}

struct found {
	pid_t pid;
	struct heap_process *process;
	struct heap_blocks blocks;
	struct heap_census census;
};

static int setup(void **state)
{
	struct found *f = calloc(1, sizeof(*f));
	struct err e = { 0 };

	said = mmap(NULL, sizeof(*said), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	f->pid = fork();
	if (f->pid == 0)
		be_known();
	while (!said->ready)
		usleep(1000);
	f->blocks.max = 1 << 20;
	f->census.blocks = &f->blocks;
	if (heap_process_open(f->pid, 10000000000, &f->process, &e) < 0 ||
	    heap_census_take(heap_process_memory(f->process), &f->census) < 0)
		return -1;
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct found *f = *state;

	kill(f->pid, SIGKILL);
	waitpid(f->pid, NULL, 0);
	heap_process_close(f->process);
	heap_blocks_free(&f->blocks);
	free(f);
	munmap(said, sizeof(*said));
	return 0;
}

static void glibc_is_found_with_an_arena_per_thread(void **state)
{
	struct found *f = *state;

	assert_int_equal(f->census.n, 1);
	assert_string_equal(f->census.use[0].allocator, "glibc");
	assert_in_range(f->census.use[0].arenas, 2, THREADS + 1);
	assert_true(f->census.use[0].caches >= 2);
	if (f->census.use[0].caveat)
		print_message("caveat: %s\n", f->census.use[0].caveat);
	assert_null(f->census.use[0].caveat);
	assert_int_equal(f->census.use[0].unknown.bytes, 0);
}

static void sums_are_those_of_mallinfo2(void **state)
{
	const struct heap_use *u = &((struct found *)*state)->census.use[0];
	const struct mallinfo2 *i = &said->info;

	assert_int_equal(u->mapped.blocks, i->hblks);
	assert_int_equal(u->mapped.bytes + 16 * u->mapped.blocks, i->hblkhd);
	assert_int_equal(u->fast.blocks, i->smblks);
	assert_int_equal(u->fast.bytes + 8 * u->fast.blocks, i->fsmblks);
	/* ordblks counts the tops of all arenas. */
	assert_int_equal(u->free.blocks + u->top.blocks, i->ordblks);
	assert_int_equal(u->free.bytes + u->top.bytes + 8 * u->top.blocks + u->fast.bytes +
				 8 * u->fast.blocks,
			 i->fordblks);
	/* In use by its count: also what tcaches hold, and what the allocator itself needs. */
	assert_int_equal(u->live.bytes - u->mapped.bytes + u->cached.bytes + u->metadata.bytes -
				 16 * u->mapped.blocks - 8 * u->fast.blocks - 8 * u->top.blocks + 8,
			 i->uordblks);
}

static void every_block_in_use_is_found_and_none_that_was_freed(void **state)
{
	const struct heap_blocks *b = &((struct found *)*state)->blocks;
	int live = 0, freed = 0;

	assert_false(b->over);
	for (int i = 0; i < said->n; i++) {
		uint64_t addr = (uintptr_t)said->blocks[i].addr, at = heap_blocks_find(b, addr);
		bool there = at < b->n && b->rows[at].addr == addr;

		if (said->blocks[i].live) {
			assert_true(there);
			assert_int_equal(8 * (uint64_t)b->rows[at].words, said->blocks[i].usable);
			live++;
		} else {
			/* Another one may have got its place. */
			for (int j = 0; there && j < said->n; j++)
				if (said->blocks[j].live &&
				    said->blocks[j].addr == said->blocks[i].addr)
					there = false;
			assert_false(there);
			freed++;
		}
	}
	assert_int_equal(live, THREADS * BLOCKS / 3 + LARGE);
	assert_int_equal(freed, THREADS * BLOCKS / 3 * 2 + LARGE);
}

static void blocks_and_their_sum_are_the_same(void **state)
{
	const struct found *f = *state;
	uint64_t sum = 0;

	for (uint64_t i = 0; i < f->blocks.n; i++)
		sum += 8 * (uint64_t)f->blocks.rows[i].words;
	assert_int_equal(f->blocks.n, f->census.use[0].live.blocks);
	assert_int_equal(sum, f->census.use[0].live.bytes);
}

static void untouched_memory_is_in_use_and_not_resident(void **state)
{
	const struct heap_use *u = &((struct found *)*state)->census.use[0];

	/* 15 MiB in five blocks, of each a page or two was written. */
	assert_true(u->mapped.bytes >= 15 << 20);
	assert_in_range(u->mapped.resident, LARGE * 4096, LARGE * 2 * 4096);
	assert_true(u->live.resident <= u->live.bytes);
}

static void what_is_resident_adds_up(void **state)
{
	struct found *f = *state;
	const struct heap_resident *r = heap_process_resident(f->process);
	uint64_t sum = r->anonymous + r->written + r->file + r->shmem + r->stacks + r->special;

	if (!r->rollup)
		skip(); /* a kernel before 4.14 */
	assert_int_equal(sum, r->rollup);
	assert_true(r->n_stacks >= THREADS);
	assert_true(heap_use_resident(&f->census.use[0]) <= r->anonymous);
}

static void what_is_proportional_adds_up(void **state)
{
	struct found *f = *state;
	const struct heap_resident *r = heap_process_proportional(f->process);
	const struct heap_resident *all = heap_process_resident(f->process);
	int64_t sum =
		(int64_t)(r->anonymous + r->written + r->file + r->shmem + r->stacks + r->special);

	if (!r->rollup)
		skip(); /* a kernel before 4.14 */
	/* Others may begin or end to share a page between two reads. */
	assert_in_range(sum, r->rollup - (256 << 10), r->rollup + (256 << 10));
	assert_true(r->rollup <= all->rollup);
	assert_true(r->anonymous <= all->anonymous);
	assert_true(r->file < all->file); /* libc is everyone's */
}

static void process_that_is_gone_is_said_so(void **state)
{
	struct heap_process *p = NULL;
	struct err e = { 0 };
	pid_t pid = fork();

	if (pid == 0)
		_exit(0);
	waitpid(pid, NULL, 0);
	assert_int_equal(heap_process_open(pid, 1000000000, &p, &e), -ESRCH);
	assert_null(p);
}

static void words_are_read_without_the_time_for_each_and_not_for_long_beyond_it(void **state)
{
	_cleanup_(heap_process_closep) struct heap_process *p = NULL;
	const struct heap_memory *mem;
	uint32_t n = 0;
	uint64_t word;

	(void)state;
	assert_int_equal(heap_process_open(getpid(), 3600000000000LL, &p, NULL), 0);
	mem = heap_process_memory(p);
	clocks = 0;
	for (int i = 0; i < 160; i++)
		assert_true(
			mem->read(mem->ctx, (uint64_t)(uintptr_t)&cpu_sec, &word, sizeof(word)));
	assert_in_range(clocks, 1, 160 / 8);
	cpu_sec = 7200;
	while (mem->read(mem->ctx, (uint64_t)(uintptr_t)&cpu_sec, &word, sizeof(word)))
		n++;
	assert_in_range(n, 0, 16);
	cpu_sec = 0; /* what is over is over */
	assert_false(mem->read(mem->ctx, (uint64_t)(uintptr_t)&cpu_sec, &word, sizeof(word)));
}

static void without_time_nothing_is_read(void **state)
{
	const struct found *f = *state;
	struct heap_process *p = NULL;
	struct err e = { 0 };
	uint64_t word;

	assert_int_equal(heap_process_open(f->pid, -1, &p, &e), 0);
	assert_false(heap_process_memory(p)->read(heap_process_memory(p)->ctx,
						  (uintptr_t)said->blocks[0].addr, &word, 8));
	heap_process_close(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(glibc_is_found_with_an_arena_per_thread),
		cmocka_unit_test(sums_are_those_of_mallinfo2),
		cmocka_unit_test(every_block_in_use_is_found_and_none_that_was_freed),
		cmocka_unit_test(blocks_and_their_sum_are_the_same),
		cmocka_unit_test(untouched_memory_is_in_use_and_not_resident),
		cmocka_unit_test(what_is_resident_adds_up),
		cmocka_unit_test(what_is_proportional_adds_up),
		cmocka_unit_test(process_that_is_gone_is_said_so),
		cmocka_unit_test(
			words_are_read_without_the_time_for_each_and_not_for_long_beyond_it),
		cmocka_unit_test(without_time_nothing_is_read),
	};

#if defined(__SANITIZE_ADDRESS__)
	puts("1..0 # SKIP AddressSanitizer brings a malloc of its own");
	return 0;
#endif
	if (getenv("MEMSCOPE_VALGRIND")) {
		puts("1..0 # SKIP valgrind brings a malloc of its own");
		return 0;
	}
	return cmocka_run_group_tests(tests, setup, teardown);
}
