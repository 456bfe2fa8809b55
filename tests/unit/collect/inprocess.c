/*
 * The reader, with a "library" of our own on the other side of the memfd: one that writes what it should,
 * and one that writes anything.
 */
#include "collect/stream/inprocess.h"
#include "preload/exact_area.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

struct fixture {
	struct dict *dict;
	struct proc_table *procs;
	struct ingest *ingest;
	struct inprocess *ip;
	struct exact_area *area; /* the other side's mapping */
	int fd;
	uint64_t bytes;
	int64_t sums[N_SITE_VALUES], highest;
	uint64_t live_blocks, live_bytes;
};

static int on_site(void *ctx, const struct site_key *key, uint64_t cgroup_id, const int64_t *values,
		   int64_t untracked, int64_t untracked_bytes, bool lost)
{
	struct fixture *f = ctx;

	for (int i = 0; i < N_SITE_VALUES; i++)
		f->sums[i] += values[i];
	return 0;
}

static int on_end(void *ctx, const struct site_key *key, uint64_t cgroup_id, const int64_t *values)
{
	return 0;
}

static void on_image(void *ctx, const struct table_image *image)
{
	((struct fixture *)ctx)->highest = image->highest;
}

static bool is_gone(void *ctx, const struct proc_id *proc)
{
	return false;
}

static int on_block(void *ctx, const struct site_key *site, uint64_t size, uint64_t born_ns)
{
	struct fixture *f = ctx;

	f->live_blocks++;
	f->live_bytes += size;
	return 0;
}

static uint64_t cut_to; /* 0: the other side leaves the size alone */

/* As it is called by the reader; the other side may cut the memfd before it is sealed. */
int ftruncate(int fd, off_t size)
{
	return (int)syscall(SYS_ftruncate, fd, cut_to ? (off_t)cut_to : size);
}

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	const struct alloc_table_fns fns = { on_site, on_end, on_image, is_gone, f };
	const struct ingest_profiles none = { .alloc = NULL };
	struct err e = { 0 };

	f->dict = dict_new();
	f->procs = proc_table_new(f->dict);
	f->ingest = ingest_new(f->dict, f->procs, &none, 0);
	f->fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	assert_int_equal(inprocess_new(NULL, f->ingest, getpid(), f->fd, 1 << 20, &fns, &f->ip, &e),
			 0);
	f->bytes = (uint64_t)lseek(f->fd, 0, SEEK_END);
	f->area =
		mmap(NULL, f->bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, f->fd, 0);
	assert_ptr_not_equal(f->area, MAP_FAILED);
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	inprocess_free(f->ip);
	ingest_free(f->ingest);
	proc_table_free(f->procs);
	dict_free(f->dict);
	munmap(f->area, f->bytes);
	close(f->fd);
	free(f);
	return 0;
}

static void memory_that_is_cut_before_it_is_sealed_is_refused(void **state)
{
	struct fixture *f = *state;
	const struct alloc_table_fns fns = { on_site, on_end, on_image, is_gone, f };
	int fd = memfd_create("cut", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	struct inprocess *ip = NULL;
	struct err e = { 0 };

	cut_to = 4096;
	assert_int_equal(inprocess_new(NULL, f->ingest, getpid(), fd, 1 << 20, &fns, &ip, &e),
			 -EBADF);
	cut_to = 0;
	close(fd);
}

static void *at(const struct fixture *f, uint64_t where)
{
	return (char *)f->area + where;
}

static struct ms_alloc_site *site(const struct fixture *f, uint32_t ix)
{
	return (struct ms_alloc_site *)at(f, f->area->sites) + ix;
}

/* Generation 1, a frame, and a leaf: node 3. */
static void put_stack(struct fixture *f)
{
	struct exact_node *nodes = at(f, f->area->nodes);

	nodes[1] = (struct exact_node){ EXACT_GENERATION | 1, 0, 0 };
	nodes[2] = (struct exact_node){ 0x401000, 1, 0 };
	nodes[3] = (struct exact_node){ 0x7f0000, 2, 0 };
	f->area->used_nodes = 4;
}

static void what_the_library_adds_up_is_reported_once(void **state)
{
	struct fixture *f = *state;
	struct exact_line *lines = at(f, f->area->lines);

	assert_int_equal(f->area->magic, EXACT_MAGIC);
	assert_int_equal(f->area->bytes, f->bytes);
	put_stack(f);
	site(f, 2)->key.user.lo = 3;
	site(f, 2)->key.tid = 7;
	site(f, 2)->allocs = 10;
	site(f, 2)->bytes = 1000;
	f->area->used_sites = 3;
	assert_int_equal(inprocess_read(f->ip), 0);
	assert_int_equal(f->sums[SITE_OBJECTS], 10);
	site(f, 2)->frees = 9;
	site(f, 2)->freed_bytes = 900;
	site(f, 1)->highest = 1000;
	site(f, 1)->highest_ns = 5;
	assert_int_equal(inprocess_read(f->ip), 0);
	lines[3].key[1] = 0x10000;
	lines[3].value[1] = (struct exact_block){ 100, 1, 2, 0 };
	lines[3].key[2] = 0x20000 | EXACT_TAKEN; /* not written yet */
	assert_int_equal(inprocess_finish(f->ip, on_block, f), 0);
	assert_int_equal(f->sums[SITE_OBJECTS], 10);
	assert_int_equal(f->sums[SITE_BYTES], 1000);
	assert_int_equal(f->sums[SITE_FREED], 9);
	assert_int_equal(f->highest, 1000);
	assert_int_equal(f->live_blocks, 1);
	assert_int_equal(f->live_bytes, 100);
}

/* A filter that allows everything, for this thread and what it starts. */
static void add_filter(void)
{
	struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	struct sock_fprog prog = { 1, &allow };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog))
		_exit(1);
}

