/*
 * The Firefox Profiler's processed format, version 66 (firefox-devtools/profiler, docs-developer/CHANGELOG-formats.md
 * and src/types/profile.ts): tables of columns that all threads share, and of each thread the samples, each a time, a
 * stack and a weight. One value type: counts are samples, times are milliseconds, bytes are bytes.
 *
 * How exact the times are: timed_events.h. Where a profile has none, call tree and flame graph can be looked at, its
 * timeline means nothing, and its name says so.
 */
#include "base/chunks.h"
#include "base/hash.h"
#include "render/formats/code_path.h"
#include "render/formats/text.h"
#include "render/formats/timed_events.h"
#include "render/formats/title.h"
#include "render/formats/writers.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { FORMAT_VERSION = 66, GECKO_VERSION = 30 };

/* Of one bin and stack; a larger count is one sample of that weight. */
enum { MOST_APART = 100 };

/* Categories: one per kind of code (frame.h), the first of them is grey, as the format wants it. */
static const struct {
	const char *name, *colour;
} categories[] = {
	{ "Other", "grey" },
	{ "Native code", "yellow" },
	{ "Kernel", "orange" },
	{ "Interpreted code", "blue" },
};
enum { CATEGORY_OTHER, CATEGORY_NATIVE, CATEGORY_KERNEL, CATEGORY_INTERPRETED, N_CATEGORIES };

struct text_row {
	const char *key;
	uint32_t ix;
	UT_hash_handle hh;
};

struct function_row {
	struct {
		string_id name, file;
		const char *module;
	} key;
	uint32_t ix, name, module, file; /* module and file: 1 + number, 0: none */
	UT_hash_handle hh;
};

struct frame_row {
	struct {
		uint32_t function, line, category;
	} key;
	uint32_t ix;
	UT_hash_handle hh;
};

struct stack_row {
	struct {
		uint32_t parent, frame; /* parent: 1 + number, 0: none */
	} key;
	uint32_t ix;
	UT_hash_handle hh;
};

struct thread_row {
	labels_id key;
	uint32_t ix;
	UT_hash_handle hh;
};

struct event {
	uint32_t thread, stack; /* stack: 1 + number, 0: none */
	double ms, weight;
};

struct firefox {
	const struct profile *p;
	struct shown shown;
	struct sink *out;
	struct strbuf text;
	struct chunks strings, modules, files, functions, frames, stacks, threads;
	struct text_row *by_text, *by_module, *by_file;
	struct function_row *by_function;
	struct frame_row *by_frame;
	struct stack_row *by_stack;
	struct thread_row *by_thread;
	uint32_t *stack_of; /* by sample: as event.stack */
	struct event *events;
	struct timed_events timed;
	double scale; /* a value times this is the weight */
	bool counts;
	bool oom;
};

static void firefox_fini(struct firefox *x)
{
	HASH_CLEAR(hh, x->by_text);
	HASH_CLEAR(hh, x->by_module);
	HASH_CLEAR(hh, x->by_file);
	HASH_CLEAR(hh, x->by_function);
	HASH_CLEAR(hh, x->by_frame);
	HASH_CLEAR(hh, x->by_stack);
	HASH_CLEAR(hh, x->by_thread);
	chunks_free(&x->strings);
	chunks_free(&x->modules);
	chunks_free(&x->files);
	chunks_free(&x->functions);
	chunks_free(&x->frames);
	chunks_free(&x->stacks);
	chunks_free(&x->threads);
	free(x->stack_of);
	free(x->events);
	timed_events_fini(&x->timed);
	strbuf_free(&x->text);
}

