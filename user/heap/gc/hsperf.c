#include "heap/gc/hsperf.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum {
	PROLOGUE = 32,
	ENTRY = 20,
	ENTRIES_MAX = 4096,
	NAME_MAX_LEN = 128,
	GENERATIONS = 4,
	SPACES = 8,
};

struct value {
	bool known;
	int64_t number;
};

struct found {
	struct {
		char name[GC_KIND_NAME];
		struct value invocations, time, entry, exit;
	} collectors[GC_KINDS];
	struct {
		struct value capacity;
		struct {
			bool eden;
			struct value used;
		} spaces[SPACES];
	} generations[GENERATIONS];
	struct value frequency;
};

static uint32_t word32(const uint8_t *at)
{
	uint32_t w;

	memcpy(&w, at, sizeof(w));
	return w;
}

/* "12.rest": the number and the rest; NULL: it does not begin so, or the number is not below `max`. */
static const char *numbered(const char *name, uint32_t max, uint32_t *ret_n)
{
	uint32_t n = 0;

	if (*name < '0' || *name > '9')
		return NULL;
	for (; *name >= '0' && *name <= '9'; name++) {
		n = 10 * n + (uint32_t)(*name - '0');
		if (n >= max)
			return NULL;
	}
	*ret_n = n;
	return *name == '.' ? name + 1 : NULL;
}

/* What is behind `prefix` in `name`; NULL: it does not begin so. */
static const char *behind(const char *name, const char *prefix)
{
	size_t len = strlen(prefix);

	return strncmp(name, prefix, len) == 0 ? name + len : NULL;
}

static void put_collector(struct found *f, const char *rest, struct value v, const char *text)
{
	uint32_t n;

	rest = numbered(rest, GC_KINDS, &n);
	if (!rest)
		return;
	if (strcmp(rest, "name") == 0 && text)
		snprintf(f->collectors[n].name, GC_KIND_NAME, "%s", text);
	else if (strcmp(rest, "invocations") == 0)
		f->collectors[n].invocations = v;
	else if (strcmp(rest, "time") == 0)
		f->collectors[n].time = v;
	else if (strcmp(rest, "lastEntryTime") == 0)
		f->collectors[n].entry = v;
	else if (strcmp(rest, "lastExitTime") == 0)
		f->collectors[n].exit = v;
}

static void put_generation(struct found *f, const char *rest, struct value v, const char *text)
{
	uint32_t n, k;

	rest = numbered(rest, GENERATIONS, &n);
	if (!rest)
		return;
	if (strcmp(rest, "capacity") == 0)
		f->generations[n].capacity = v;
	rest = behind(rest, "space.");
	rest = rest ? numbered(rest, SPACES, &k) : NULL;
	if (!rest)
		return;
	if (strcmp(rest, "used") == 0)
		f->generations[n].spaces[k].used = v;
	else if (strcmp(rest, "name") == 0 && text)
		f->generations[n].spaces[k].eden = strcmp(text, "eden") == 0;
}

/* One entry of `len` bytes, which its offsets stay within. */
static void put_entry(struct found *f, const uint8_t *entry, uint32_t len)
{
	uint32_t name_at = word32(entry + 4), length = word32(entry + 8), data = word32(entry + 16);
	char name[NAME_MAX_LEN], text[GC_KIND_NAME];
	struct value v = { 0 };
	const char *rest;
	bool is_text = entry[12] == 'B' && length;

	if (name_at >= len || data >= len)
		return;
	snprintf(name, sizeof(name), "%.*s",
		 (int)strnlen((const char *)entry + name_at, len - name_at),
		 (const char *)entry + name_at);
	if (is_text) {
		if (length > len - data)
			return;
		snprintf(text, sizeof(text), "%.*s",
			 (int)strnlen((const char *)entry + data, length),
			 (const char *)entry + data);
		for (char *c = text; *c; c++)
			if (*c < ' ' || *c > '~')
				*c = '?';
	} else if (entry[12] == 'J' && !length && len - data >= 8) {
		memcpy(&v.number, entry + data, 8);
		v.known = v.number >= 0;
	} else {
		return;
	}
	rest = behind(name, "sun.gc.collector.");
	if (rest)
		put_collector(f, rest, v, is_text ? text : NULL);
	rest = behind(name, "sun.gc.generation.");
	if (rest)
		put_generation(f, rest, v, is_text ? text : NULL);
	if (strcmp(name, "sun.os.hrt.frequency") == 0)
		f->frequency = v;
}

