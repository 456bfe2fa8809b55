/*
 * Four functions that do a fixed number of things in each of many rounds, and one of them may do more: what
 * differs between two runs is known, and is of one site.
 *
 *   one_site WHAT ROUNDS MORE [LOG]
 *
 * WHAT is what they do, in the function itself ("self"):
 *   alloc   allocate and free, with about BURNT_NS of work beside each block
 *   fast    the same without work
 *   cpu     compute: a fixed number of steps
 *   keep    as alloc, but each KEPT-th block of a function stays
 *   touch   touch fresh pages, which are released at the end of the round
 * scaled_here does MORE percent more than its PER_ROUND; with MORE 0 it has three tenths of all. The calls of all
 * four come mixed. With LOG it begins at once and writes its answer there, else:
 *
 * go → site NAME CALLS AMOUNT (bytes, steps, or bytes of pages; each); end
 */
#include "target.h"

#define PER_ROUND 100
#define BURNT_NS  2000
#define KEPT      16
#define PAGE      4096

enum what { ALLOC, FAST, KEEP, CPU, TOUCH };

static enum what what;
static uint64_t burnt; /* iterations that take BURNT_NS, about */
static char *page;     /* the next one that was not touched    */

/* All of it in the function itself: one that it called, inlined or not, would be the site, and all four's. */
#define SITE(name)                                                                                 \
	static NOINLINE void name(size_t amount)                                                   \
	{                                                                                          \
		static unsigned made;                                                              \
		void *volatile block;                                                              \
                                                                                                   \
		switch (what) {                                                                    \
		case ALLOC:                                                                        \
		case FAST:                                                                         \
		case KEEP:                                                                         \
			block = malloc(amount);                                                    \
			if (what != KEEP || ++made % KEPT)                                         \
				free(block);                                                       \
			if (what != FAST)                                                          \
				burn(burnt);                                                       \
			break;                                                                     \
		case CPU:                                                                          \
			for (volatile size_t i = 0; i < amount; i++)                               \
				;                                                                  \
			break;                                                                     \
		case TOUCH:                                                                        \
			for (size_t end = 0; end < amount; end += PAGE, page += PAGE)              \
				*(volatile char *)page = 1;                                        \
			break;                                                                     \
		}                                                                                  \
		__asm__ volatile("" ::: "memory");                                                 \
	}
SITE(scaled_here)
SITE(steady_small)
SITE(steady_middle)
SITE(steady_large)

static struct site {
	void (*run)(size_t amount);
	const char *name;
	uint64_t per_round;
	size_t amount[TOUCH + 1];
	uint64_t calls;
} sites[] = {
	{ scaled_here, "scaled_here", PER_ROUND, { 240, 240, 240, 3000, 3 * PAGE }, 0 },
	{ steady_small, "steady_small", 150, { 48, 48, 48, 600, 1 * PAGE }, 0 },
	{ steady_middle, "steady_middle", 80, { 240, 240, 240, 3000, 3 * PAGE }, 0 },
	{ steady_large, "steady_large", 31, { 960, 960, 960, 12000, 10 * PAGE }, 0 },
};
enum { SITES = sizeof(sites) / sizeof(*sites), PAGES_A_ROUND = 2000 };

/* Each site's calls are spread evenly over the round, of which there are as many parts as calls. */
static void play_round(void)
{
	uint64_t done[SITES] = { 0 }, parts = 0;

	for (int i = 0; i < SITES; i++)
		parts += sites[i].per_round;
	for (uint64_t part = 1; part <= parts; part++)
		for (int i = 0; i < SITES; i++)
			for (; done[i] < sites[i].per_round * part / parts; done[i]++)
				sites[i].run(sites[i].amount[what]);
	for (int i = 0; i < SITES; i++)
		sites[i].calls += done[i];
}

static void play(uint64_t rounds)
{
	char *pages = NULL;

	if (what == TOUCH) {
		pages = mmap(NULL, PAGES_A_ROUND * PAGE, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (pages == MAP_FAILED || madvise(pages, PAGES_A_ROUND * PAGE, MADV_NOHUGEPAGE))
			die("mmap");
	}
	for (uint64_t i = 0; i < rounds; i++) {
		page = pages;
		play_round();
		if (page > pages + PAGES_A_ROUND * PAGE)
			die("more pages than there are");
		if (pages && madvise(pages, PAGES_A_ROUND * PAGE, MADV_DONTNEED))
			die("madvise");
	}
}

static enum what what_of(const char *name)
{
	static const char *const names[] = { "alloc", "fast", "keep", "cpu", "touch" };

	for (int i = ALLOC; i <= TOUCH; i++)
		if (!strcmp(name, names[i]))
			return (enum what)i;
	errno = EINVAL;
	die(name);
}

int main(int argc, char **argv)
{
	int out = STDOUT_FILENO;

	if (argc < 4 || argc > 5)
		die("usage: one_site WHAT ROUNDS MORE [LOG]");
	what = what_of(argv[1]);
	sites[0].per_round += PER_ROUND * strtoull(argv[3], NULL, 10) / 100;
	burnt = burn_per_ms() * BURNT_NS / NSEC_PER_MSEC;
	if (argc == 5)
		out = open(argv[4], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (out < 0)
		die(argv[4]);
	if (argc == 4) {
		say_ready();
		next_command();
	}
	play(strtoull(argv[2], NULL, 10));
	for (int i = 0; i < SITES; i++)
		say_to(out, "site %s %llu %llu", sites[i].name, (unsigned long long)sites[i].calls,
		       (unsigned long long)(sites[i].calls * sites[i].amount[what]));
	say_to(out, "end");
	if (argc == 4)
		next_command();
	return 0;
}
