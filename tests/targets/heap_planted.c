/*
 * Graphs of known shapes: chains, fans, rings, diamonds, tails that two chains share, and drawn ones. What is referred to by a word that is
 * no address of it, or from a block that was freed, is lost.
 *
 *   heap_planted     then, a line each: "node ADDRESS BYTES", "edge ADDRESS ADDRESS", "root NAME ADDRESS", and "planted"
 *
 * Lives until its input ends.
 */
#include "target.h"

#include <malloc.h>

enum { LINKS = 6, CHAIN = 200, FAN = 120, RING = 20, DRAWN = 150, ADDRESSES = 1024 };

struct node {
	uint64_t hidden; /* an address that nobody can tell: its bits are turned round */
	struct {
		void *to;
	} link[LINKS];
	char rest[];
};

/* One that has the shortest chain by two ways of equal length, with types of their own. */
struct bottom {
	uint64_t value[12];
};

struct left {
	struct bottom *bottom;
	uint64_t value[5];
};

struct right {
	struct bottom *bottom;
	uint64_t value[7];
};

struct top {
	struct left *left;
	struct right *right;
};

void *chain, *fan, *ring, *near, *far, *drawn[8], *held;
struct top *typed;

/* All addresses, in a form that keeps nothing. */
static uint64_t nodes[ADDRESSES];
static uint32_t n_nodes;

static uint32_t draw(uint32_t n)
{
	static uint64_t state = 88172645463325252ULL;

	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (uint32_t)((state >> 20) % n);
}

static void *note(void *block)
{
	if (!block || n_nodes == ADDRESSES)
		die("note");
	nodes[n_nodes++] = ~(uint64_t)(uintptr_t)block;
	say("node %llx %zu", (unsigned long long)(uintptr_t)block, malloc_usable_size(block));
	return block;
}

static NOINLINE struct node *make(void)
{
	size_t size = sizeof(struct node) + draw(20) * 16;

	return note(calloc(1, size));
}

static void link_to(struct node *from, uint32_t i, void *to)
{
	from->link[i].to = to;
	say("edge %llx %llx", (unsigned long long)(uintptr_t)from,
	    (unsigned long long)(uintptr_t)to);
}

static void root(const char *name, const void *to)
{
	say("root %s %llx", name, (unsigned long long)(uintptr_t)to);
}

static NOINLINE struct node *make_chain(uint32_t n, struct node *end)
{
	while (n--) {
		struct node *next = make();

		if (end)
			link_to(next, 0, end);
		end = next;
	}
	return end;
}

/* A tree of nodes that each have as many as they can. */
static NOINLINE struct node *make_fan(uint32_t n)
{
	struct node *top = make();

	for (uint32_t i = 0; i < LINKS && n > 1; i++) {
		uint32_t part = (n - 1) / LINKS;

		if (part)
			link_to(top, i, make_fan(part));
	}
	return top;
}

static NOINLINE struct node *make_ring(uint32_t n, struct node *tail)
{
	struct node *first = make(), *last = first;

	while (--n) {
		struct node *next = make();

		link_to(last, 0, next);
		/* And back, so that there are rings in it. */
		link_to(next, 1, last);
		last = next;
	}
	link_to(last, 0, first);
	link_to(last, 2, tail);
	return first;
}

static NOINLINE void make_drawn(void)
{
	struct node *all[DRAWN];

	for (uint32_t i = 0; i < DRAWN; i++)
		all[i] = make();
	for (uint32_t i = 0; i < DRAWN; i++)
		for (uint32_t k = 0; k < draw(LINKS); k++)
			link_to(all[i], k, all[draw(DRAWN)]);
	for (uint32_t i = 0; i < 8; i++) {
		drawn[i] = all[i * 19];
		root("drawn", drawn[i]);
	}
	memset(all, 0, sizeof(all));
	__asm__ volatile("" : : "r"(all) : "memory");
}

static NOINLINE void make_typed(void)
{
	typed = note(calloc(1, sizeof(*typed)));
	typed->left = note(calloc(1, sizeof(*typed->left)));
	typed->right = note(calloc(1, sizeof(*typed->right)));
	typed->left->bottom = typed->right->bottom = note(calloc(1, sizeof(struct bottom)));
	for (int i = 0; i < 2; i++) {
		void *side = i ? (void *)typed->right : (void *)typed->left;

		say("edge %llx %llx", (unsigned long long)(uintptr_t)typed,
		    (unsigned long long)(uintptr_t)side);
		say("edge %llx %llx", (unsigned long long)(uintptr_t)side,
		    (unsigned long long)(uintptr_t)typed->left->bottom);
	}
	root("typed", typed);
}

/* No edges: one that is hidden, and one from a block that is freed. */
static NOINLINE void make_weak(void)
{
	struct node *keeper = make(), *gone = make();

	held = keeper;
	root("held", keeper);
	keeper->hidden = ~(uint64_t)(uintptr_t)make_chain(3, NULL);
	gone->link[LINKS - 1].to = make();
	say("gone %llx", (unsigned long long)(uintptr_t)gone);
	free(gone);
}

/* What functions have left of addresses on the stack. */
static NOINLINE void wipe(void)
{
	volatile char bytes[32768];

	memset((char *)bytes, 0, sizeof(bytes));
}

int main(void)
{
	struct node *tail;

	chain = make_chain(CHAIN, NULL);
	root("chain", chain);
	fan = make_fan(FAN);
	root("fan", fan);
	tail = make_chain(10, NULL);
	ring = make_ring(RING, tail);
	root("ring", ring);
	/* Of two ways to the same tail one is longer; the tail's end hangs on the ring, too. */
	tail = make_chain(30, tail);
	near = make_chain(5, tail);
	root("near", near);
	far = make_chain(50, tail);
	root("far", far);
	tail = NULL;
	make_drawn();
	make_typed();
	make_weak();
	wipe();
	say("planted");
	say_ready();
	next_command();
	return !chain;
}
