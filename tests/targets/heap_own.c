/*
 * Allocates and frees in several threads, then stands still, and prints what its own allocator says of itself at that moment:
 * glibc's malloc_info() and mallinfo2(), jemalloc's mallctl(), what mi_heap_visit_blocks() visits, tcmalloc's numeric
 * properties; and what it keeps itself, of each size it asked for. Nothing allocates from then on.
 *
 *   heap_own THREADS ROUNDS          stats: all of that; more N: N more blocks of 3,000 bytes in the main thread
 */
#include "target.h"

#include <malloc.h>
#include <pthread.h>
#ifdef __GLIBC__
#include <dlfcn.h>
#endif

enum { THREADS = 16, KEPT = 1 << 16, SIZES = 12, MI_CLASSES = 128 };

static const size_t sizes[SIZES] = { 24,   40,    100,   500,   1000,   1500,
				     3000, 10000, 20000, 50000, 140000, 300000 };

static struct thread {
	void *kept[KEPT];
	uint32_t n, rounds;
	uint64_t count[SIZES], usable[SIZES];
	struct {
		uint64_t size, used;
	} mi[MI_CLASSES]; /* as mimalloc has them */
} threads[THREADS];

static int ready;

/* --- mimalloc: of the calling thread's heap --- */

/* mimalloc.h: blocks, reserved, committed, used, block_size (and in later versions full_block_size, heap_tag) */
struct area {
	void *blocks;
	size_t reserved, committed, used, block_size;
};

static bool visit(const void *heap, const struct area *area, void *block, size_t size, void *arg)
{
	struct thread *t = arg;
	int i = 0;

	(void)heap;
	(void)size;
	if (block)
		return true;
	while (i < MI_CLASSES - 1 && t->mi[i].size && t->mi[i].size != area->block_size)
		i++;
	t->mi[i].size = area->block_size;
	t->mi[i].used += area->used;
	return true;
}

/* Looked up before anything is counted: dlsym() allocates where there is no such symbol. */
static struct {
	bool (*visit_blocks)(void *, bool,
			     bool (*)(const void *, const struct area *, void *, size_t, void *),
			     void *);
	void *(*own_heap)(void);
	int (*mallctl)(const char *, void *, size_t *, void *, size_t);
	int (*property)(const char *, size_t *);
} of;

static void look_up(void)
{
#ifdef __GLIBC__
	*(void **)&of.visit_blocks = dlsym(RTLD_DEFAULT, "mi_heap_visit_blocks");
	*(void **)&of.own_heap = dlsym(RTLD_DEFAULT, "mi_heap_get_default");
	*(void **)&of.mallctl = dlsym(RTLD_DEFAULT, "mallctl");
	*(void **)&of.property = dlsym(RTLD_DEFAULT, "MallocExtension_GetNumericProperty");
	dlerror();
#endif
}

static void visit_own(struct thread *t)
{
	if (!of.visit_blocks)
		return;
	memset(t->mi, 0, sizeof(t->mi));
	of.visit_blocks(of.own_heap(), false, visit, t);
}

/* --- work --- */

static void keep(struct thread *t, int size)
{
	void *p = malloc(sizes[size]);

	if (!p || t->n == KEPT)
		die("no room");
	memset(p, 1, sizes[size]);
	t->kept[t->n++] = p;
	t->count[size]++;
	t->usable[size] += malloc_usable_size(p);
}

/* Keeps two blocks of three, and of what is freed part lies between others and part at the end. */
static void churn(struct thread *t)
{
	void *gone[KEPT / 4];
	uint32_t n = 0;

	for (uint32_t r = 0; r < t->rounds; r++)
		for (int s = 0; s < SIZES; s++) {
			if (s >= 8 && r % 8)
				continue;
			keep(t, s);
			if (r % 2 && n < KEPT / 4)
				gone[n++] = malloc(sizes[s]);
		}
	for (uint32_t i = 0; i < n; i++)
		free(gone[i]);
}

__attribute__((noreturn)) static void *work(void *arg)
{
	churn(arg);
	visit_own(arg);
	__atomic_add_fetch(&ready, 1, __ATOMIC_SEQ_CST);
	for (;;)
		pause();
}

/* A mapping of its own, which alone refers to a block. What differs in a flag is not joined with its neighbours. */
static void **mapping;

static void map_one(void)
{
	mapping = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (mapping == MAP_FAILED || madvise(mapping, 1 << 20, MADV_DONTDUMP) < 0)
		die("mmap");
	keep(&threads[0], 6);
	mapping[100] = threads[0].kept[--threads[0].n];
	threads[0].kept[threads[0].n] = NULL;
}

/* --- what is said --- */

static void say_own(int n_threads)
{
	for (int s = 0; s < SIZES; s++) {
		uint64_t count = 0, usable = 0;

		for (int i = 0; i < n_threads; i++) {
			count += threads[i].count[s];
			usable += threads[i].usable[s];
		}
		dprintf(1, "kept %zu %llu %llu\n", sizes[s], (unsigned long long)count,
			(unsigned long long)usable);
	}
}

