/*
 * The library's source as part of this program, whose malloc is then the library's, as a preloaded
 * one is: with a listener of our own at its sites.
 */
#include <stddef.h>
#include <stdint.h>

enum { HEARD_ALLOC, HEARD_FREE, HEARD_UNTRACKED };
static void heard(int what, const void *p, size_t size, uint64_t weight);

#define SITE_ALLOC(p, size, weight)     heard(HEARD_ALLOC, p, size, weight)
#define SITE_FREE(p)                    heard(HEARD_FREE, p, 0, 0)
#define SITE_UNTRACKED(p, size, weight) heard(HEARD_UNTRACKED, p, size, weight)

#if defined(__SANITIZE_ADDRESS__)
#include <stdio.h>

static void heard(int what, const void *p, size_t size, uint64_t weight)
{
	(void)what;
	(void)p;
	(void)size;
	(void)weight;
}

int main(void)
{
	heard(0, NULL, 0, 0);
	puts("1..0 # SKIP AddressSanitizer brings a malloc of its own");
	return 0;
}
#else

#include "../../../user/preload/alloc.c"

/* No CPython is here. */
uint32_t python_pending, python_on;
void python_try(void)
{
}

#include "../../../user/preload/exact.c"

#include <fenv.h>
#include <malloc.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>

#include <cmocka.h>

#define LOG_MAX 400000

static struct event {
	int what;
	const void *p;
	size_t size;
	uint64_t weight;
} events[LOG_MAX];
static uint32_t n_events;
static bool listening;

static void heard(int what, const void *p, size_t size, uint64_t weight)
{
	uint32_t i;

	if (!__atomic_load_n(&listening, __ATOMIC_RELAXED))
		return;
	i = __atomic_fetch_add(&n_events, 1, __ATOMIC_RELAXED);
	if (i < LOG_MAX)
		events[i] = (struct event){ what, p, size, weight };
}

/* Hears what happens at this rate from here on. */
static void listen_at(double at)
{
	rate = at;
	self.seeded = false;
	self.until = 0;
	n_events = 0;
	listening = true;
}

static void stop(void)
{
	listening = false;
	rate = DRAW_RATE_DEFAULT;
	assert_true(n_events < LOG_MAX);
}

static uint32_t count(int what, const void *p)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < n_events; i++)
		n += events[i].what == what && (!p || events[i].p == p);
	return n;
}

static double weights(void)
{
	double sum = 0;

	for (uint32_t i = 0; i < n_events; i++)
		if (events[i].what == HEARD_ALLOC)
			sum += (double)events[i].weight;
	return sum;
}

/* A block that is a sample for certain: many times the rate. */
#define SURE    100000

static void weights_add_up_to_the_bytes(void **state)
{
	static void *blocks[20000];
	double bytes = 0, variance = 0;

	(void)state;
	listen_at(2000);
	for (int i = 0; i < 20000; i++) {
		size_t size = 1 + (size_t)(i * 7919) % 3000;
		double p = -expm1(-(double)size / 2000);

		blocks[i] = malloc(size);
		bytes += (double)size;
		variance += (double)size * (double)size * (1 - p) / p;
	}
	for (int i = 0; i < 20000; i++)
		free(blocks[i]);
	stop();
	assert_true(fabs(weights() - bytes) < 5 * sqrt(variance));
	assert_int_equal(count(HEARD_ALLOC, NULL), count(HEARD_FREE, NULL));
	assert_int_equal(count(HEARD_UNTRACKED, NULL), 0);
}

static void each_sample_is_given_back_once_after_it_was_told(void **state)
{
	static void *blocks[3000];
	uint32_t live = 0;

	(void)state;
	listen_at(500);
	for (int i = 0; i < 3000; i++)
		blocks[i] = calloc(3, 100);
	for (int i = 2999; i >= 0; i--)
		free(blocks[i]);
	stop();
	for (uint32_t i = 0; i < n_events; i++) {
		live += events[i].what == HEARD_ALLOC ? 1u : -1u;
		assert_true(live <= 3000);
	}
	assert_int_equal(live, 0);
	for (uint32_t i = 0; i < n_events; i++)
		if (events[i].what == HEARD_ALLOC)
			assert_int_equal(events[i].size, 300);
}

