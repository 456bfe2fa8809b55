/*
 * The Firefox Profiler's processed format (firefox-devtools/profiler, docs-developer/CHANGELOG-formats.md,
 * src/types/profile.ts), JSON: tables of columns, which all threads share (version 56 on) or each thread has,
 *
 *   {"meta": {"interval": 1, "startTime": 1700000000000, "preprocessedProfileVersion": 66, "product": …},
 *    "shared": {"stackTable": {"frame": […], "prefixOffset": […] (or "prefix": [null, 0, …])},
 *               "frameTable": {"func": […], "line": […]}, "funcTable": {"name": […], "resource": […], "source": […]},
 *               "resourceTable": {"name": […]}, "sources": {"filename": […]}, "stringArray": […]},
 *    "threads": [{"name": …, "processName": …, "pid": "12", "tid": 13,
 *                 "samples": {"stack": […], "time": […] (or "timeDeltas": […]), "weight": […], "weightType": "samples"}}]}
 *
 * and of each thread the samples: a time in milliseconds, a stack, and a weight in samples, milliseconds or bytes, each of which is a value
 * type here. Markers, counters and native allocations are left out. Older versions differ in funcTable (fileName for source).
 * Memory is that of the tables, and 16 bytes for each sample of a thread.
 */
#include "base/chunks.h"
#include "base/strbuf.h"
#include "import/json_walk.h"
#include "import/readers.h"
#include "model/about.h"
#include "model/sample_times.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* Columns of tables, and of samples, by their keys; numbers in them from 0. */
enum column {
	STACK_FRAME,
	STACK_PREFIX,
	STACK_PREFIX_OFFSET,
	FRAME_FUNC,
	FRAME_LINE,
	FUNC_NAME,
	FUNC_RESOURCE,
	FUNC_SOURCE,
	FUNC_FILE,
	RESOURCE_NAME,
	SOURCE_NAME,
	N_COLUMNS
};

static const struct {
	const char *table, *key;
} columns[N_COLUMNS] = {
	[STACK_FRAME] = { "stackTable", "frame" },
	[STACK_PREFIX] = { "stackTable", "prefix" },
	[STACK_PREFIX_OFFSET] = { "stackTable", "prefixOffset" },
	[FRAME_FUNC] = { "frameTable", "func" },
	[FRAME_LINE] = { "frameTable", "line" },
	[FUNC_NAME] = { "funcTable", "name" },
	[FUNC_RESOURCE] = { "funcTable", "resource" },
	[FUNC_SOURCE] = { "funcTable", "source" },
	[FUNC_FILE] = { "funcTable", "fileName" },
	[RESOURCE_NAME] = { "resourceTable", "name" },
	[SOURCE_NAME] = { "sources", "filename" },
};

#define NONE UINT32_MAX

struct ff_tables {
	struct chunks columns[N_COLUMNS]; /* uint32_t; NONE: null, or below 0 */
	struct chunks strings;            /* string_id */
};

struct ff_sample {
	uint32_t stack;
	int64_t ns, value;
};

enum { COUNTS, TIMES, BYTES, N_UNITS };

static const struct value_type unit_types[N_UNITS] = {
	{ "samples", "count" },
	{ "time", "nanoseconds" },
	{ "space", "bytes" },
};

struct ff_thread {
	char name[100], process[100];
	int64_t pid, tid;
	uint32_t first, n; /* its samples */
	int unit;
	uint32_t tables; /* whose they are: 1 + number of those that threads have */
};

struct firefox {
	struct dict *d;
	struct ff_tables shared;
	struct chunks own;                     /* struct ff_tables */
	struct chunks threads;                 /* struct ff_thread */
	struct chunks samples;                 /* struct ff_sample */
	uint32_t at_stack, at_time, at_weight; /* of the thread that is read */
	int64_t delta_ns, version;
	int64_t start_ms;
	char product[256];
	uint64_t bad, lost_frames;
};

static void tables_fini(struct ff_tables *t)
{
	for (int i = 0; i < N_COLUMNS; i++)
		chunks_free(&t->columns[i]);
	chunks_free(&t->strings);
}