/* The row of `*keyptr` in a table of rows with `key` and `ix`; NULL, and x->oom, when memory ran out. */
#define row_of(x, head, rows, keyptr)                                                              \
	({                                                                                         \
		__typeof__(head) row_;                                                             \
		HASH_FIND(hh, head, keyptr, sizeof(row_->key), row_);                              \
		if (!row_ && (row_ = chunks_add(rows))) {                                          \
			memcpy(&row_->key, keyptr, sizeof(row_->key));                             \
			row_->ix = (rows)->n - 1;                                                  \
			HASH_ADD(hh, head, key, sizeof(row_->key), row_);                          \
			if (!hash_added(row_))                                                     \
				row_ = NULL;                                                       \
		}                                                                                  \
		(x)->oom |= !row_;                                                                 \
		row_;                                                                              \
	})

/* Equal texts of one dict have equal addresses. */
static uint32_t string_number(struct firefox *x, const char *text)
{
	const struct text_row *row = row_of(x, x->by_text, &x->strings, &text);

	return row ? row->ix : 0;
}

static uint32_t function_number(struct firefox *x, const struct code_function *f)
{
	struct function_row probe, *row;
	const char *file = dict_str(profile_dict(x->p), f->file);

	memset(&probe, 0, sizeof(probe));
	probe.key.name = f->name;
	probe.key.file = f->file;
	probe.key.module = f->module;
	row = row_of(x, x->by_function, &x->functions, &probe.key);
	if (!row)
		return 0;
	if (row->ix + 1 == x->functions.n) { /* new, or the last one again */
		row->name = string_number(x, dict_str(profile_dict(x->p), f->name));
		if (*f->module) {
			const struct text_row *of =
				row_of(x, x->by_module, &x->modules, &f->module);

			row->module = of ? of->ix + 1 : 0;
		}
		if (*file) {
			const struct text_row *of = row_of(x, x->by_file, &x->files, &file);

			row->file = of ? of->ix + 1 : 0;
		}
	}
	return row->ix;
}

static uint32_t category_of(enum frame_kind kind, const char *module)
{
	if (strcmp(module, "[kernel]") == 0)
		return CATEGORY_KERNEL;
	return kind == FRAME_LANG                            ? CATEGORY_INTERPRETED
	       : kind == FRAME_USER || kind == FRAME_INLINED ? CATEGORY_NATIVE
							     : CATEGORY_OTHER;
}

static uint32_t stack_number(struct firefox *x, const struct code_path *path)
{
	uint32_t parent = 0;

	for (uint32_t k = 0; k < path->n && !x->oom; k++) {
		const struct code_place *at = &path->places[k];
		struct frame_row frame, *f;
		struct stack_row stack, *s;

		memset(&frame, 0, sizeof(frame));
		frame.key.function = function_number(x, &at->function);
		frame.key.line = at->line;
		frame.key.category = category_of(at->kind, at->function.module);
		f = row_of(x, x->by_frame, &x->frames, &frame.key);
		memset(&stack, 0, sizeof(stack));
		stack.key.parent = parent;
		stack.key.frame = f ? f->ix : 0;
		s = row_of(x, x->by_stack, &x->stacks, &stack.key);
		parent = s ? s->ix + 1 : 0;
	}
	return parent;
}

static int gather(struct firefox *x)
{
	_cleanup_(code_path_fini) struct code_path path = { 0 };
	uint32_t *stack_of = calloc(profile_n_samples(x->p) + 1ul, sizeof(*stack_of));
	int r = timed_events_make(x->p, x->shown.type, x->counts ? MOST_APART : 0, &x->timed);

	x->stack_of = stack_of;
	x->events = calloc(x->timed.n + 1, sizeof(*x->events));
	if (!stack_of || !x->events)
		return -ENOMEM;
	for (size_t i = 0; r == 0 && !x->oom && i < x->timed.n; i++) {
		const struct timed_event *e = &x->timed.all[i];
		struct profile_sample s = profile_sample(x->p, e->sample);
		const struct thread_row *thread = row_of(x, x->by_thread, &x->threads, &s.labels);

		if (!stack_of[e->sample] && s.stack.ix) {
			r = code_path_set(&path, profile_dict(x->p), s.stack);
			stack_of[e->sample] = r == 0 ? stack_number(x, &path) : 0;
		}
		x->events[i] = (struct event){ thread ? thread->ix : 0, stack_of[e->sample],
					       (double)e->ns / 1e6, (double)e->value * x->scale };
	}
	return r < 0 || x->oom || dict_oom(profile_dict(x->p)) ? -ENOMEM : 0;
}

