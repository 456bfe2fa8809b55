/*
 * A program that knows every page it maps.
 *
 *   maps THREADS OPS      waits for commands
 *   maps after            what `exec` becomes
 *
 * Each way to map goes through one function, which notes the mapping in the pages it made; whoever gives
 * pages back, moves them or maps over them changes the note. What is there at the end is counted from the
 * notes. The rules, which are memscope's too: bytes are whole pages; what mremap moves stays whose it was,
 * and what it adds is its own, of the kind of what it grew; a mapping is there as long as a page of it is; a call that fails is nothing.
 * Between all this every thread also has malloc map and give back, which counts as no mapping.
 * Half of what there is when the run begins is older, and some of that is released.
 *
 * run     → site NAME CALLS BYTES LIVE_CALLS LIVE_BYTES (each); kind NAME BYTES LIVE_BYTES (each);
 *           total …; failed N; end
 * threads N → starts as many, of 1 MiB of stack, which stay; end
 * fork    → `child PID` and its sites, then `parent PID` and the parent's; end. The child waits half a
 *           second before it maps, and lives until the end
 * exec    → `execing`, then the new image: `after PID`, half a second, the sites, end
 */
#include "target.h"

#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <sys/mman.h>

#define PAGE        4096UL
#define MAX_THREADS 4
#define MAX_BLOCKS  24
#define MAX_PAGES   64 /* of a block */
#define MAX_IDS     400000
#define BRK_PAGES   64

/* clang-format off */
#define SITES(X) X(map_anon) X(map_shared) X(map_file) X(map_fixed) X(map_grow) X(map_twice) X(map_brk)
/* clang-format on */

enum site_id {
#define X(name) SITE_##name,
	SITES(X)
#undef X
		N_SITES
};
enum kind { ANON, SHARED, OF_FILE, N_KINDS };

static const char *const site_names[N_SITES] = {
#define X(name) #name,
	SITES(X)
#undef X
};
static const char *const kind_names[N_KINDS] = { "anonymous", "shared", "file" };

/* A mapping that was made; id 0: older than the run, or a hole. */
struct made {
	uint8_t site, kind;
	uint32_t pages; /* still there */
};

struct block {
	char *at;
	uint32_t pages;
	enum kind kind;
	bool whole; /* no hole in it, and all of one kind */
	uint32_t id[MAX_PAGES];
};

struct worker {
	uint64_t seed;
	uint32_t n;
	bool may_brk;
	struct block block[MAX_BLOCKS];
};

static struct made mades[MAX_IDS];
static uint32_t n_ids = 1;
static uint64_t calls[N_SITES], bytes[N_SITES], kind_bytes[N_KINDS], n_failed;
static struct worker workers[MAX_THREADS];
static uint32_t brk_id[BRK_PAGES], brk_pages;
static char *brk_base;
static int n_threads, n_ops, file_fd;
static bool noting; /* the run has begun */
static pthread_barrier_t barrier;

/* --- the truth ------------------------------------------------------------------------------- */

static uint32_t note(enum site_id site, enum kind kind, size_t pages)
{
	uint32_t id;

	if (!noting)
		return 0;
	id = __atomic_fetch_add(&n_ids, 1, __ATOMIC_RELAXED);
	if (id >= MAX_IDS)
		die("too many mappings");
	mades[id] = (struct made){ (uint8_t)site, (uint8_t)kind, (uint32_t)pages };
	__atomic_add_fetch(&calls[site], 1, __ATOMIC_RELAXED);
	__atomic_add_fetch(&bytes[site], pages * PAGE, __ATOMIC_RELAXED);
	__atomic_add_fetch(&kind_bytes[kind], pages * PAGE, __ATOMIC_RELAXED);
	return id;
}

static void gone(uint32_t *id)
{
	if (*id)
		mades[*id].pages--;
	*id = 0;
}

/* Of what is older nobody knows what it is, and most is anonymous. */
static enum kind kind_of(uint32_t id)
{
	return id ? mades[id].kind : ANON;
}

static void failed(const void *p)
{
	if (p != MAP_FAILED)
		die("a call that should fail did not");
	__atomic_add_fetch(&n_failed, 1, __ATOMIC_RELAXED);
}