static void filters_that_were_there_are_known_and_a_new_one_is_not(void **state)
{
	struct fixture *f = *state;
	const struct alloc_table_fns fns = { on_site, on_end, on_image, is_gone, f };
	int there[2], back[2], fd = memfd_create("filtered", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	struct inprocess_stats stats;
	struct inprocess *ip = NULL;
	struct err e = { 0 };
	char c = 0;
	pid_t pid;

	assert_int_equal(pipe(there) | pipe(back), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		add_filter();
		while (write(back[1], "x", 1) == 1 && read(there[0], &c, 1) == 1)
			add_filter();
		_exit(0);
	}
	assert_int_equal(read(back[0], &c, 1), 1);
	assert_int_equal(inprocess_new(NULL, f->ingest, pid, fd, 1 << 20, &fns, &ip, &e), 0);
	inprocess_tick(ip, 1);
	inprocess_stats(ip, &stats);
	assert_false(stats.filtered);
	assert_int_equal(write(there[1], "x", 1), 1);
	assert_int_equal(read(back[0], &c, 1), 1);
	inprocess_tick(ip, 2);
	inprocess_stats(ip, &stats);
	assert_true(stats.filtered);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	inprocess_free(ip);
	close(fd);
	for (int i = 0; i < 2; i++) {
		close(there[i]);
		close(back[i]);
	}
}

static void the_area_cannot_be_cut_short(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(ftruncate(f->fd, 0), -1);
	assert_int_equal(ftruncate(f->fd, (off_t)f->bytes + 4096), -1);
}

static void a_tree_that_runs_in_circles_ends(void **state)
{
	struct fixture *f = *state;
	struct exact_node *nodes = at(f, f->area->nodes);

	put_stack(f);
	nodes[2].caller = 3;
	site(f, 2)->key.user.lo = 3;
	site(f, 2)->allocs = 1;
	site(f, 3)->key.user.lo = UINT64_MAX;
	site(f, 3)->allocs = 1;
	nodes[4] = (struct exact_node){ 1, UINT32_MAX, 0 };
	site(f, 4)->key.user.lo = 4;
	site(f, 4)->allocs = 1;
	f->area->used_sites = 5;
	f->area->used_nodes = 5;
	assert_int_equal(inprocess_read(f->ip), 0);
	assert_int_equal(f->sums[SITE_OBJECTS], 3);
}

/* Whatever is in the area: the reader ends, and reads nothing beyond it. */
static void any_bytes_are_survived(void **state)
{
	struct fixture *f = *state;
	uint64_t seed = 1;

	for (int round = 0; round < 3; round++) {
		uint64_t *words = at(f, 0);

		for (uint64_t i = 0; i < 4096 / 8; i++)
			words[i] = (seed = seed * 6364136223846793005ULL + 1);
		for (uint64_t place = 0; place < f->bytes; place += 4096 + 8 * (seed >> 58)) {
			seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
			*(uint64_t *)at(f, place & ~7ULL) = round == 1 ? seed >> 44 : seed;
		}
		inprocess_tick(f->ip, 1);
		assert_int_equal(inprocess_read(f->ip), 0);
	}
	assert_int_equal(inprocess_finish(f->ip, on_block, f), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_the_library_adds_up_is_reported_once, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(
			filters_that_were_there_are_known_and_a_new_one_is_not, set_up, tear_down),
		cmocka_unit_test_setup_teardown(the_area_cannot_be_cut_short, set_up, tear_down),
		cmocka_unit_test_setup_teardown(memory_that_is_cut_before_it_is_sealed_is_refused,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_tree_that_runs_in_circles_ends, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(any_bytes_are_survived, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