static void firefox_fini(struct firefox *x)
{
	tables_fini(&x->shared);
	for (uint32_t i = 0; i < x->own.n; i++)
		tables_fini(chunks_at(&x->own, i));
	chunks_free(&x->own);
	chunks_free(&x->threads);
	chunks_free(&x->samples);
}

static void tables_init(struct ff_tables *t)
{
	for (int i = 0; i < N_COLUMNS; i++)
		t->columns[i] = CHUNKS_OF(uint32_t);
	t->strings = CHUNKS_OF(string_id);
}

bool firefox_recognise(struct bytes data)
{
	static const char key[] = "\"preprocessedProfileVersion\"";

	return json_is_object(data) && memmem(data.data, data.len, key, sizeof(key) - 1);
}

/* --- the document ----------------------------------------------------------------------------- */

/* An element of a table of `t`; `at` is where the way names the table. */
static int take_table(struct firefox *x, struct ff_tables *t, const struct json_value *v,
		      uint32_t at)
{
	uint32_t *element;
	string_id *text;
	int64_t n;

	if (v->depth == at + 2 && v->type == JSON_STRING &&
	    (json_is(v, at, "stringArray") || json_is(v, at, "stringTable"))) {
		text = chunks_add(&t->strings);
		if (!text)
			return -ENOMEM;
		*text = dict_string_n(x->d, (const char *)v->text.data, v->text.len);
		return 0;
	}
	if (v->depth != at + 3 || v->type == JSON_BEGIN || v->type == JSON_END)
		return 0;
	for (int i = 0; i < N_COLUMNS; i++) {
		if (!json_is(v, at, columns[i].table) || !json_is(v, at + 1, columns[i].key))
			continue;
		element = chunks_add(&t->columns[i]);
		if (!element)
			return -ENOMEM;
		*element = json_integer(v, 1, &n) && n >= 0 && n < NONE ? (uint32_t)n : NONE;
		break;
	}
	return 0;
}

/* The sample at `at` of the thread, made when the first of its columns has it. */
static struct ff_sample *sample_at(struct firefox *x, struct ff_thread *t, uint32_t at)
{
	struct ff_sample *s;

	if (at > t->n)
		return NULL;
	if (at == t->n) {
		s = chunks_add(&x->samples);
		if (!s)
			return NULL;
		*s = (struct ff_sample){ .stack = NONE, .ns = -1, .value = INT64_MIN };
		t->n++;
	}
	return chunks_at(&x->samples, t->first + at);
}

/* threads[i].samples … */
static int take_samples(struct firefox *x, struct ff_thread *t, const struct json_value *v)
{
	struct ff_sample *s;
	int64_t n = 0;

	if (v->depth == 4 && json_is(v, 3, "weightType") && v->type == JSON_STRING)
		t->unit = v->text.len == 5 && memcmp(v->text.data, "bytes", 5) == 0 ? BYTES
			  : v->text.len == 10 && memcmp(v->text.data, "tracing-ms", 10) == 0
				  ? TIMES
				  : COUNTS;
	if (v->depth != 5 || v->type == JSON_BEGIN || v->type == JSON_END)
		return 0;
	if (json_is(v, 3, "stack")) {
		s = sample_at(x, t, x->at_stack++);
		if (s)
			s->stack =
				json_integer(v, 1, &n) && n >= 0 && n < NONE ? (uint32_t)n : NONE;
	} else if (json_is(v, 3, "time") || json_is(v, 3, "timeDeltas")) {
		s = sample_at(x, t, x->at_time++);
		if (!json_integer(v, 1000000, &n))
			x->bad += v->type != JSON_NULL;
		if (json_is(v, 3, "timeDeltas"))
			n = x->delta_ns =
				__builtin_add_overflow(x->delta_ns, n, &n) ? INT64_MAX : n;
		if (s)
			s->ns = n;
	} else if (json_is(v, 3, "weight")) {
		s = sample_at(x, t, x->at_weight++);
		/* Its unit may be told of behind it: in millionths, which a value of 2^43 has room for. */
		if (s && json_integer(v, 1000000, &n))
			s->value = n;
	} else {
		return 0;
	}
	return s ? 0 : -ENOMEM;
}