static void say_truth(void)
{
	uint64_t live[N_SITES] = { 0 }, live_bytes[N_SITES] = { 0 }, kind_live[N_KINDS] = { 0 };
	uint64_t total[4] = { 0 };

	for (uint32_t i = 1; i < n_ids; i++) {
		live[mades[i].site] += mades[i].pages > 0;
		live_bytes[mades[i].site] += mades[i].pages * PAGE;
		kind_live[mades[i].kind] += mades[i].pages * PAGE;
	}
	for (int i = 0; i < N_SITES; i++) {
		say("site %s %llu %llu %llu %llu", site_names[i], (unsigned long long)calls[i],
		    (unsigned long long)bytes[i], (unsigned long long)live[i],
		    (unsigned long long)live_bytes[i]);
		total[0] += calls[i];
		total[1] += bytes[i];
		total[2] += live[i];
		total[3] += live_bytes[i];
	}
	for (int i = 0; i < N_KINDS; i++)
		say("kind %s %llu %llu", kind_names[i], (unsigned long long)kind_bytes[i],
		    (unsigned long long)kind_live[i]);
	say("total %llu %llu %llu %llu", (unsigned long long)total[0], (unsigned long long)total[1],
	    (unsigned long long)total[2], (unsigned long long)total[3]);
	say("failed %llu", (unsigned long long)n_failed);
}

/* --- one function for each way to map --------------------------------------------------------- */

static void *must(void *p, const char *what)
{
	if (p == MAP_FAILED)
		die(what);
	return p;
}

/* A length is as odd as one may be: the kernel maps whole pages. */
static NOINLINE char *map_anon(size_t len)
{
	return must(mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
		    "map_anon");
}

static NOINLINE char *map_shared(size_t len)
{
	return must(mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0),
		    "map_shared");
}

static NOINLINE char *map_file(size_t len)
{
	return must(mmap(NULL, len, PROT_READ, MAP_PRIVATE, file_fd, 0), "map_file");
}

