#include "analyse/task_waits.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Coroutines of asyncio, nearest the leaf, and what they are for: by its file, and a beginning of the name. To 3.10 names have no
 * class, so that a lock and a semaphore look the same. */
static const struct {
	const char *file, *function;
	enum task_wait wait;
} meanings[] = {
	{ "/locks.py", "Lock.", TASK_WAIT_LOCK },
	{ "/locks.py", "Event.", TASK_WAIT_EVENT },
	{ "/locks.py", "", TASK_WAIT_TURN },
	{ "/queues.py", "", TASK_WAIT_QUEUE },
	{ "/streams.py", "", TASK_WAIT_SOCKET },
	{ "/selector_events.py", "", TASK_WAIT_SOCKET },
	{ "/base_events.py", "BaseEventLoop.create_connection", TASK_WAIT_SOCKET },
	{ "/base_events.py", "create_connection", TASK_WAIT_SOCKET },
	{ "/tasks.py", "sleep", TASK_WAIT_TIMER },
	{ "/tasks.py", "", TASK_WAIT_TASK },
};

static const struct {
	const char *text, *name;
} words[N_TASK_WAITS] = {
	[TASK_WAIT_OTHER] = { "a future", "future" },
	[TASK_WAIT_SOCKET] = { "a socket", "socket" },
	[TASK_WAIT_LOCK] = { "an asyncio lock", "lock" },
	[TASK_WAIT_TURN] = { "their turn", "turn" },
	[TASK_WAIT_EVENT] = { "an event", "event" },
	[TASK_WAIT_QUEUE] = { "a queue", "queue" },
	[TASK_WAIT_TIMER] = { "a timer", "timer" },
	[TASK_WAIT_TASK] = { "another task", "task" },
};

const char *task_wait_text(enum task_wait w)
{
	return words[w].text;
}

const char *task_wait_name(enum task_wait w)
{
	return words[w].name;
}

struct awaited {
	const char *function, *file;
	uint32_t line;
};

static struct awaited awaited_at(const struct dict *d, stack_id s)
{
	const struct location *l = dict_location_get(d, dict_stack_leaf(d, s));

	if (!l->n_lines)
		return (struct awaited){ "", "", 0 };
	return (struct awaited){ dict_str(d, l->lines[0].function), dict_str(d, l->lines[0].file),
				 l->lines[0].line };
}

/* Of Python's own library, or of a package that is installed. */
static bool is_library(const char *file)
{
	const char *lib = strstr(file, "/lib/python3");

	return lib || strstr(file, "/site-packages/") || strstr(file, "/dist-packages/") ||
	       strncmp(file, "<frozen", 7) == 0;
}

static enum task_wait meaning_of(const char *function, const char *file)
{
	const char *in = strstr(file, "/asyncio/");

	for (size_t i = 0; in && i < sizeof(meanings) / sizeof(meanings[0]); i++)
		if (strcmp(in + strlen("/asyncio"), meanings[i].file) == 0 &&
		    strncmp(meanings[i].function, function, strlen(meanings[i].function)) == 0)
			return meanings[i].wait;
	return TASK_WAIT_OTHER;
}

static struct task_row row_of(const struct dict *d, const struct task_use *u)
{
	struct awaited leaf = awaited_at(d, u->stack), at = leaf;
	struct task_row row = { .awaits = leaf.function,
				.wait = u->of_task ? TASK_WAIT_TASK : TASK_WAIT_OTHER,
				.seen = u->seen,
				.looks = u->looks,
				.left = u->left,
				.longest_ns = u->longest_ns };
	stack_id s = u->stack;

	for (; dict_stack_depth(d, s); s = dict_stack_parent(d, s)) {
		at = awaited_at(d, s);
		if (!is_library(at.file))
			break;
		if (row.wait == TASK_WAIT_OTHER)
			row.wait = meaning_of(at.function, at.file);
		at = leaf;
	}
	row.function = at.function;
	row.line = at.line;
	return row;
}

static int by_place(const void *a, const void *b)
{
	const struct task_row *x = a, *y = b;
	int r = strcmp(x->function, y->function);

	if (r == 0)
		r = (x->line > y->line) - (x->line < y->line);
	if (r == 0)
		r = (int)x->wait - (int)y->wait;
	return r ? r : strcmp(x->awaits, y->awaits);
}

static int by_seen(const void *a, const void *b)
{
	const struct task_row *x = a, *y = b;

	if (x->seen != y->seen)
		return x->seen < y->seen ? 1 : -1;
	return by_place(a, b);
}

int tasks_rank(const struct dict *d, const struct task_use *uses, uint32_t n, uint32_t looks,
	       struct task_row *rows, uint32_t cap)
{
	struct task_row *all = calloc(n + 1ul, sizeof(*all));
	uint32_t kept = 0;

	if (!all)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++)
		all[i] = row_of(d, &uses[i]);
	qsort(all, n, sizeof(*all), by_place);
	for (uint32_t i = 0; i < n; i++) {
		struct task_row *into = kept ? &all[kept - 1] : NULL;

		if (!into || by_place(into, &all[i]) != 0) {
			all[kept++] = all[i];
			continue;
		}
		into->seen += all[i].seen;
		into->left += all[i].left;
		into->looks =
			into->looks + all[i].looks < looks ? into->looks + all[i].looks : looks;
		if (all[i].longest_ns > into->longest_ns)
			into->longest_ns = all[i].longest_ns;
	}
	qsort(all, kept, sizeof(*all), by_seen);
	kept = kept < cap ? kept : cap;
	memcpy(rows, all, kept * sizeof(*all));
	free(all);
	return (int)kept;
}