/* threads[i] … */
static int take_thread(struct firefox *x, const struct json_value *v)
{
	struct ff_tables *own;
	struct ff_thread *t;
	char number[32] = "";

	if (v->depth == 2 && v->type == JSON_BEGIN) {
		t = chunks_add(&x->threads);
		if (!t)
			return -ENOMEM;
		t->first = x->samples.n;
		x->at_stack = x->at_time = x->at_weight = 0;
		x->delta_ns = 0;
	}
	if (v->depth < 3 || !x->threads.n)
		return 0;
	t = chunks_at(&x->threads, x->threads.n - 1);
	if (v->depth == 3 && json_is(v, 2, "name")) {
		json_copy_text(t->name, sizeof(t->name), v);
	} else if (v->depth == 3 && json_is(v, 2, "processName")) {
		json_copy_text(t->process, sizeof(t->process), v);
	} else if (v->depth == 3 && json_is(v, 2, "tid")) {
		json_integer(v, 1, &t->tid);
	} else if (v->depth == 3 && json_is(v, 2, "pid")) {
		json_copy_text(number, sizeof(number), v);
		t->pid = strtoll(number, NULL, 10);
		json_integer(v, 1, &t->pid);
	} else if (json_is(v, 2, "samples")) {
		return take_samples(x, t, v);
	} else {
		if (!t->tables && v->depth == 3 && v->type == JSON_BEGIN &&
		    (json_is(v, 2, "stackTable") || json_is(v, 2, "frameTable") ||
		     json_is(v, 2, "funcTable") || json_is(v, 2, "stringArray") ||
		     json_is(v, 2, "stringTable"))) {
			own = chunks_add(&x->own);
			if (!own)
				return -ENOMEM;
			tables_init(own);
			t->tables = x->own.n;
		}
		if (t->tables)
			return take_table(x, chunks_at(&x->own, t->tables - 1), v, 2);
	}
	return 0;
}

static int take(void *ctx, const struct json_value *v)
{
	struct firefox *x = ctx;
	int64_t n;

	if (json_is(v, 0, "shared"))
		return take_table(x, &x->shared, v, 1);
	if (json_is(v, 0, "threads") && json_in_array(v, 1))
		return take_thread(x, v);
	if (v->depth != 2 || !json_is(v, 0, "meta"))
		return 0;
	if (json_is(v, 1, "product"))
		json_copy_text(x->product, sizeof(x->product), v);
	else if (json_is(v, 1, "startTime") && json_integer(v, 1, &n))
		x->start_ms = n;
	else if (json_is(v, 1, "preprocessedProfileVersion") && json_integer(v, 1, &n))
		x->version = n;
	return 0;
}

/* --- what came of it -------------------------------------------------------------------------- */

static uint32_t cell(const struct ff_tables *t, enum column c, uint32_t i)
{
	return i < t->columns[c].n ? *(uint32_t *)chunks_at(&t->columns[c], i) : NONE;
}

static string_id string_at(const struct ff_tables *t, uint32_t i)
{
	return i < t->strings.n ? *(string_id *)chunks_at(&t->strings, i) : (string_id){ 0 };
}

static location_id place_of(struct firefox *x, const struct ff_tables *t, uint32_t frame)
{
	uint32_t func = cell(t, FRAME_FUNC, frame), number = cell(t, FRAME_LINE, frame);
	struct line line = {
		.function = string_at(t, cell(t, FUNC_NAME, func)),
		.file = string_at(t, cell(t, SOURCE_NAME, cell(t, FUNC_SOURCE, func))),
		.line = number == NONE ? 0 : number,
	};
	struct module m = { .kind = MODULE_ELF,
			    .path = string_at(
				    t, cell(t, RESOURCE_NAME, cell(t, FUNC_RESOURCE, func))) };
	const char *path = dict_str(x->d, m.path);

	if (!line.file.ix)
		line.file = string_at(t, cell(t, FUNC_FILE, func));
	if (!line.function.ix)
		line.function = dict_string(x->d, "[unknown]");
	if (strcmp(path, "[kernel]") == 0)
		m.kind = MODULE_KERNEL;
	else if (strcmp(path, "[vdso]") == 0)
		m.kind = MODULE_VDSO;
	else if (path[0] == '[')
		m.kind = MODULE_LANG;
	return dict_location_lines(x->d, m.path.ix ? dict_module(x->d, &m) : (module_id){ 0 }, 0,
				   &line, 1);
}