static void say_mimalloc(int n_threads)
{
	if (!of.visit_blocks)
		return;
	for (int i = 0; i < n_threads; i++)
		for (int c = 0; c < MI_CLASSES; c++)
			if (threads[i].mi[c].used)
				dprintf(1, "mi %llu %llu\n",
					(unsigned long long)threads[i].mi[c].size,
					(unsigned long long)threads[i].mi[c].used);
}

static void say_jemalloc(void)
{
	static const char *const of_all[] = { "allocated", "active", "metadata", "mapped",
					      "retained" };
	static const char *const of_arena[] = { "pactive",         "pdirty",      "pmuzzy",
						"retained",        "mapped",      "small.allocated",
						"large.allocated", "tcache_bytes" };
	int (*const ctl)(const char *, void *, size_t *, void *, size_t) = of.mallctl;
	uint64_t epoch = 1;
	unsigned arenas = 0, bins = 0;
	size_t len = sizeof(arenas), value;
	char name[128];

	if (!ctl)
		return;
	ctl("epoch", NULL, NULL, &epoch, sizeof(epoch));
	ctl("arenas.narenas", &arenas, &len, NULL, 0);
	ctl("arenas.nbins", &bins, &len, NULL, 0);
	for (size_t i = 0; i < sizeof(of_all) / sizeof(*of_all); i++) {
		snprintf(name, sizeof(name), "stats.%s", of_all[i]);
		len = sizeof(value);
		if (ctl(name, &value, &len, NULL, 0) == 0)
			dprintf(1, "je %s %zu\n", of_all[i], value);
	}
	for (unsigned a = 0; a < arenas; a++) {
		for (size_t i = 0; i < sizeof(of_arena) / sizeof(*of_arena); i++) {
			snprintf(name, sizeof(name), "stats.arenas.%u.%s", a, of_arena[i]);
			len = sizeof(value);
			if (ctl(name, &value, &len, NULL, 0) == 0)
				dprintf(1, "je_arena %u %s %zu\n", a, of_arena[i], value);
		}
		for (unsigned b = 0; b < bins; b++) {
			size_t regs = 0, size = 0, slabs = 0;

			snprintf(name, sizeof(name), "stats.arenas.%u.bins.%u.curregs", a, b);
			len = sizeof(regs);
			if (ctl(name, &regs, &len, NULL, 0) || !regs)
				continue;
			snprintf(name, sizeof(name), "stats.arenas.%u.bins.%u.curslabs", a, b);
			len = sizeof(slabs);
			ctl(name, &slabs, &len, NULL, 0);
			snprintf(name, sizeof(name), "arenas.bin.%u.size", b);
			len = sizeof(size);
			ctl(name, &size, &len, NULL, 0);
			dprintf(1, "je_bin %u %zu %zu %zu\n", a, size, regs, slabs);
		}
	}
}

static void say_tcmalloc(void)
{
	static const char *const names[] = {
		"generic.current_allocated_bytes",   "generic.heap_size",
		"tcmalloc.pageheap_free_bytes",      "tcmalloc.pageheap_unmapped_bytes",
		"tcmalloc.central_cache_free_bytes", "tcmalloc.transfer_cache_free_bytes",
		"tcmalloc.thread_cache_free_bytes"
	};
	size_t value;

	for (size_t i = 0; of.property && i < sizeof(names) / sizeof(*names); i++)
		if (of.property(names[i], &value))
			dprintf(1, "tc %s %zu\n", names[i], value);
}

static void say_glibc(void)
{
#ifdef __GLIBC__
	struct mallinfo2 m = mallinfo2();

	dprintf(1, "mallinfo %zu %zu %zu %zu %zu %zu %zu %zu %zu\n", m.arena, m.ordblks, m.smblks,
		m.hblks, m.hblkhd, m.fsmblks, m.uordblks, m.fordblks, m.keepcost);
	malloc_info(0, stdout);
	fflush(stdout);
#endif
}

int main(int argc, char **argv)
{
	static char out[1 << 16], line[64];
	int n = argc > 1 ? atoi(argv[1]) : 4;
	pthread_t tid;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	look_up();
	setvbuf(stdout, out, _IOFBF, sizeof(out));
	setvbuf(stdin, NULL, _IONBF, 0);
	if (n < 1 || n > THREADS)
		return 2;
	map_one();
	for (int i = 0; i < n; i++)
		threads[i].rounds = argc > 2 ? (uint32_t)atoi(argv[2]) / (uint32_t)(i + 1) : 100;
	for (int i = 1; i < n; i++)
		if (pthread_create(&tid, NULL, work, &threads[i]) != 0)
			die("pthread_create");
	churn(&threads[0]);
	visit_own(&threads[0]);
	while (__atomic_load_n(&ready, __ATOMIC_SEQ_CST) < n - 1)
		usleep(1000);
	dprintf(1, "ready %d\n", getpid());
	while (fgets(line, sizeof(line), stdin)) {
		if (strncmp(line, "more ", 5) == 0) {
			for (int i = atoi(line + 5); i > 0; i--)
				keep(&threads[0], 6);
			visit_own(&threads[0]);
		} else {
			dprintf(1, "mapping %#lx %#lx\n", (unsigned long)mapping,
				(unsigned long)mapping[100]);
			say_own(n);
			say_glibc();
			say_jemalloc();
			say_mimalloc(n);
			say_tcmalloc();
		}
		dprintf(1, "end\n");
	}
	return 0;
}
