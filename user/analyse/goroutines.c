#include "analyse/goroutines.h"

#include "analyse/name_match.h"
#include "base/saturate.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/*
 * What a reason means, where a function of the stack (NULL: any) is the runtime's or a library's: the first row that fits.
 * Up to Go 1.19 all that sleeps on a semaphore is "semacquire".
 */
/* clang-format off */
static const struct {
	const char *reason, *function;
	enum wait_kind wait;
	enum wait_role role;
	const char *lock;
} meanings[] = {
	{ "sync.Mutex.Lock", NULL, WAIT_LOCK, WAIT_ROLE_MUTEX, "a sync.Mutex" },
	{ "sync.RWMutex.*", NULL, WAIT_LOCK, WAIT_ROLE_MUTEX, "a sync.RWMutex" },
	{ "sync.WaitGroup.Wait", NULL, WAIT_LOCK, WAIT_ROLE_JOIN, "" },
	{ "semacquire", "sync.(*RWMutex).*", WAIT_LOCK, WAIT_ROLE_MUTEX, "a sync.RWMutex" },
	{ "semacquire", "sync.runtime_SemacquireMutex", WAIT_LOCK, WAIT_ROLE_MUTEX, "a sync.Mutex" },
	{ "semacquire", "internal/poll.runtime_Semacquire", WAIT_LOCK, WAIT_ROLE_MUTEX, "a descriptor's lock" },
	{ "semacquire", "sync.(*WaitGroup).Wait", WAIT_LOCK, WAIT_ROLE_JOIN, "" },
	{ "select*", "net/http.(*persistConn).roundTrip", WAIT_SOCKET, WAIT_ROLE_UNKNOWN, "" },
	{ "select*", "net/http.(*http2ClientConn).*", WAIT_SOCKET, WAIT_ROLE_UNKNOWN, "" },
	{ "select*", "database/sql.(*DB).conn", WAIT_LOCK, WAIT_ROLE_MUTEX, "a connection of the database's pool" },
	{ "IO wait", NULL, WAIT_SOCKET, WAIT_ROLE_UNKNOWN, "" },
	{ "sleep", NULL, WAIT_TIMER, WAIT_ROLE_UNKNOWN, "" },
};
/* clang-format on */

static bool has_function(const struct dict *d, const struct frame_path *path, const char *pattern)
{
	for (uint32_t i = path->n; i-- > 0;)
		if (name_matches(pattern, dict_str(d, path->frames[i].name)))
			return true;
	return false;
}

/*
 * Goroutines that begin in a function of such a name read from a connection for ever and hand on what comes: others wait
 * for that. Seen in the sources of grpc-go, nats.go, gorilla/websocket's examples, amqp091-go.
 */
static bool is_reader(const struct dict *d, const struct frame_path *path)
{
	static const char *const names[] = { "reader",   "readLoop",    "ReadLoop",
					     "readPump", "ReadPump",    "recvLoop",
					     "receiver", "receiveLoop", "readMessages" };
	const char *name = "";
	size_t len;

	for (uint32_t i = 0; i < path->n && !*name; i++)
		if (strncmp(dict_str(d, path->frames[i].name), "runtime.", 8) != 0)
			name = dict_str(d, path->frames[i].name);
	len = strlen(name);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		size_t n = strlen(names[i]);

		if (len > n && strcmp(name + len - n, names[i]) == 0 && name[len - n - 1] == '.')
			return true;
	}
	return false;
}

static void set_meaning(const struct dict *d, const struct frame_path *path,
			struct goroutine_row *row)
{
	row->at.wait = WAIT_OTHER;
	row->at.role = WAIT_ROLE_CONDITION;
	row->lock = "";
	for (size_t i = 0; i < sizeof(meanings) / sizeof(meanings[0]) && row->waits; i++) {
		if (!name_matches(meanings[i].reason, row->reason) ||
		    (meanings[i].function && !has_function(d, path, meanings[i].function)))
			continue;
		row->at.wait = meanings[i].wait;
		row->at.role = meanings[i].role;
		row->lock = meanings[i].lock;
		break;
	}
	/* Whom it has accepted, or listens for; and what comes unasked. */
	if (strcmp(row->reason, "IO wait") == 0 && (!*row->peer || is_reader(d, path)))
		row->at.wait = WAIT_EVENTS;
}

static int row_of(struct dict *d, const struct goroutine_stack *s, struct goroutine_row *ret_row)
{
	_cleanup_(frame_path_fini) struct frame_path path = { 0 };
	struct goroutine_row row = { .reason = s->reason,
				     .peer = s->peer,
				     .waits = s->waits,
				     .now = s->now,
				     .longest_ns = s->longest_ns };
	int r = frame_path_set(&path, d, s->stack);

	if (r == 0)
		r = site_of_wait_stack(d, s->stack, &row.at);
	if (r < 0)
		return r;
	row.at.pool = NULL;
	row.at.value = s->time_ns;
	row.at.count = s->waits_n;
	set_meaning(d, &path, &row);
	for (uint32_t i = path.n; i-- > 0 && !row.own;)
		row.own = site_is_own(d, &path, i);
	row.at.leaf = row.reason;
	*ret_row = row;
	return 0;
}

static int by_place(const void *a, const void *b)
{
	const struct goroutine_row *x = a, *y = b;
	int r = strcmp(x->at.function, y->at.function);

	r = r ? r : strcmp(x->at.module, y->at.module);
	r = r ? r : strcmp(x->reason, y->reason);
	r = r ? r : strcmp(x->peer, y->peer);
	return r ? r : (int)x->at.role - (int)y->at.role;
}

bool goroutines_held_up(const struct goroutine_row *row)
{
	return row->waits && row->own &&
	       (row->at.role == WAIT_ROLE_MUTEX || row->at.wait == WAIT_SOCKET);
}

static int by_time(const void *a, const void *b)
{
	const struct goroutine_row *x = a, *y = b;
	int r = (int)goroutines_held_up(y) - (int)goroutines_held_up(x);

	r = r ? r : (int)y->waits - (int)x->waits;
	r = r ? r : (y->at.value > x->at.value) - (y->at.value < x->at.value);
	r = r ? r : (y->now > x->now) - (y->now < x->now);
	return r ? r : by_place(a, b);
}

static uint32_t merge(struct goroutine_row *rows, uint32_t n)
{
	uint32_t out = 0;

	qsort(rows, n, sizeof(*rows), by_place);
	for (uint32_t i = 0; i < n; i++) {
		struct goroutine_row *last = out ? &rows[out - 1] : NULL;

		if (!last || by_place(last, &rows[i]) != 0) {
			rows[out++] = rows[i];
			continue;
		}
		last->at.value = add_saturating(last->at.value, rows[i].at.value);
		last->at.count = add_saturating(last->at.count, rows[i].at.count);
		last->now += rows[i].now;
		if (rows[i].longest_ns > last->longest_ns)
			last->longest_ns = rows[i].longest_ns;
	}
	return out;
}

int goroutines_rank(struct dict *d, const struct goroutine_stack *stacks, uint32_t n,
		    struct goroutine_row *out, uint32_t cap)
{
	_cleanup_(freep) struct goroutine_row *rows = calloc(n + 1ul, sizeof(*rows));
	int r = rows ? 0 : -ENOMEM;

	for (uint32_t i = 0; i < n && r == 0; i++)
		r = row_of(d, &stacks[i], &rows[i]);
	if (r < 0)
		return r;
	n = merge(rows, n);
	qsort(rows, n, sizeof(*rows), by_time);
	n = n < cap ? n : cap;
	memcpy(out, rows, n * sizeof(*rows));
	return (int)n;
}