static NOINLINE void map_fixed(char *at, size_t len)
{
	must(mmap(at, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
	     "map_fixed");
}

static NOINLINE char *map_grow(char *at, size_t len, size_t to)
{
	return mremap(at, len, to, MREMAP_MAYMOVE);
}

/* Of shared memory, which is then at two places. */
static NOINLINE char *map_twice(char *at, size_t len)
{
	return must(mremap(at, 0, len, MREMAP_MAYMOVE), "map_twice");
}

static NOINLINE char *map_brk(char *to)
{
	return (char *)syscall(SYS_brk, to);
}

/* --- the work ----------------------------------------------------------------------------------- */

static struct block *add_block(struct worker *w, char *at, size_t pages, enum kind kind,
			       uint32_t id)
{
	struct block *b = &w->block[w->n++];

	*b = (struct block){ .at = at, .pages = (uint32_t)pages, .kind = kind, .whole = true };
	for (size_t i = 0; i < pages; i++)
		b->id[i] = id;
	return b;
}

static void map_one(struct worker *w)
{
	size_t pages = 1 + random_next(&w->seed) % 30,
	       len = pages * PAGE - random_next(&w->seed) % PAGE;

	switch (random_next(&w->seed) % 4) {
	case 0:
		add_block(w, map_shared(len), pages, SHARED, note(SITE_map_shared, SHARED, pages));
		return;
	case 1:
		add_block(w, map_file(len), pages, OF_FILE, note(SITE_map_file, OF_FILE, pages));
		return;
	default:
		add_block(w, map_anon(len), pages, ANON, note(SITE_map_anon, ANON, pages));
		return;
	}
}

static void forget_block(struct worker *w, struct block *b)
{
	*b = w->block[--w->n];
}

/* Pages [from, from + n) of it. All of them: the block is forgotten. */
static void unmap_part(struct worker *w, struct block *b, uint32_t from, uint32_t n)
{
	if (munmap(b->at + from * PAGE, n * PAGE))
		die("munmap");
	for (uint32_t i = from; i < from + n; i++)
		gone(&b->id[i]);
	if (!from && n == b->pages) {
		forget_block(w, b);
	} else if (!from) {
		b->at += n * PAGE;
		b->pages -= n;
		memmove(b->id, b->id + n, b->pages * sizeof(*b->id));
	} else if (from + n == b->pages) {
		b->pages = from;
	} else if (w->n < MAX_BLOCKS) { /* two: the hole may be another thread's by now */
		struct block *behind = &w->block[w->n++];

		*behind = *b;
		behind->at += (from + n) * PAGE;
		behind->pages -= from + n;
		memmove(behind->id, b->id + from + n, behind->pages * sizeof(*b->id));
		b->pages = from;
	} else {
		uint32_t rest = b->pages - from - n;

		b->pages = from;
		if (munmap(b->at + (from + n) * PAGE, rest * PAGE))
			die("munmap");
		for (uint32_t i = from + n; i < from + n + rest; i++)
			gone(&b->id[i]);
	}
}

static void map_over(struct worker *w, struct block *b)
{
	uint32_t from = random_next(&w->seed) % b->pages,
		 n = 1 + random_next(&w->seed) % (b->pages - from);
	uint32_t id;

	map_fixed(b->at + from * PAGE, n * PAGE);
	id = note(SITE_map_fixed, ANON, n);
	for (uint32_t i = from; i < from + n; i++) {
		gone(&b->id[i]);
		b->id[i] = id;
	}
	b->whole = false; /* the kernel may or may not see one mapping there */
}

static void grow(struct worker *w, struct block *b)
{
	uint32_t more = 1 + random_next(&w->seed) % 8, id;
	char *at;

	if (b->pages + more > MAX_PAGES || !b->whole)
		return;
	at = must(map_grow(b->at, b->pages * PAGE, (b->pages + more) * PAGE), "map_grow");
	b->at = at;
	id = note(SITE_map_grow, kind_of(b->id[b->pages - 1]), more);
	for (uint32_t i = 0; i < more; i++)
		b->id[b->pages++] = id;
}

static void shrink(struct block *b)
{
	if (b->pages < 3 || !b->whole)
		return;
	if (map_grow(b->at, b->pages * PAGE, (b->pages - 2) * PAGE) != b->at)
		die("a shorter mapping has moved");
	gone(&b->id[--b->pages]);
	gone(&b->id[--b->pages]);
}

/* `b` takes the place of the front of `to`. */
static void move_over(struct worker *w, struct block *b, struct block *to)
{
	if (b == to || !b->whole || b->pages > to->pages)
		return;
	must(mremap(b->at, b->pages * PAGE, b->pages * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, to->at),
	     "mremap");
	for (uint32_t i = 0; i < b->pages; i++)
		gone(&to->id[i]);
	b->at = to->at;
	to->at += b->pages * PAGE;
	to->pages -= b->pages;
	memmove(to->id, to->id + b->pages, to->pages * sizeof(*to->id));
	if (!to->pages)
		forget_block(w, to);
}

/* The heap's end, up and down by whole pages and by less. */
static void move_brk(struct worker *w)
{
	uint32_t to = random_next(&w->seed) % BRK_PAGES, id;
	char *end = brk_base + to * PAGE;

	if (!w->may_brk)
		return;
	if (map_brk(end - (to > brk_pages ? random_next(&w->seed) % PAGE : 0)) > end)
		die("brk");
	if (to > brk_pages) {
		id = note(SITE_map_brk, ANON, to - brk_pages);
		while (brk_pages < to)
			brk_id[brk_pages++] = id;
	}
	while (brk_pages > to)
		gone(&brk_id[--brk_pages]);
}

static void failures(struct block *b)
{
	failed(mmap(NULL, 0, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
	failed(mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, -1, 0));
	failed(mremap(b->at, b->pages * PAGE, (size_t)1 << 62, MREMAP_MAYMOVE));
	failed(munmap(b->at + 1, PAGE) ? MAP_FAILED : NULL);
}

static void step(struct worker *w)
{
	struct block *b = w->n ? &w->block[random_next(&w->seed) % w->n] : NULL;
	uint32_t what = random_next(&w->seed) % 12, from;
	void *volatile p;

	if (!b || w->n < MAX_BLOCKS / 2) {
		map_one(w);
		return;
	}
	switch (what) {
	case 0:
	case 1:
		unmap_part(w, b, 0, b->pages);
		break;
	case 2:
	case 3:
		from = random_next(&w->seed) % b->pages;
		unmap_part(w, b, from, 1 + random_next(&w->seed) % (b->pages - from));
		break;
	case 4:
		map_over(w, b);
		break;
	case 5:
		grow(w, b);
		break;
	case 6:
		shrink(b);
		break;
	case 7:
		move_over(w, b, &w->block[random_next(&w->seed) % w->n]);
		break;
	case 8:
		if (b->kind == SHARED && b->whole && w->n < MAX_BLOCKS)
			add_block(w, map_twice(b->at, b->pages * PAGE), b->pages, SHARED,
				  note(SITE_map_twice, kind_of(b->id[0]), b->pages));
		break;
	case 9:
		move_brk(w);
		break;
	case 10:
		failures(b);
		break;
	default:
		p = malloc(300000);
		p = realloc(p, 900000);
		free(p);
		break;
	}
}

static void work(struct worker *w)
{
	for (int i = 0; i < n_ops; i++)
		step(w);
}

static void *thread_main(void *arg)
{
	for (;;) {
		pthread_barrier_wait(&barrier);
		work(arg);
		pthread_barrier_wait(&barrier);
	}
	return NULL;
}

static void run(void)
{
	pthread_barrier_wait(&barrier);
	work(&workers[0]);
	pthread_barrier_wait(&barrier);
}

static void *stay(void *arg)
{
	(void)arg;
	wait_for_ever();
}

static void start_threads(int n)
{
	pthread_attr_t attr;
	pthread_t t;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 1 << 20);
	for (int i = 0; i < n; i++)
		if (pthread_create(&t, &attr, stay, NULL))
			die("pthread_create");
}

/* Nothing of what a child or a new image has is its own. */
static void begin_anew(void)
{
	struct worker *w = &workers[0];

	memset(calls, 0, sizeof(calls));
	memset(bytes, 0, sizeof(bytes));
	memset(kind_bytes, 0, sizeof(kind_bytes));
	n_failed = 0;
	n_ids = 1;
	noting = true;
	for (uint32_t i = 0; i < w->n; i++)
		memset(w->block[i].id, 0, sizeof(w->block[i].id));
	memset(brk_id, 0, sizeof(brk_id));
	sleep_ns(NSEC_PER_SEC / 2);
	work(w);
	say_truth();
}

static void fork_one(void)
{
	int done[2];
	pid_t pid;
	char c;

	if (pipe(done))
		die("pipe");
	pid = fork();
	if (pid < 0)
		die("fork");
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		say("child %d", (int)getpid());
		begin_anew();
		if (write(done[1], "x", 1) != 1)
			die("write");
		wait_for_ever();
	}
	if (read(done[0], &c, 1) != 1)
		die("child");
	work(&workers[0]);
	say("parent %d", (int)getpid());
	say_truth();
}