/* Ticks as nanoseconds. */
static int64_t ns(const struct found *f, int64_t ticks)
{
	double per =
		f->frequency.known && f->frequency.number ? 1e9 / (double)f->frequency.number : 0;
	double all = (double)ticks * per;

	return per > 0 && all >= 0 && all < 9e18 ? (int64_t)all : GC_UNKNOWN;
}

static void add(int64_t *sum, struct value v)
{
	int64_t more;

	if (v.known && !__builtin_add_overflow(*sum < 0 ? 0 : *sum, v.number, &more))
		*sum = more;
}

static bool put_counters(const struct found *f, struct gc_counters *c)
{
	int64_t ticks = GC_UNKNOWN, last = GC_UNKNOWN;

	for (uint32_t i = 0; i < GC_KINDS; i++) {
		int64_t pause;

		if (!f->collectors[i].invocations.known)
			continue;
		snprintf(c->kinds[c->n_kinds].name, GC_KIND_NAME, "%s",
			 *f->collectors[i].name ? f->collectors[i].name : "collector");
		c->kinds[c->n_kinds++].count = (uint64_t)f->collectors[i].invocations.number;
		c->count += (uint64_t)f->collectors[i].invocations.number;
		/* 0: of the young generation; 1: of all; 2: pauses of a concurrent cycle. */
		if (i == 1)
			c->major = (uint64_t)f->collectors[i].invocations.number;
		add(&ticks, f->collectors[i].time);
		/* While one is at work, it has begun after it ended. */
		if (f->collectors[i].invocations.number && f->collectors[i].exit.known &&
		    f->collectors[i].exit.number > last &&
		    !__builtin_sub_overflow(f->collectors[i].exit.number,
					    f->collectors[i].entry.number, &pause) &&
		    pause >= 0) {
			last = f->collectors[i].exit.number;
			c->last_at = (uint64_t)last;
			c->last_ns = ns(f, pause);
		}
	}
	c->time_ns = ticks < 0 ? GC_UNKNOWN : ns(f, ticks);
	for (uint32_t i = 0; i < GENERATIONS; i++) {
		add(&c->heap_bytes, f->generations[i].capacity);
		/* Eden is empty after a collection, and filled by the program. */
		for (uint32_t k = 0; k < SPACES; k++)
			if (!f->generations[i].spaces[k].eden)
				add(&c->live_bytes, f->generations[i].spaces[k].used);
	}
	return c->n_kinds > 0;
}

int hsperf_read(const uint8_t *bytes, size_t len, struct gc_counters *ret_counters)
{
	struct gc_counters c = { .time_ns = GC_UNKNOWN,
				 .longest_ns = GC_UNKNOWN,
				 .last_ns = GC_UNKNOWN,
				 .live_bytes = GC_UNKNOWN,
				 .heap_bytes = GC_UNKNOWN };
	struct found f = { 0 };
	uint32_t at, n;

	/* Little endian, version 2, whole. */
	if (len < PROLOGUE || memcmp(bytes, "\xca\xfe\xc0\xc0\x01\x02", 6) != 0 || !bytes[7])
		return -EBADMSG;
	at = word32(bytes + 24);
	n = word32(bytes + 28);
	for (uint32_t i = 0; i < n && i < ENTRIES_MAX; i++) {
		uint32_t size;

		if (at > len || len - at < ENTRY)
			return -EBADMSG;
		size = word32(bytes + at);
		if (size < ENTRY || size > len - at)
			return -EBADMSG;
		put_entry(&f, bytes + at, size);
		at += size;
	}
	if (!put_counters(&f, &c))
		return -ENOENT;
	*ret_counters = c;
	return 0;
}
