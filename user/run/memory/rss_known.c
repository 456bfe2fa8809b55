#include "run/memory/rss_known.h"

#include "base/small_file.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* proc(5), stat. */
static bool read_sign(pid_t pid, struct rss_sign *ret_sign)
{
	unsigned long long minor, major, user, system, start, bytes;
	char path[32], text[1024], *end;
	long long pages;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	if (small_file_read(AT_FDCWD, path, text, sizeof(text)) < 0)
		return false;
	end = strrchr(text, ')'); /* of its name, which may have some, too */
	if (!end || sscanf(end,
			   ") %*c %*d %*d %*d %*d %*d %*u %llu %*u %llu %*u %llu %llu %*d %*d %*d "
			   "%*d %*d %*d %llu %llu %lld",
			   &minor, &major, &user, &system, &start, &bytes, &pages) != 7)
		return false;
	*ret_sign =
		(struct rss_sign){ start, user + system, minor + major, bytes, (uint64_t)pages };
	return true;
}

static bool is_same(const struct rss_sign *a, const struct rss_sign *b)
{
	return a->start == b->start && a->cpu_ticks == b->cpu_ticks && a->faults == b->faults &&
	       a->bytes == b->bytes && a->pages == b->pages;
}

static void forget(struct rss_known *k, struct rss_known_process *p)
{
	HASH_DEL(k->all, p);
	free(p);
}

static struct rss_known_process *row_of(struct rss_known *k, pid_t pid)
{
	struct rss_known_process *p;

	HASH_FIND(hh, k->all, &pid, sizeof(pid), p);
	if (p || HASH_COUNT(k->all) >= RSS_KNOWN_MAX)
		return p;
	return hash_new(k->all, pid, &pid);
}

/* Another process with its pid: nothing is known of that. */
static void begin_again(struct rss_known_process *p)
{
	p->found = (struct heap_found){ 0 };
	p->known = false;
}

void rss_known_begin(struct rss_known *k)
{
	k->look++;
}

void rss_known_end(struct rss_known *k)
{
	struct rss_known_process *p, *next;

	HASH_ITER (hh, k->all, p, next)
		if (p->look != k->look)
			forget(k, p);
}

void rss_known_fini(struct rss_known *k)
{
	struct rss_known_process *p, *next;

	HASH_ITER (hh, k->all, p, next)
		forget(k, p);
}

struct rss_known_process *rss_known_of(struct rss_known *k, pid_t pid)
{
	struct rss_known_process *p;
	struct rss_sign now;

	if (!read_sign(pid, &now))
		return NULL;
	p = row_of(k, pid);
	if (!p)
		return NULL;
	if (p->now.start != now.start)
		begin_again(p);
	p->look = k->look;
	p->now = now;
	p->same = p->known && p->kept < RSS_KEPT_MAX && is_same(&p->now, &p->then);
	p->kept += p->same;
	for (int i = 0; i < HEAP_WALKERS_MAX; i++)
		if (p->found.searched[i].wait >= RSS_SEARCH_EVERY)
			p->found.searched[i].wait = RSS_SEARCH_EVERY - 1;
	return p;
}

void rss_known_keep(struct rss_known_process *p, const struct ledger *found)
{
	p->ledger = *found;
	p->then = p->now;
	p->kept = 0;
	p->known = true;
}
