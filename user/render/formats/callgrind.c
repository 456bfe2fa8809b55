/*
 * Callgrind's profile format 1 (valgrind manual, "Callgrind Format Specification"): for callgrind_annotate and
 * KCachegrind. Functions with their own cost by line, and calls with what the callee cost, every value type an event.
 *
 * What the readers do with a call decides what is written:
 *   - callgrind_annotate books the cost of a call with `calls=0` as the caller's own, so there is always a count of
 *     1; how often a function was called is nothing that samples know. Only where calls themselves are counted (a first
 *     value type "calls"), those of the leaf are.
 *   - It takes the calls into a function for its total, where there are any. So every stack begins with the process,
 *     which nothing calls, and of each function a stack has one call: that into its outermost frame. Totals are then
 *     exact, those of recursive functions too; the calls back into a function that is at work are missing, or cost nothing where
 *     they are counted.
 *   - `fi` and `fe` change the file of a line, not the function: inlined calls are functions of their own here.
 * An event counts up from 0: values below it (of a difference) are left out.
 */
#include "base/chunks.h"
#include "base/hash.h"
#include "render/formats/code_path.h"
#include "render/formats/text.h"
#include "render/formats/title.h"
#include "render/formats/writers.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

struct cg_function {
	struct code_function key;
	uint32_t ix;   /* from 1 */
	uint32_t seen; /* the sample, from 1, that has it already */
	UT_hash_handle hh;
};

/* A line's own cost (callee 0), or that of calls from there. */
struct cost_key {
	uint32_t function, callee, line, callee_line;
};

struct cost {
	struct cost_key key;
	int64_t values[PROFILE_MAX_TYPES];
	int64_t calls; /* of the callee, where it is the leaf; 0: not known */
	UT_hash_handle hh;
};

/* A text that is written once, and by its number after that. */
struct cg_name {
	struct {
		char kind; /* 'o', 'l', 'n': ob, fl, fn */
		const char *text;
	} key;
	uint32_t ix;
	UT_hash_handle hh;
};

struct callgrind {
	const struct profile *p;
	uint32_t n_types;
	bool counts_calls;
	struct sink *out;
	struct strbuf text;
	struct chunks functions, costs;
	struct cg_function *by_key;
	struct cost *by_place;
	struct cg_name *names;
	uint32_t n_names[3];
	const struct cost **sorted;
	int64_t totals[PROFILE_MAX_TYPES];
};

static void callgrind_fini(struct callgrind *c)
{
	HASH_CLEAR(hh, c->by_key);
	HASH_CLEAR(hh, c->by_place);
	hash_free(c->names);
	chunks_free(&c->functions);
	chunks_free(&c->costs);
	free(c->sorted);
	strbuf_free(&c->text);
}

static struct cg_function *function_of(struct callgrind *c, const struct code_function *key)
{
	struct cg_function *f;

	HASH_FIND(hh, c->by_key, key, sizeof(*key), f);
	if (f)
		return f;
	f = chunks_add(&c->functions);
	if (!f)
		return NULL;
	f->key = *key;
	f->ix = c->functions.n;
	HASH_ADD(hh, c->by_key, key, sizeof(f->key), f);
	return hash_added(f) ? f : NULL;
}

static int add_cost(struct callgrind *c, struct cost_key key, const int64_t *values, int64_t calls)
{
	struct cost *at;

	HASH_FIND(hh, c->by_place, &key, sizeof(key), at);
	if (!at) {
		at = chunks_add(&c->costs);
		if (!at)
			return -ENOMEM;
		at->key = key;
		HASH_ADD(hh, c->by_place, key, sizeof(at->key), at);
		if (!hash_added(at))
			return -ENOMEM;
	}
	at->calls += calls;
	for (uint32_t t = 0; t < c->n_types; t++)
		if (values[t] > 0 &&
		    __builtin_add_overflow(at->values[t], values[t], &at->values[t]))
			at->values[t] = INT64_MAX;
	return 0;
}