static void set_up(void)
{
	char name[] = "/tmp/maps-XXXXXX";

	file_fd = mkstemp(name);
	if (file_fd < 0 || unlink(name) || ftruncate(file_fd, MAX_PAGES * PAGE))
		die("mkstemp");
	for (int i = 0; i < n_threads; i++) {
		workers[i].seed = 99 + (uint64_t)i;
		for (int j = 0; j < MAX_BLOCKS / 2; j++)
			map_one(&workers[i]);
	}
#ifdef M_MMAP_THRESHOLD
	/* malloc is to map what it is asked for, always: the heap's end is ours. */
	mallopt(M_MMAP_THRESHOLD, 128 * 1024);
#endif
	for (int i = 0; i < 8; i++) /* what it needs for itself it has by now */
		free(realloc(malloc(300000), 900000));
	workers[0].may_brk = true;
	brk_base = (char *)(((uintptr_t)map_brk(NULL) + PAGE - 1) & ~(PAGE - 1));
	map_brk(brk_base);
}

int main(int argc, char **argv)
{
	pthread_t t;

	n_threads = argc > 2 ? atoi(argv[1]) : 1;
	n_ops = argc > 2 ? atoi(argv[2]) : 400;
	if (n_threads < 1 || n_threads > MAX_THREADS)
		die("threads");
	set_up();
	if (argc == 2 && !strcmp(argv[1], "after")) {
		say("after %d", (int)getpid());
		begin_anew();
		say("end");
		for (;;)
			next_command();
	}
	pthread_barrier_init(&barrier, NULL, (unsigned)n_threads);
	for (int i = 1; i < n_threads; i++)
		if (pthread_create(&t, NULL, thread_main, &workers[i]))
			die("pthread_create");
	noting = true;
	say_ready();
	for (;;) {
		const char *command = next_command();

		if (!strcmp(command, "run")) {
			run();
			say_truth();
		} else if (!strncmp(command, "threads ", 8)) {
			start_threads(atoi(command + 8));
		} else if (!strcmp(command, "fork")) {
			fork_one();
		} else if (!strcmp(command, "exec")) {
			say("execing");
			execl("/proc/self/exe", argv[0], "after", (char *)NULL);
			die("exec");
		}
		say("end");
	}
}