static void every_function_is_sampled_with_what_was_asked_for(void **state)
{
	void *p[8] = { 0 };
	int r;

	(void)state;
	listen_at(64);
	p[0] = malloc(SURE);
	p[1] = calloc(10, SURE / 10);
	p[2] = realloc(NULL, SURE);
	p[3] = reallocarray(NULL, 10, SURE / 10);
	p[4] = aligned_alloc(4096, SURE + 352);
	p[5] = memalign(128, SURE);
	r = posix_memalign(&p[6], 256, SURE);
	p[7] = valloc(SURE);
	assert_int_equal(r, 0);
	for (int i = 0; i < 8; i++) {
		assert_non_null(p[i]);
		assert_int_equal(count(HEARD_ALLOC, p[i]), 1);
		free(p[i]);
		assert_int_equal(count(HEARD_FREE, p[i]), 1);
	}
	p[0] = pvalloc(SURE);
	assert_int_equal(count(HEARD_ALLOC, NULL), 9);
	free(p[0]);
	stop();
	for (uint32_t i = 0; i < n_events; i++)
		if (events[i].what == HEARD_ALLOC)
			assert_true(events[i].size == SURE || events[i].size == SURE + 352);
}

static void realloc_gives_the_old_block_back_and_is_a_new_one(void **state)
{
	void *p, *q;

	(void)state;
	listen_at(64);
	p = malloc(SURE);
	memset(p, 7, SURE);
	q = realloc(p, 4 * SURE); /* grows */
	assert_int_equal(((char *)q)[SURE - 1], 7);
	assert_int_equal(count(HEARD_FREE, p), 1);
	assert_int_equal(events[n_events - 1].what, HEARD_ALLOC);
	assert_ptr_equal(events[n_events - 1].p, q);
	p = q;
	q = realloc(p, SURE); /* shrinks */
	assert_int_equal(events[n_events - 2].what, HEARD_FREE);
	assert_ptr_equal(events[n_events - 2].p, p);
	assert_int_equal(events[n_events - 1].size, SURE);
	p = q;
	q = realloc(p, SURE); /* stays */
	assert_int_equal(count(HEARD_ALLOC, NULL), 4);
	assert_null(realloc(q, 0)); /* the C library's way to free */
	stop();
	assert_int_equal(count(HEARD_ALLOC, NULL), count(HEARD_FREE, NULL));
}

static void a_realloc_that_cannot_be_leaves_its_block_followed(void **state)
{
	volatile size_t too_much = (size_t)PTRDIFF_MAX + 1, huge = (size_t)1 << 62;
	void *p, *volatile same;

	(void)state;
	listen_at(64);
	p = same = malloc(SURE);
	errno = 0;
	assert_null(realloc(p, too_much));
	assert_int_equal(errno, ENOMEM);
	errno = 0;
	assert_null(realloc(same, huge));
	assert_int_equal(errno, ENOMEM);
	errno = 0;
	assert_null(reallocarray(same, too_much, 3));
	assert_int_equal(errno, ENOMEM);
	assert_int_equal(count(HEARD_FREE, NULL), 0);
	free(same);
	assert_int_equal(count(HEARD_FREE, same), 1);
	stop();
}

static void calls_that_fail_are_no_allocations(void **state)
{
	volatile size_t huge = PTRDIFF_MAX, all = SIZE_MAX;
	int untouched;
	void *p = &untouched;

	(void)state;
	listen_at(64);
	errno = 0;
	assert_null(malloc(huge));
	assert_int_equal(errno, ENOMEM);
	assert_null(malloc(all));
	assert_null(malloc(huge + 1));
	errno = 0;
	assert_null(calloc(all, 2));
	assert_int_equal(errno, ENOMEM);
	assert_null(calloc(all, 1));
	assert_null(aligned_alloc(4096, huge));
	assert_int_equal(posix_memalign(&p, 3, SURE), EINVAL);
	assert_int_equal(posix_memalign(&p, 64, huge), ENOMEM);
	assert_ptr_equal(p, &untouched);
	stop();
	assert_int_equal(n_events, 0);
}

