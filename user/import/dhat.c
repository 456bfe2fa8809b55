/*
 * DHAT's file, version 2 (valgrind, dhat/dh_main.c; dh_view.js reads it): JSON,
 *
 *   {"dhatFileVersion":2, "mode":"heap", "verb":"Allocated", "bklt":true, "bkacc":true, "tu":"instrs", "cmd":…, "pid":…,
 *    "te":10389925, "tg":10376665,
 *    "pps":[{"tb":400, "tbk":4, "tl":9000, "mb":…, "mbk":…, "gb":…, "gbk":…, "eb":…, "ebk":…, "rb":…, "wb":…, "fs":[1,2,3]}, …],
 *    "ftbl":["[root]", "0x1095BC: inl (t.cpp:7)", …]}
 *
 * of each stack (fs: places in ftbl, leaf first; those of one address are inlined calls) all that it allocated, its blocks' lifetimes,
 * the most that it had (m), what it had when most was in use in all (g), and at the end (e), what was read and written.
 * The value types are those of memscope's sites (model/alloc_site.h), and those that only DHAT has.
 */
#include "base/chunks.h"
#include "base/strbuf.h"
#include "import/json_walk.h"
#include "import/readers.h"
#include "import/valgrind_place.h"
#include "model/about.h"
#include "model/alloc_site.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { MAX_FRAMES = 1 << 16 };

/* In the file's own order. */
static const struct {
	const char *key, *name, *unit;
} dhat_values[] = {
	{ "tb", "alloc_space", "bytes" },    { "tbk", "alloc_objects", "count" },
	{ "tl", "lifetime", "nanoseconds" }, { "mb", "most_space", "bytes" },
	{ "mbk", "most_objects", "count" },  { "gb", "peak_space", "bytes" },
	{ "gbk", "peak_objects", "count" },  { "eb", "inuse_space", "bytes" },
	{ "ebk", "inuse_objects", "count" }, { "rb", "read_space", "bytes" },
	{ "wb", "written_space", "bytes" },
};
enum {
	N_VALUES = sizeof(dhat_values) / sizeof(dhat_values[0]),
	TOTAL_BYTES = 0,
	LIFETIME = 2,
	PEAK = 5
};

struct dhat_point {
	int64_t values[N_VALUES];
	uint32_t first, n; /* its frames */
};

struct dhat {
	struct dict *d;
	struct chunks points, frames, places; /* frames: uint32_t */
	bool has[N_VALUES];
	int64_t version, end, peak, pid;
	char unit[32], mode[32], command[256];
	uint64_t bad;
};

static void dhat_fini(struct dhat *h)
{
	chunks_free(&h->points);
	chunks_free(&h->frames);
	chunks_free(&h->places);
}

bool dhat_recognise(struct bytes data)
{
	static const char key[] = "\"dhatFileVersion\"";

	return json_is_object(data) && memmem(data.data, data.len, key, sizeof(key) - 1);
}

/* pps[i] … */
static int take_point(struct dhat *h, const struct json_value *v)
{
	struct dhat_point *p;
	uint32_t *frame;
	int64_t n;

	if (v->depth == 2 && v->type == JSON_BEGIN) {
		p = chunks_add(&h->points);
		if (p)
			p->first = h->frames.n;
		return p ? 0 : -ENOMEM;
	}
	if (v->depth < 3 || !h->points.n)
		return 0;
	p = chunks_at(&h->points, h->points.n - 1);
	if (v->depth == 3 && json_integer(v, 1, &n)) {
		for (int i = 0; i < N_VALUES; i++)
			if (json_is(v, 2, dhat_values[i].key)) {
				p->values[i] = n;
				h->has[i] = true;
			}
	} else if (v->depth == 4 && json_is(v, 2, "fs") && v->type == JSON_NUMBER) {
		if (!json_integer(v, 1, &n) || n < 0 || n > UINT32_MAX || p->n == MAX_FRAMES) {
			h->bad++;
			return 0;
		}
		frame = chunks_add(&h->frames);
		if (!frame)
			return -ENOMEM;
		*frame = (uint32_t)n;
		p->n++;
	}
	return 0;
}

static int take(void *ctx, const struct json_value *v)
{
	struct valgrind_place *place;
	struct dhat *h = ctx;
	int64_t n = 0;

	if (v->depth >= 2 && json_is(v, 0, "pps"))
		return take_point(h, v);
	if (v->depth == 2 && json_is(v, 0, "ftbl") && v->type == JSON_STRING) {
		place = chunks_add(&h->places);
		if (!place)
			return -ENOMEM;
		*place = valgrind_place(h->d, v->text);
		return 0;
	}
	if (v->depth != 1)
		return 0;
	json_integer(v, 1, &n);
	if (json_is(v, 0, "dhatFileVersion"))
		h->version = n;
	else if (json_is(v, 0, "te"))
		h->end = n;
	else if (json_is(v, 0, "tg"))
		h->peak = n;
	else if (json_is(v, 0, "pid"))
		h->pid = n;
	else if (json_is(v, 0, "tu"))
		json_copy_text(h->unit, sizeof(h->unit), v);
	else if (json_is(v, 0, "mode"))
		json_copy_text(h->mode, sizeof(h->mode), v);
	else if (json_is(v, 0, "cmd"))
		json_copy_text(h->command, sizeof(h->command), v);
	return 0;
}

/* --- what came of it -------------------------------------------------------------------------- */

/* Nanoseconds that a unit of its time is; instructions and other units are shown as if each were one. */
static int64_t time_scale(const struct dhat *h)
{
	static const struct {
		const char *unit;
		int64_t ns;
	} known[] = { { "µs", 1000 }, { "us", 1000 }, { "ms", 1000000 }, { "s", 1000000000 } };

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (strcmp(h->unit, known[i].unit) == 0)
			return known[i].ns;
	return 1;
}