/* Parents come before their children; *ret_stacks has one for each row. */
static int make_stacks(struct firefox *x, const struct ff_tables *t, stack_id **ret_stacks)
{
	uint32_t n = t->columns[STACK_FRAME].n;
	_cleanup_(freep) stack_id *stacks = calloc(n + 1ul, sizeof(*stacks));

	if (!stacks)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t parent = cell(t, STACK_PREFIX, i), off = cell(t, STACK_PREFIX_OFFSET, i);
		stack_id below = { 0 };

		if (off != NONE && off)
			parent = off <= i ? i - off : NONE;
		x->lost_frames += (off != NONE && off > i) || (parent != NONE && parent >= i);
		if (parent < i)
			below = stacks[parent];
		stacks[i] = dict_stack_push(x->d, below, place_of(x, t, cell(t, STACK_FRAME, i)));
	}
	*ret_stacks = TAKE_PTR(stacks);
	return 0;
}

static labels_id labels_of(struct firefox *x, const struct ff_thread *t)
{
	struct label labels[4];
	uint32_t n = 0;

	if (t->process[0] && strcmp(t->process, "all") != 0)
		labels[n++] = (struct label){ .key = dict_string(x->d, "comm"),
					      .str = dict_string(x->d, t->process) };
	if (t->name[0] && strcmp(t->name, t->process) != 0 && strcmp(t->name, "all") != 0)
		labels[n++] = (struct label){ .key = dict_string(x->d, "thread"),
					      .str = dict_string(x->d, t->name) };
	if (t->pid > 0)
		labels[n++] = (struct label){ .key = dict_string(x->d, "pid"), .num = t->pid };
	/* Where memscope knows no process, it numbers threads. */
	if (t->tid > 0 && t->pid > 0)
		labels[n++] = (struct label){ .key = dict_string(x->d, "tid"), .num = t->tid };
	return dict_labels(x->d, labels, n);
}

static int64_t in_units(const struct ff_sample *s, int unit)
{
	if (s->value == INT64_MIN)
		return unit == COUNTS ? 1 : 0;
	/* Millionths of a millisecond are nanoseconds. */
	return unit == TIMES ? s->value : (s->value + (s->value < 0 ? -500000 : 500000)) / 1000000;
}

struct ff_types {
	struct value_type types[N_UNITS];
	uint32_t n, of_unit[N_UNITS]; /* 1 + its number */
};

static int add_thread(struct firefox *x, const struct ff_thread *t, const stack_id *stacks,
		      uint32_t n_stacks, const struct ff_types *types, struct profile *p,
		      struct sample_times *times, int64_t *last_ns)
{
	uint32_t type = types->of_unit[t->unit] - 1, number;
	labels_id labels = labels_of(x, t);
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < t->n; i++) {
		const struct ff_sample *s = chunks_at(&x->samples, t->first + i);
		int64_t values[N_UNITS] = { 0 };

		values[type] = in_units(s, t->unit);
		/* Without a stack: the thread was not sampled there, or has none. */
		if (s->stack == NONE && s->value == INT64_MIN)
			continue;
		x->lost_frames += s->stack != NONE && s->stack >= n_stacks;
		r = profile_add_to(p, s->stack < n_stacks ? stacks[s->stack] : (stack_id){ 0 },
				   labels, values, &number);
		if (r == 0)
			r = sample_times_add(times, number, s->ns > 0 ? (uint64_t)s->ns : 0,
					     values);
		if (s->ns > *last_ns)
			*last_ns = s->ns;
	}
	return r;
}