static void nothing_asked_for_is_a_block_and_no_sample(void **state)
{
	(void)state;
	listen_at(1);
	for (int i = 0; i < 100; i++) {
		void *p = malloc(0), *q = calloc(0, 8);

		assert_non_null(p);
		assert_non_null(q);
		assert_ptr_not_equal(p, q);
		free(p);
		free(q);
	}
	free(NULL);
	stop();
	assert_int_equal(n_events, 0);
}

static void alignment_and_usable_size_are_the_allocators_own(void **state)
{
	(void)state;
	listen_at(64);
	for (size_t align = 16; align <= 65536; align *= 2) {
		void *p = aligned_alloc(align, 3 * align), *q = NULL;

		assert_int_equal((uintptr_t)p % align, 0);
		assert_int_equal(posix_memalign(&q, align, SURE), 0);
		assert_int_equal((uintptr_t)q % align, 0);
		assert_true(malloc_usable_size(q) >= SURE);
		free(p);
		free(q);
	}
	for (size_t size = 1; size < 5000; size += 61) {
		void *ours, *theirs;

		listening = false;
		theirs = real.malloc(size);
		listening = true;
		ours = malloc(size);
		assert_int_equal((uintptr_t)ours % _Alignof(max_align_t), 0);
		assert_int_equal(malloc_usable_size(ours), malloc_usable_size(theirs));
		memset(ours, 1, malloc_usable_size(ours));
		real.free(theirs);
		free(ours);
	}
	stop();
}

static void errno_is_what_it_was(void **state)
{
	(void)state;
	listen_at(64);
	errno = EILSEQ;
	for (int i = 0; i < 100; i++) {
		void *p = malloc(SURE / 10), *q = realloc(p, SURE / 5);

		free(q);
	}
	assert_int_equal(errno, EILSEQ);
	stop();
}

static void rounding_and_traps_of_the_program_are_left_alone(void **state)
{
	void *p;

	(void)state;
	listen_at(64);
	feclearexcept(FE_ALL_EXCEPT);
	fesetround(FE_UPWARD);
	feenableexcept(FE_ALL_EXCEPT); /* an inexact result would end this program */
	for (int i = 0; i < 100; i++) {
		p = malloc(SURE / 7);
		free(p);
	}
	assert_int_equal(fetestexcept(FE_ALL_EXCEPT), 0);
	fedisableexcept(FE_ALL_EXCEPT);
	assert_int_equal(fegetround(), FE_UPWARD);
	fesetround(FE_TONEAREST);
	stop();
	assert_true(n_events > 100);
}

/* Blocks change hands: each thread frees what the other has allocated. */
static void *exchange[2][5000];
static pthread_barrier_t barrier;

static void *trade(void *arg)
{
	int me = arg != NULL;

	for (int round = 0; round < 4; round++) {
		for (int i = 0; i < 5000; i++)
			exchange[me][i] = malloc(200);
		pthread_barrier_wait(&barrier);
		for (int i = 0; i < 5000; i++)
			free(exchange[!me][i]);
		pthread_barrier_wait(&barrier);
	}
	return NULL;
}

static void blocks_freed_by_other_threads_are_told(void **state)
{
	double sigma = sqrt(40000 * 200.0 * 1000);
	pthread_t t[2];
	uint32_t allocs;

	(void)state;
	listen_at(1000);
	pthread_barrier_init(&barrier, NULL, 2);
	assert_int_equal(pthread_create(&t[0], NULL, trade, NULL), 0);
	assert_int_equal(pthread_create(&t[1], NULL, trade, &barrier), 0);
	pthread_join(t[0], NULL);
	pthread_join(t[1], NULL);
	pthread_barrier_destroy(&barrier);
	stop();
	allocs = 0;
	for (uint32_t i = 0; i < n_events; i++)
		allocs += events[i].what == HEARD_ALLOC && events[i].size == 200;
	assert_true(fabs(allocs * draw_weight(200, 1000) - 40000 * 200.0) < 5 * sigma);
	/* The C library's own, for the threads, may live on. */
	assert_true(count(HEARD_FREE, NULL) >= allocs);
}

