/*
 * A heap whose blocks have known sites.
 *
 *   heap_sites OLD
 *
 * OLD sessions are there before it is ready. Then, as it is asked:
 *
 *   sessions N   … more, by make_session(), through a wrapper of malloc, kept by `sessions`
 *   orders N     by make_order(), kept by `orders`
 *   lose N       by lose_one(): nothing refers to them
 *   free N       the N newest sessions are freed
 *
 * `counts` says how many are live, and how many of those were made after it was ready.
 */
#include "target.h"

struct session {
	struct session *next;
	uint64_t id;
	char name[48];
};

struct order {
	struct order *next;
	double price;
	int64_t amounts[4];
};

/* Pointers that do not say to what: only who allocated it does. */
void *sessions, *orders;
static uint64_t n_old, n_sessions, n_orders, n_lost;

static NOINLINE void *xmalloc(size_t size)
{
	void *p = malloc(size);

	if (!p)
		die("malloc");
	return p;
}

static NOINLINE struct session *make_session(uint64_t id)
{
	struct session *s = xmalloc(sizeof(*s));

	s->next = sessions;
	s->id = id;
	memset(s->name, 0, sizeof(s->name));
	sessions = s;
	return s;
}

static NOINLINE void make_order(double price)
{
	struct order *o = calloc(1, sizeof(*o));

	if (!o)
		die("calloc");
	o->price = price;
	o->next = orders;
	orders = o;
}

static NOINLINE void lose_one(void)
{
	char *volatile lost = malloc(100);

	if (!lost)
		die("malloc");
	lost[0] = 1;
	lost = NULL;
}

static NOINLINE void free_session(void)
{
	struct session *s = sessions;

	sessions = s->next;
	free(s);
}

static uint64_t number(const char *command)
{
	const char *space = strchr(command, ' ');

	return space ? strtoull(space + 1, NULL, 10) : 0;
}

static void obey(const char *command)
{
	uint64_t n = number(command);

	for (uint64_t i = 0; i < n; i++)
		if (strncmp(command, "sessions ", 9) == 0) {
			make_session(i);
			n_sessions++;
		} else if (strncmp(command, "orders ", 7) == 0) {
			make_order((double)i);
			n_orders++;
		} else if (strncmp(command, "lose ", 5) == 0) {
			lose_one();
			n_lost++;
		} else if (strncmp(command, "free ", 5) == 0 && n_sessions) {
			free_session();
			n_sessions--;
		}
	/* What the last one left of an address on the stack. */
	sleep_ns(1);
}

int main(int argc, char **argv)
{
	n_old = argc > 1 ? strtoull(argv[1], NULL, 10) : 0;
	for (uint64_t i = 0; i < n_old; i++)
		make_session(i);
	say_ready();
	for (;;) {
		obey(next_command());
		say("counts %llu %llu %llu %llu", (unsigned long long)n_old,
		    (unsigned long long)n_sessions, (unsigned long long)n_orders,
		    (unsigned long long)n_lost);
		say("end");
	}
}