/* The process that a stack is of, as if it were a function. */
static struct cg_function *process_of(struct callgrind *c, labels_id labels)
{
	struct dict *d = profile_dict(c->p);
	const struct label *comm = dict_label_find(d, labels, "comm");
	struct code_function key = { .module = "[process]" };

	key.name = comm && comm->str.ix ? comm->str : dict_string(d, "all");
	return function_of(c, &key);
}

static int add_sample(struct callgrind *c, uint32_t i, const struct code_path *path)
{
	struct profile_sample s = profile_sample(c->p, i);
	struct cg_function *caller = process_of(c, s.labels);
	static const int64_t none[PROFILE_MAX_TYPES];
	int64_t calls = c->counts_calls && s.values[0] > 0 ? s.values[0] : 0;
	struct cost_key key = { 0 };

	for (uint32_t k = 0; caller && k < path->n; k++) {
		struct cg_function *f = function_of(c, &path->places[k].function);
		int64_t made = k + 1 == path->n ? calls : 0;
		bool again = f && f->seen == i + 1;

		key.function = caller->ix;
		key.callee = f ? f->ix : 0;
		key.callee_line = path->places[k].line;
		/* A call back costs nothing more: the call into the outermost has it. */
		if (!f || ((!again || made) && add_cost(c, key, again ? none : s.values, made) < 0))
			return -ENOMEM;
		f->seen = i + 1;
		key.line = path->places[k].line;
		caller = f;
	}
	if (!caller)
		return -ENOMEM;
	for (uint32_t t = 0; t < c->n_types; t++)
		if (s.values[t] > 0 &&
		    __builtin_add_overflow(c->totals[t], s.values[t], &c->totals[t]))
			c->totals[t] = INT64_MAX;
	key.function = caller->ix;
	key.callee = key.callee_line = 0;
	return add_cost(c, key, s.values, 0);
}

static int compare_costs(const void *a, const void *b)
{
	const struct cost_key *x = &(*(const struct cost *const *)a)->key;
	const struct cost_key *y = &(*(const struct cost *const *)b)->key;

	if (x->function != y->function)
		return x->function < y->function ? -1 : 1;
	if (x->callee != y->callee)
		return x->callee < y->callee ? -1 : 1;
	if (x->line != y->line)
		return x->line < y->line ? -1 : 1;
	return (x->callee_line > y->callee_line) - (x->callee_line < y->callee_line);
}

static int gather(struct callgrind *c)
{
	_cleanup_(code_path_fini) struct code_path path = { 0 };
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < profile_n_samples(c->p); i++) {
		r = code_path_set(&path, profile_dict(c->p), profile_sample(c->p, i).stack);
		if (r == 0)
			r = add_sample(c, i, &path);
	}
	c->sorted = calloc(c->costs.n + 1ul, sizeof(*c->sorted));
	if (r < 0 || !c->sorted || dict_oom(profile_dict(c->p)))
		return -ENOMEM;
	for (uint32_t i = 0; i < c->costs.n; i++)
		c->sorted[i] = chunks_at(&c->costs, i);
	qsort(c->sorted, c->costs.n, sizeof(*c->sorted), compare_costs);
	return 0;
}

/* "fn=(3) name", and "fn=(3)" from then on. `kind`: its second letter's place in the table of numbers. */
static void put_name(struct callgrind *c, const char *what, uint32_t kind, const char *name)
{
	struct cg_name probe, *known;

	memset(&probe, 0, sizeof(probe));
	probe.key.kind = (char)kind;
	probe.key.text = name;
	HASH_FIND(hh, c->names, &probe.key, sizeof(probe.key), known);
	if (known) {
		strbuf_printf(&c->text, "%s=(%" PRIu32 ")\n", what, known->ix);
		return;
	}
	known = hash_new(c->names, key, &probe.key);
	if (!known) {
		c->text.oom = true;
		return;
	}
	known->ix = ++c->n_names[kind];
	strbuf_printf(&c->text, "%s=(%" PRIu32 ") ", what, known->ix);
	text_add(&c->text, TEXT_PLAIN, *name ? name : "???", UINT32_MAX);
	strbuf_putc(&c->text, '\n');
}