static int by_thread_and_time(const void *a, const void *b)
{
	const struct event *x = a, *y = b;

	if (x->thread != y->thread)
		return x->thread < y->thread ? -1 : 1;
	if (x->ms != y->ms)
		return x->ms < y->ms ? -1 : 1;
	return (x->stack > y->stack) - (x->stack < y->stack);
}

static void flush(struct firefox *x)
{
	if (x->text.len < 1 << 16 || strbuf_oom(&x->text))
		return;
	sink_write(x->out, x->text.s, x->text.len);
	strbuf_reset(&x->text);
}

static void put_string(struct firefox *x, const char *s)
{
	strbuf_putc(&x->text, '"');
	text_add(&x->text, TEXT_JSON, s, UINT32_MAX);
	strbuf_putc(&x->text, '"');
	flush(x);
}

/* "name":[…], of n elements, each written by `body` with `i`. */
#define put_column(x, name, n, body)                                                               \
	do {                                                                                       \
		strbuf_printf(&(x)->text, "\"%s\":[", name);                                       \
		for (uint32_t i = 0; i < (n); i++) {                                               \
			if (i)                                                                     \
				strbuf_putc(&(x)->text, ',');                                      \
			body;                                                                      \
			flush(x);                                                                  \
		}                                                                                  \
		strbuf_puts(&(x)->text, "],\n");                                                   \
	} while (0)
#define put_same(x, name, n, value) put_column(x, name, n, strbuf_puts(&(x)->text, value))
#define put_number(x, number)       strbuf_printf(&(x)->text, "%" PRIu32, number)
#define put_number_or(x, number, none)                                                             \
	((number) ? put_number(x, (number)-1) : strbuf_puts(&(x)->text, none))

static void put_functions(struct firefox *x)
{
	uint32_t n = x->functions.n;
#define F ((const struct function_row *)chunks_at(&x->functions, i))

	strbuf_puts(&x->text, "\"funcTable\":{");
	put_column(x, "name", n, put_number(x, F->name));
	put_same(x, "isJS", n, "false");
	put_same(x, "relevantForJS", n, "false");
	put_column(x, "resource", n, put_number_or(x, F->module, "-1"));
	put_column(x, "source", n, put_number_or(x, F->file, "null"));
	put_same(x, "lineNumber", n, "null");
	put_same(x, "columnNumber", n, "null");
	put_same(x, "originalLocation", n, "null");
	strbuf_printf(&x->text, "\"length\":%" PRIu32 "},\n", n);
#undef F
}

static void put_frames(struct firefox *x)
{
	uint32_t n = x->frames.n;
#define F ((const struct frame_row *)chunks_at(&x->frames, i))

	strbuf_puts(&x->text, "\"frameTable\":{");
	put_same(x, "address", n, "-1");
	put_same(x, "inlineDepth", n, "0");
	put_column(x, "category", n, put_number(x, F->key.category));
	put_same(x, "subcategory", n, "0");
	put_column(x, "func", n, put_number(x, F->key.function));
	put_same(x, "nativeSymbol", n, "null");
	put_same(x, "innerWindowID", n, "0");
	put_column(x, "line", n,
		   F->key.line ? put_number(x, F->key.line) : strbuf_puts(&x->text, "null"));
	put_same(x, "column", n, "null");
	put_same(x, "originalLocation", n, "null");
	strbuf_printf(&x->text, "\"length\":%" PRIu32 "},\n", n);
#undef F
}