static void find_types(const struct firefox *x, struct ff_types *types)
{
	for (uint32_t i = 0; i < x->threads.n; i++) {
		int unit = ((const struct ff_thread *)chunks_at(&x->threads, i))->unit;

		if (types->of_unit[unit])
			continue;
		types->types[types->n] = unit_types[unit];
		types->of_unit[unit] = ++types->n;
	}
}

static int add_threads(struct firefox *x, const struct ff_types *types, struct profile *p)
{
	static const uint32_t timed[] = { 0, 1 };
	uint32_t n_timed = types->n < SAMPLE_TIMES_TYPES ? types->n : SAMPLE_TIMES_TYPES;
	_cleanup_(sample_times_freep) struct sample_times *times =
		sample_times_new(timed, n_timed, SAMPLE_TIMES_FINE_NS, SAMPLE_TIMES_MAX);
	_cleanup_(freep) stack_id *shared = NULL;
	int64_t last_ns = 0;
	int r = times ? make_stacks(x, &x->shared, &shared) : -ENOMEM;
	char target[300];
	const char *comments[2] = { target };

	for (uint32_t i = 0; r == 0 && i < x->threads.n; i++) {
		const struct ff_thread *t = chunks_at(&x->threads, i);
		_cleanup_(freep) stack_id *own = NULL;
		const struct ff_tables *tables =
			t->tables ? chunks_at(&x->own, t->tables - 1) : &x->shared;

		if (t->tables)
			r = make_stacks(x, tables, &own);
		if (r == 0)
			r = add_thread(x, t, own ? own : shared, tables->columns[STACK_FRAME].n,
				       types, p, times, &last_ns);
	}
	if (r == 0 && profile_n_samples(p))
		profile_set_times(p, TAKE_PTR(times));
	/* What memscope writes there is a title, which begins with the target. */
	snprintf(target, sizeof(target), "%s%.*s", about_prefix(ABOUT_TARGET),
		 (int)strcspn(x->product, ","), x->product);
	if (r == 0)
		r = profile_set_meta(
			p, &(struct profile_meta){
				   .time_ns = x->start_ms > 0 && x->start_ms < INT64_MAX / 1000000
						      ? x->start_ms * 1000000
						      : 0,
				   .duration_ns = last_ns,
				   .period_type = { "", "" },
				   .comments = x->product[0] ? comments : NULL });
	return r;
}

int firefox_read(struct dict *d, struct input *in, const char *name, struct import_info *info,
		 struct profile **ret_profile, struct err *e)
{
	_cleanup_(firefox_fini) struct firefox x = {
		.d = d,
		.own = CHUNKS_OF(struct ff_tables),
		.threads = CHUNKS_OF(struct ff_thread),
		.samples = CHUNKS_OF(struct ff_sample),
	};
	_cleanup_(profile_freep) struct profile *p = NULL;
	struct ff_types types = { 0 };
	char what[160];
	int r;

	tables_init(&x.shared);
	r = json_walk(in, take, &x, what, sizeof(what));
	if (r == -EBADMSG && x.samples.n) {
		snprintf(info->damage, sizeof(info->damage),
			 "%s; the %u samples before it were kept", what, x.samples.n);
		r = 0;
	}
	if (r == -EBADMSG)
		return err_set(e, r, "%s: %s", name, what);
	find_types(&x, &types);
	if (r == 0 && !types.n)
		return err_set(e, -EBADMSG, "%s: the Firefox Profiler's file without a thread",
			       name);
	if (r == 0)
		p = profile_new(d, types.types, types.n);
	if (r == 0)
		r = p ? add_threads(&x, &types, p) : -ENOMEM;
	if (r < 0 || dict_oom(d))
		return err_set(e, -ENOMEM, "%s: out of memory while reading it", name);
	if (x.bad + x.lost_frames && !info->damage[0])
		snprintf(info->damage, sizeof(info->damage),
			 "%" PRIu64 " numbers and %" PRIu64
			 " frames that make no sense were left out",
			 x.bad, x.lost_frames);
	*ret_profile = TAKE_PTR(p);
	return 0;
}
