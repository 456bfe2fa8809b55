#include "collect/stream/thread_ids.h"

#include "base/grow.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PAIRS_MAX (1u << 17) /* of threads that have ended, for the most part */

struct pair {
	uint32_t there, here;
};

struct pairs {
	struct pair *at;
	size_t n, cap;
};

struct thread_ids {
	const char *proc;
	pid_t pid;
	bool listed;           /* since the last refresh */
	struct pairs living;   /* as listed last, by `here` */
	struct pairs by_there; /* all that were ever found, by `there` */
};

struct thread_ids *thread_ids_new(const char *proc, pid_t pid)
{
	struct thread_ids *t = calloc(1, sizeof(*t));

	if (t) {
		t->proc = proc;
		t->pid = pid;
	}
	return t;
}

void thread_ids_free(struct thread_ids *t)
{
	if (!t)
		return;
	free(t->living.at);
	free(t->by_there.at);
	free(t);
}

void thread_ids_refresh(struct thread_ids *t)
{
	t->listed = false;
}

static int by_here(const void *a, const void *b)
{
	const struct pair *x = a, *y = b;

	return (x->here > y->here) - (x->here < y->here);
}

static int by_there(const void *a, const void *b)
{
	const struct pair *x = a, *y = b;

	return (x->there > y->there) - (x->there < y->there);
}

static const struct pair *find(const struct pairs *p, struct pair what,
			       int (*order)(const void *, const void *))
{
	return p->n ? bsearch(&what, p->at, p->n, sizeof(what), order) : NULL;
}

static bool add(struct pairs *p, struct pair what)
{
	if (!GROW(p->at, p->n, p->cap))
		return false;
	p->at[p->n++] = what;
	return true;
}

static void sort(struct pairs *p, int (*order)(const void *, const void *))
{
	if (p->n)
		qsort(p->at, p->n, sizeof(*p->at), order);
}

/* 0: it has ended meanwhile. */
static uint32_t read_there(const struct thread_ids *t, const char *name)
{
	_cleanup_(fclosep) FILE *f = NULL;
	char path[512], line[512];

	snprintf(path, sizeof(path), "%s/%d/task/%.64s/status", t->proc, (int)t->pid, name);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f)) {
		const char *last = strrchr(line, '\t');

		if (strncmp(line, "NSpid:", 6) == 0)
			return last ? (uint32_t)strtoul(last, NULL, 10) : 0;
	}
	return 0;
}

/* The newest comes last, and is kept. */
static void keep_newest(struct pairs *p, size_t n_before)
{
	size_t n = n_before;

	for (size_t i = n_before; i < p->n; i++) {
		struct pair *old = (struct pair *)find(&(struct pairs){ p->at, n_before, 0 },
						       p->at[i], by_there);

		if (old)
			old->here = p->at[i].here;
		else
			p->at[n++] = p->at[i];
	}
	p->n = n;
	sort(p, by_there);
}

static void list(struct thread_ids *t)
{
	struct pairs living = { NULL, 0, 0 };
	char path[512];
	struct dirent *d;
	size_t before;
	DIR *dir;

	if (t->by_there.n > PAIRS_MAX)
		t->by_there.n = t->living.n = 0;
	before = t->by_there.n;
	snprintf(path, sizeof(path), "%s/%d/task", t->proc, (int)t->pid);
	dir = opendir(path);
	while (dir && (d = readdir(dir))) {
		struct pair p = { 0, (uint32_t)strtoul(d->d_name, NULL, 10) };
		const struct pair *known = find(&t->living, p, by_here);

		if (!p.here)
			continue;
		p.there = known ? known->there : read_there(t, d->d_name);
		if (!p.there || !add(&living, p))
			continue;
		if (!known)
			add(&t->by_there, p);
	}
	if (dir)
		closedir(dir);
	free(t->living.at);
	t->living = living;
	sort(&t->living, by_here);
	keep_newest(&t->by_there, before);
}

uint32_t thread_ids_here(struct thread_ids *t, uint32_t there)
{
	const struct pair what = { there, 0 }, *found = find(&t->by_there, what, by_there);

	if (!found && !t->listed) {
		t->listed = true;
		list(t);
		found = find(&t->by_there, what, by_there);
	}
	return found ? found->here : (uint32_t)t->pid;
}