enum { NAME_OBJECT, NAME_FILE, NAME_FUNCTION };

static const struct cg_function *function_at(const struct callgrind *c, uint32_t ix)
{
	return chunks_at(&c->functions, ix - 1);
}

static void put_function(struct callgrind *c, const struct cg_function *f, const char *const *what)
{
	const struct dict *d = profile_dict(c->p);

	put_name(c, what[NAME_OBJECT], NAME_OBJECT, f->key.module);
	put_name(c, what[NAME_FILE], NAME_FILE, dict_str(d, f->key.file));
	put_name(c, what[NAME_FUNCTION], NAME_FUNCTION, dict_str(d, f->key.name));
}

static void put_values(struct callgrind *c, uint32_t line, const int64_t *values)
{
	strbuf_printf(&c->text, "%" PRIu32, line);
	for (uint32_t t = 0; t < c->n_types; t++)
		strbuf_printf(&c->text, " %" PRId64, values[t]);
	strbuf_putc(&c->text, '\n');
	if (c->text.len > 1 << 16 && !strbuf_oom(&c->text)) {
		sink_write(c->out, c->text.s, c->text.len);
		strbuf_reset(&c->text);
	}
}

static void put_header(struct callgrind *c, const struct render_opts *opts)
{
	struct shown shown = shown_pick(c->p, -1);
	struct strbuf title = { 0 };

	title_add(&title, c->p, opts, &shown, c->totals[shown.type]);
	strbuf_puts(&c->text, "# callgrind format\nversion: 1\ncreator: memscope\ncmd: ");
	text_add(&c->text, TEXT_PLAIN, title.s ? title.s : "", UINT32_MAX);
	strbuf_puts(&c->text, "\npositions: line\n");
	for (uint32_t t = 0; t < c->n_types; t++)
		strbuf_printf(&c->text, "event: %s : %s in %s\n", profile_type(c->p, t)->name,
			      profile_type(c->p, t)->name, profile_type(c->p, t)->unit);
	strbuf_puts(&c->text, "events:");
	for (uint32_t t = 0; t < c->n_types; t++)
		strbuf_printf(&c->text, " %s", profile_type(c->p, t)->name);
	strbuf_puts(&c->text, "\nsummary:");
	for (uint32_t t = 0; t < c->n_types; t++)
		strbuf_printf(&c->text, " %" PRId64, c->totals[t]);
	strbuf_putc(&c->text, '\n');
	c->text.oom |= title.oom;
	strbuf_free(&title);
}

static void put_costs(struct callgrind *c)
{
	static const char *const own[] = { "ob", "fl", "fn" }, *const called[] = { "cob", "cfi",
										   "cfn" };
	uint32_t function = 0;

	for (uint32_t i = 0; i < c->costs.n; i++) {
		const struct cost *at = c->sorted[i];

		if (at->key.function != function) {
			function = at->key.function;
			strbuf_putc(&c->text, '\n');
			put_function(c, function_at(c, function), own);
		}
		if (at->key.callee) {
			put_function(c, function_at(c, at->key.callee), called);
			strbuf_printf(&c->text, "calls=%" PRId64 " %" PRIu32 "\n",
				      at->calls ? at->calls : 1, at->key.callee_line);
		}
		put_values(c, at->key.line, at->values);
	}
}

int callgrind_write(const struct profile *p, const struct render_opts *opts, struct sink *out,
		    struct err *e)
{
	_cleanup_(callgrind_fini) struct callgrind c = {
		.p = p,
		.n_types = profile_n_types(p),
		.counts_calls = strcmp(profile_type(p, 0)->name, "calls") == 0,
		.out = out,
		.functions = CHUNKS_OF(struct cg_function),
		.costs = CHUNKS_OF(struct cost),
	};
	int r = gather(&c);

	if (r == 0) {
		put_header(&c, opts);
		put_costs(&c);
	}
	if (r < 0 || strbuf_oom(&c.text))
		return err_set(e, -ENOMEM, "out of memory for callgrind's file");
	sink_write(out, c.text.s, c.text.len);
	return 0;
}