static void a_child_draws_its_own_points_and_knows_the_blocks(void **state)
{
	uint64_t theirs = 0, ours;
	void *p;
	int fds[2], status;
	pid_t pid;

	(void)state;
	listen_at(1e6);
	p = malloc(200 * 1000000);
	assert_int_equal(count(HEARD_ALLOC, p), 1);
	assert_int_equal(pipe(fds), 0);
	pid = fork();
	if (pid == 0) {
		bool ok = !self.seeded;

		n_events = 0;
		free(p);
		ok = ok && n_events == 1 && events[0].what == HEARD_FREE;
		free(malloc(1));
		ok = ok && write(fds[1], &self.random, 8) == 8;
		_exit(ok ? 0 : 1);
	}
	ours = self.random;
	assert_int_equal(read(fds[0], &theirs, 8), 8);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_not_equal(ours, theirs);
	assert_int_equal(count(HEARD_FREE, p), 0);
	free(p);
	assert_int_equal(count(HEARD_FREE, p), 1);
	close(fds[0]);
	close(fds[1]);
	stop();
}

/*
 * The library itself in a handler that interrupts it anywhere: with an allocator behind it that
 * may be interrupted (the C library's own may not).
 */
static uintptr_t bump;
static char arena[64 << 20];

static void *bump_malloc(size_t size)
{
	return arena + __atomic_fetch_add(&bump, (size + 15) & ~(size_t)15, __ATOMIC_RELAXED);
}

static void bump_free(void *p)
{
	(void)p;
}

static volatile sig_atomic_t handled;

static void on_alarm(int number)
{
	void *p = malloc(300);

	(void)number;
	free(p);
	handled = handled + 1;
}

static void a_signal_handler_may_come_in_between(void **state)
{
	struct sigaction sa = { .sa_handler = on_alarm }, old;
	struct itimerval every = { { 0, 50 }, { 0, 50 } }, off = { { 0, 0 }, { 0, 0 } };
	const struct functions theirs = real;
	uint32_t before = 0, after = 0;

	(void)state;
	for (uint32_t i = 0; i < SET_LINES; i++)
		before += sampled.counts[i];
	listen_at(400);
	real.malloc = bump_malloc;
	real.free = bump_free;
	hand_on_to(&real);
	sigaction(SIGALRM, &sa, &old);
	setitimer(ITIMER_REAL, &every, NULL);
	for (int i = 0; i < 150000 || (handled < 100 && i < 400000); i++)
		free(malloc(100));
	setitimer(ITIMER_REAL, &off, NULL);
	sigaction(SIGALRM, &old, NULL);
	real = theirs;
	hand_on_to(&real);
	stop();
	for (uint32_t i = 0; i < SET_LINES; i++)
		after += sampled.counts[i];
	assert_int_equal(count(HEARD_ALLOC, NULL), count(HEARD_FREE, NULL));
	assert_int_equal(before, after);
	assert_true(handled > 0);
}

static void a_set_that_is_full_is_told(void **state)
{
	const uint32_t n = SET_LINES * SET_WAYS + 20000;
	void **blocks = real.malloc(n * sizeof(*blocks));
	uint32_t told, untracked;

	(void)state;
	assert_non_null(blocks);
	listen_at(0.01); /* every byte */
	for (uint32_t i = 0; i < n; i++)
		blocks[i] = malloc(16);
	for (uint32_t i = 0; i < n; i++)
		free(blocks[i]);
	stop();
	real.free(blocks);
	told = count(HEARD_ALLOC, NULL);
	untracked = count(HEARD_UNTRACKED, NULL);
	assert_int_equal(told + untracked, n);
	assert_true(untracked >= 20000);
	assert_int_equal(count(HEARD_FREE, NULL), told);
}

/* A page with a sample brings its other blocks to the slow path, which must do what the fast one does. */
static void neighbours_of_a_sample_are_no_samples(void **state)
{
	const uint64_t far = (uint64_t)1 << 40;
	char *blocks[64], *sample = NULL;

	(void)state;
	listen_at(1e12);
	free(malloc(1)); /* draws */
	for (int i = 0; i < 64; i++) {
		self.until = i == 32 ? 0 : far;
		blocks[i] = malloc(40);
		if (i == 32)
			sample = blocks[i];
	}
	assert_int_equal(count(HEARD_ALLOC, NULL), 1);
	assert_true(set_page_maybe(&sampled, sample));
	self.until = far;
	for (int i = 0; i < 64; i++) {
		if (blocks[i] == sample)
			continue;
		blocks[i] = realloc(blocks[i], 100);
		assert_non_null(blocks[i]);
		free(blocks[i]);
	}
	assert_int_equal(self.until, far - 63 * 100);
	assert_int_equal(count(HEARD_FREE, NULL), 0);
	free(sample);
	stop();
	assert_int_equal(count(HEARD_FREE, sample), 1);
}