static void put_shared(struct firefox *x)
{
#define S          ((const struct stack_row *)chunks_at(&x->stacks, i))
#define TEXT(rows) ((const struct text_row *)chunks_at(rows, i))->key
	uint32_t modules = x->modules.n, files = x->files.n;

	/* Names of modules are strings, too. */
	for (uint32_t i = 0; i < modules; i++)
		string_number(x, TEXT(&x->modules));
	for (uint32_t i = 0; i < files; i++)
		string_number(x, TEXT(&x->files));
	strbuf_puts(&x->text, "\"shared\":{\"stackTable\":{");
	put_column(x, "frame", x->stacks.n, put_number(x, S->key.frame));
	put_column(x, "prefixOffset", x->stacks.n,
		   put_number(x, S->key.parent ? i + 1 - S->key.parent : 0));
	strbuf_printf(&x->text, "\"length\":%" PRIu32 "},\n", x->stacks.n);
	put_frames(x);
	put_functions(x);
	strbuf_puts(&x->text, "\"resourceTable\":{");
	put_same(x, "lib", modules, "null");
	put_column(x, "name", modules, put_number(x, string_number(x, TEXT(&x->modules))));
	put_same(x, "host", modules, "null");
	put_same(x, "type", modules, "1");
	strbuf_printf(&x->text, "\"length\":%" PRIu32 "},\n", modules);
	strbuf_puts(&x->text, "\"nativeSymbols\":{\"libIndex\":[],\"address\":[],\"name\":[],"
			      "\"functionSize\":[],\"length\":0},\n\"sources\":{");
	put_same(x, "id", files, "null");
	put_column(x, "filename", files, put_number(x, string_number(x, TEXT(&x->files))));
	put_same(x, "startLine", files, "1");
	put_same(x, "startColumn", files, "1");
	put_same(x, "sourceMapURL", files, "null");
	put_same(x, "content", files, "null");
	strbuf_printf(&x->text, "\"length\":%" PRIu32 "},\n", files);
	strbuf_puts(
		&x->text,
		"\"sourceLocationTable\":{\"source\":[],\"line\":[],\"column\":[],\"length\":0},\n");
	strbuf_puts(&x->text, "\"stringArray\":[");
	for (uint32_t i = 0; i < x->strings.n; i++) {
		if (i)
			strbuf_putc(&x->text, ',');
		put_string(x, TEXT(&x->strings));
	}
	strbuf_puts(&x->text, "]},\n");
#undef TEXT
#undef S
}

static const char *text_of(const struct firefox *x, labels_id labels, const char *key)
{
	const struct dict *d = profile_dict(x->p);
	const struct label *l = dict_label_find(d, labels, key);

	return l && l->str.ix ? dict_str(d, l->str) : NULL;
}

static int64_t number_of(const struct firefox *x, labels_id labels, const char *key)
{
	const struct label *l = dict_label_find(profile_dict(x->p), labels, key);

	return l ? l->num : 0;
}

static const char *weight_type(const struct firefox *x)
{
	return x->counts ? "samples" : strcmp(x->shown.unit, "bytes") == 0 ? "bytes" : "tracing-ms";
}

/* Events [at, to) are this thread's. */
static void put_thread(struct firefox *x, const struct thread_row *t, size_t at, size_t to)
{
	const struct event *events = x->events + at;
	uint32_t n = (uint32_t)(to - at);
	int64_t pid = number_of(x, t->key, "pid"), tid = number_of(x, t->key, "tid");
	const char *comm = text_of(x, t->key, "comm"), *name = text_of(x, t->key, "thread");

	strbuf_puts(&x->text,
		    "{\"processType\":\"default\",\"processStartupTime\":0,"
		    "\"processShutdownTime\":null,\"registerTime\":0,\"unregisterTime\":null,"
		    "\"pausedRanges\":[],\"name\":");
	put_string(x, name ? name : comm ? comm : "all");
	strbuf_puts(&x->text, ",\"processName\":");
	put_string(x, comm ? comm : "all");
	strbuf_printf(&x->text,
		      ",\"isMainThread\":%s,\"pid\":\"%" PRId64 "\",\"tid\":%" PRId64
		      ",\n\"samples\":{\"weightType\":\"%s\",",
		      tid == pid ? "true" : "false", pid, tid ? tid : (int64_t)t->ix + 1,
		      weight_type(x));
	put_column(x, "stack", n, put_number_or(x, events[i].stack, "null"));
	put_column(x, "time", n, strbuf_printf(&x->text, "%.3f", events[i].ms));
	put_column(x, "weight", n, strbuf_printf(&x->text, "%.15g", events[i].weight));
	strbuf_printf(&x->text,
		      "\"length\":%" PRIu32
		      "},\n\"markers\":{\"data\":[],\"name\":[],\"startTime\":[],\"endTime\":[],"
		      "\"phase\":[],\"category\":[],\"length\":0}}",
		      n);
}