static int64_t times(int64_t n, int64_t scale)
{
	int64_t product;

	return __builtin_mul_overflow(n, scale, &product) ? INT64_MAX : product;
}

/* The values that the file has, as value types: their places in the file's order. */
static uint32_t find_types(const struct dhat *h, struct value_type *types, uint32_t *which)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < N_VALUES; i++) {
		if (!h->has[i] && i != TOTAL_BYTES)
			continue;
		which[n] = i;
		types[n++] = (struct value_type){ dhat_values[i].name, dhat_values[i].unit };
	}
	/* Its modes of other things have two values: units and events, or bytes and copies. */
	if (n <= 2 && strcmp(h->mode, "ad-hoc") == 0) {
		types[0] = (struct value_type){ "units", "count" };
		types[n - 1] = n == 2 ? (struct value_type){ "events", "count" } : types[0];
	} else if (n <= 2 && strcmp(h->mode, "copy") == 0) {
		types[0] = (struct value_type){ "copied_space", "bytes" };
		types[n - 1] = n == 2 ? (struct value_type){ "copies", "count" } : types[0];
	}
	return n;
}

static int add_points(struct dhat *h, struct profile *p, const uint32_t *which, uint32_t n_types)
{
	_cleanup_(freep) const struct valgrind_place **places = calloc(MAX_FRAMES, sizeof(*places));
	_cleanup_(freep) struct line *lines = calloc(MAX_FRAMES, sizeof(*lines));
	_cleanup_(freep) location_id *frames = calloc(MAX_FRAMES, sizeof(*frames));
	int r = places && lines && frames ? 0 : -ENOMEM;

	for (uint32_t i = 0; r == 0 && i < h->points.n; i++) {
		const struct dhat_point *point = chunks_at(&h->points, i);
		int64_t values[N_VALUES];
		uint32_t n = 0;

		for (uint32_t k = 0; k < point->n; k++) {
			uint32_t at = *(uint32_t *)chunks_at(&h->frames, point->first + k);

			/* 0 is the root of all. */
			if (at && at < h->places.n)
				places[n++] = chunks_at(&h->places, at);
			else
				h->bad += at != 0;
		}
		for (uint32_t k = 0; k < n_types; k++)
			values[k] = which[k] == LIFETIME
					    ? times(point->values[LIFETIME], time_scale(h))
					    : point->values[which[k]];
		r = profile_add(p, valgrind_stack(h->d, places, n, lines, frames), (labels_id){ 0 },
				values);
	}
	return r;
}

static int set_meta(const struct dhat *h, struct profile *p)
{
	char target[300], peak[100];
	const char *comments[4] = { target, peak };
	int64_t scale = time_scale(h);

	/* What memscope writes there is a title, which begins with the target. */
	snprintf(target, sizeof(target), "%s%.*s", about_prefix(ABOUT_TARGET),
		 (int)(strcmp(h->mode, "memscope-heap") == 0 ? strcspn(h->command, ",")
							     : strlen(h->command)),
		 h->command);
	snprintf(peak, sizeof(peak), "%s%.6f s after the start", about_prefix(ABOUT_PEAK),
		 (double)times(h->peak, scale) / 1e9);
	if (strcmp(h->unit, "instrs") == 0)
		comments[2] = "Times are instructions: 10^9 are shown as a second";
	if (!h->has[PEAK])
		comments[1] = comments[2];
	return profile_set_meta(p, &(struct profile_meta){ .duration_ns = times(h->end, scale),
							   .period_type = { "space", "bytes" },
							   .period = 1,
							   .comments = comments });
}

int dhat_read(struct dict *d, struct input *in, const char *name, struct import_info *info,
	      struct profile **ret_profile, struct err *e)
{
	_cleanup_(dhat_fini) struct dhat h = {
		.d = d,
		.points = CHUNKS_OF(struct dhat_point),
		.frames = CHUNKS_OF(uint32_t),
		.places = CHUNKS_OF(struct valgrind_place),
	};
	_cleanup_(profile_freep) struct profile *p = NULL;
	struct value_type types[N_VALUES];
	uint32_t which[N_VALUES], n;
	char what[160];
	int r = json_walk(in, take, &h, what, sizeof(what));

	if (r == -EBADMSG && !h.points.n)
		return err_set(e, r, "%s: %s", name, what);
	if ((r == 0 || r == -EBADMSG) && h.version != 2)
		return err_set(e, -EBADMSG, "%s: version %" PRId64 " of DHAT's file; 2 is known",
			       name, h.version);
	if (r == -EBADMSG) {
		/* Names come last: of what is cut most have none. */
		snprintf(info->damage, sizeof(info->damage),
			 "%s; the %u stacks before it were kept, with the %u names that are there",
			 what, h.points.n, h.places.n ? h.places.n - 1 : 0);
		r = 0;
	}
	n = find_types(&h, types, which);
	p = profile_new(d, types, n);
	if (r == 0)
		r = p ? add_points(&h, p, which, n) : -ENOMEM;
	if (r == 0)
		r = set_meta(&h, p);
	if (r < 0 || dict_oom(d))
		return err_set(e, -ENOMEM, "%s: out of memory while reading it", name);
	if (h.bad && !info->damage[0])
		snprintf(info->damage, sizeof(info->damage),
			 "%" PRIu64 " frames that its table of names does not have were left out",
			 h.bad);
	*ret_profile = TAKE_PTR(p);
	return 0;
}