static void what_fails_uses_up_no_bytes(void **state)
{
	volatile size_t all = SIZE_MAX, half = (size_t)1 << 63;

	(void)state;
	listen_at(1e12);
	free(malloc(1));
	self.until = 1000;
	assert_null(malloc(all));
	assert_null(malloc(half + 5000));
	assert_null(calloc(half, 3));
	assert_int_equal(self.until, 1000);
	free(malloc(400));
	free(malloc(600));
	assert_int_equal(self.until, 0);
	assert_int_equal(n_events, 0);
	free(malloc(1));
	assert_int_equal(n_events, 2);
	stop();
}

static void rates_are_read_with_their_units(void **state)
{
	(void)state;
	assert_true(parse_rate("4096") == 4096);
	assert_true(parse_rate("64K") == 65536);
	assert_true(parse_rate("2m") == 2097152);
	assert_true(parse_rate("1G") == 1073741824);
	assert_true(parse_rate("0") == 0);
	assert_true(parse_rate("99999999G") == DRAW_RATE_MAX);
	assert_true(parse_rate(NULL) == DRAW_RATE_DEFAULT);
	assert_true(parse_rate("") == DRAW_RATE_DEFAULT);
	assert_true(parse_rate("-1") == DRAW_RATE_DEFAULT);
	assert_true(parse_rate("12x") == DRAW_RATE_DEFAULT);
}

static void a_rate_of_zero_turns_sampling_off(void **state)
{
	(void)state;
	listen_at(0);
	for (int i = 0; i < 1000; i++)
		free(malloc(SURE));
	stop();
	assert_int_equal(n_events, 0);
}

static void what_was_allocated_before_the_allocator_may_be_freed(void **state)
{
	char *p, *q;

	(void)state;
	p = early_alloc(16, 100);
	assert_int_equal((uintptr_t)p % 16, 0);
	strcpy(p, "early");
	q = early_alloc(256, 10);
	assert_int_equal((uintptr_t)q % 256, 0);
	free(q);
	q = realloc(p, 200);
	assert_false(is_early(q));
	assert_string_equal(q, "early");
	free(q);
	errno = 0;
	assert_null(early_alloc(16, SIZE_MAX));
	assert_int_equal(errno, ENOMEM);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(weights_add_up_to_the_bytes),
		cmocka_unit_test(each_sample_is_given_back_once_after_it_was_told),
		cmocka_unit_test(every_function_is_sampled_with_what_was_asked_for),
		cmocka_unit_test(realloc_gives_the_old_block_back_and_is_a_new_one),
		cmocka_unit_test(a_realloc_that_cannot_be_leaves_its_block_followed),
		cmocka_unit_test(calls_that_fail_are_no_allocations),
		cmocka_unit_test(nothing_asked_for_is_a_block_and_no_sample),
		cmocka_unit_test(alignment_and_usable_size_are_the_allocators_own),
		cmocka_unit_test(errno_is_what_it_was),
		cmocka_unit_test(rounding_and_traps_of_the_program_are_left_alone),
		cmocka_unit_test(blocks_freed_by_other_threads_are_told),
		cmocka_unit_test(a_child_draws_its_own_points_and_knows_the_blocks),
		cmocka_unit_test(a_signal_handler_may_come_in_between),
		cmocka_unit_test(a_set_that_is_full_is_told),
		cmocka_unit_test(neighbours_of_a_sample_are_no_samples),
		cmocka_unit_test(what_fails_uses_up_no_bytes),
		cmocka_unit_test(rates_are_read_with_their_units),
		cmocka_unit_test(a_rate_of_zero_turns_sampling_off),
		cmocka_unit_test(what_was_allocated_before_the_allocator_may_be_freed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
#endif