static void put_threads(struct firefox *x)
{
	strbuf_puts(&x->text, "\"threads\":[");
	for (size_t at = 0, to; at < x->timed.n; at = to) {
		for (to = at; to < x->timed.n && x->events[to].thread == x->events[at].thread; to++)
			;
		strbuf_puts(&x->text, at ? ",\n" : "");
		put_thread(x, chunks_at(&x->threads, x->events[at].thread), at, to);
	}
	strbuf_puts(&x->text, "]}\n");
}

static void put_meta(struct firefox *x, const struct render_opts *opts)
{
	const struct profile_meta *meta = profile_get_meta(x->p);
	struct strbuf title = { 0 };

	title_who_add(&title, x->p, opts, &x->shown, UINT32_MAX);
	if (!x->timed.timed)
		strbuf_puts(&title, " (without times)");
	strbuf_printf(
		&x->text,
		"{\"meta\":{\"interval\":%.6g,\"startTime\":%.3f,\"processType\":0,"
		"\"stackwalk\":1,\"version\":%d,\"preprocessedProfileVersion\":%d,"
		"\"symbolicated\":true,\"markerSchema\":[],\"importedFrom\":\"memscope\",\"product\":",
		x->counts && meta->period > 0 ? (double)meta->period / 1e6 : 1,
		(double)meta->time_ns / 1e6, GECKO_VERSION, FORMAT_VERSION);
	put_string(x, title.s ? title.s : "memscope");
	strbuf_puts(&x->text, ",\"categories\":[");
	for (int i = 0; i < N_CATEGORIES; i++)
		strbuf_printf(&x->text,
			      "%s{\"name\":\"%s\",\"color\":\"%s\",\"subcategories\":[\"Other\"]}",
			      i ? "," : "", categories[i].name, categories[i].colour);
	strbuf_puts(&x->text, "]},\n\"libs\":[],\n");
	x->text.oom |= title.oom;
	strbuf_free(&title);
}

int firefox_write(const struct profile *p, const struct render_opts *opts, struct sink *out,
		  struct err *e)
{
	_cleanup_(firefox_fini) struct firefox x = {
		.p = p,
		.shown = shown_pick(p, opts->value_type),
		.out = out,
		.strings = CHUNKS_OF(struct text_row),
		.modules = CHUNKS_OF(struct text_row),
		.files = CHUNKS_OF(struct text_row),
		.functions = CHUNKS_OF(struct function_row),
		.frames = CHUNKS_OF(struct frame_row),
		.stacks = CHUNKS_OF(struct stack_row),
		.threads = CHUNKS_OF(struct thread_row),
	};
	int r;

	x.counts = strcmp(x.shown.unit, "count") == 0;
	x.scale = strcmp(x.shown.unit, "nanoseconds") == 0 ? 1e-6 : 1;
	r = gather(&x);
	if (r == 0 && !x.timed.n)
		return err_set(e, -ENODATA, "there is nothing to show");
	if (r == 0) {
		qsort(x.events, x.timed.n, sizeof(*x.events), by_thread_and_time);
		put_meta(&x, opts);
		put_shared(&x);
		put_threads(&x);
	}
	if (r < 0 || x.oom || strbuf_oom(&x.text))
		return err_set(e, -ENOMEM, "out of memory for the Firefox Profiler's file");
	sink_write(out, x.text.s, x.text.len);
	return 0;
}
