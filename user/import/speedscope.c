/*
 * speedscope's file format (jlfwong/speedscope, src/lib/file-format-spec.ts), JSON:
 *
 *   {"$schema": "https://www.speedscope.app/file-format-schema.json", "exporter": …, "name": …,
 *    "shared": {"frames": [{"name": …, "file": …, "line": …}]},
 *    "profiles": [
 *      {"type": "sampled", "name": …, "unit": "bytes", "samples": [[0, 3], …], "weights": [17, …], …},
 *      {"type": "evented", "name": …, "unit": "seconds", "startValue": 0,
 *       "events": [{"type": "O", "frame": 0, "at": 0.5}, {"type": "C", "frame": 0, "at": 1.75}], …}]}
 *
 * in any order of keys; stacks are root first. Units are none, nanoseconds … seconds, and bytes: each kind of them is a value type here,
 * times in nanoseconds. What memscope wrote has a profile for each of its value types. In other files the profiles are threads, by
 * their names. Memory is that of distinct stacks, and of one profile's samples, 4 bytes each and 8 for a weight.
 */
#include "base/chunks.h"
#include "base/hash.h"
#include "base/strbuf.h"
#include "import/json_walk.h"
#include "import/readers.h"
#include "model/about.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { MAX_FRAMES = 1 << 16, MAX_NAME = 100 };

/* What units are of: a value type each, where several profiles are no value types of ours. */
enum { COUNTS, TIMES, BYTES, N_UNITS };

static const struct value_type unit_types[N_UNITS] = {
	{ "samples", "count" },
	{ "time", "nanoseconds" },
	{ "space", "bytes" },
};

static const struct {
	const char *name;
	int kind;
	int64_t scale;
} units[] = {
	{ "none", COUNTS, 1 },
	{ "nanoseconds", TIMES, 1 },
	{ "microseconds", TIMES, 1000 },
	{ "milliseconds", TIMES, 1000000 },
	{ "seconds", TIMES, 1000000000 },
	{ "bytes", BYTES, 1 },
};
enum { N_UNIT_NAMES = sizeof(units) / sizeof(units[0]) };

/* A stack as the file has it: frames by their numbers, which may be told of behind it. */
struct scope_stack {
	struct {
		uint32_t parent, frame; /* parent: 1 + number; 0: none */
	} key;
	uint32_t number;
	UT_hash_handle hh;
};

struct scope_value {
	struct {
		uint32_t profile, stack;
	} key;
	int64_t value;
	UT_hash_handle hh;
};

struct scope_profile {
	char name[MAX_NAME], unit[32];
};

/* A number in the unit of its profile, which may be told of behind it: the file's text is kept as both. */
struct scope_number {
	double x;
	int64_t n; /* where it is written as an integer */
};

struct scope_frame {
	string_id name, file;
	uint32_t line;
};

struct scope_event {
	bool opens;
	uint32_t frame;
	struct scope_number at;
};

struct scope {
	struct dict *d;
	struct chunks frames; /* struct scope_frame */
	struct chunks stacks; /* struct scope_stack */
	struct scope_stack *by_key;
	struct chunks values; /* struct scope_value */
	struct scope_value *by_stack;
	struct chunks profiles; /* struct scope_profile */
	struct chunks samples;  /* uint32_t: stacks of the profile that is read */
	struct chunks weights;  /* struct scope_number */
	struct chunks events;   /* struct scope_event */
	uint32_t depth;         /* of the sample that is read */
	uint32_t stack;
	char exporter[32], title[256];
	uint32_t active;
	uint64_t bad, n_samples;
};

static void scope_fini(struct scope *s)
{
	HASH_CLEAR(hh, s->by_key);
	HASH_CLEAR(hh, s->by_stack);
	chunks_free(&s->frames);
	chunks_free(&s->stacks);
	chunks_free(&s->values);
	chunks_free(&s->profiles);
	chunks_free(&s->samples);
	chunks_free(&s->weights);
	chunks_free(&s->events);
}

static void again(struct chunks *c)
{
	size_t size = c->elem_size;

	chunks_free(c);
	*c = (struct chunks){ .elem_size = size };
}

static bool holds(struct bytes data, const char *word)
{
	return memmem(data.data, data.len, word, strlen(word)) != NULL;
}

bool speedscope_recognise(struct bytes head)
{
	return json_is_object(head) && (holds(head, "www.speedscope.app/file-format-schema.json") ||
					(holds(head, "\"shared\"") && holds(head, "\"frames\"") &&
					 !holds(head, "\"stackTable\"")));
}

/* --- values ----------------------------------------------------------------------------------- */

/* 1 + the number of the stack; 0: out of memory. */
static uint32_t push(struct scope *s, uint32_t parent, uint32_t frame)
{
	struct scope_stack probe, *known;

	memset(&probe, 0, sizeof(probe));
	probe.key.parent = parent;
	probe.key.frame = frame;
	HASH_FIND(hh, s->by_key, &probe.key, sizeof(probe.key), known);
	if (known)
		return known->number + 1;
	known = chunks_add(&s->stacks);
	if (!known)
		return 0;
	memcpy(&known->key, &probe.key, sizeof(known->key));
	known->number = s->stacks.n - 1;
	HASH_ADD(hh, s->by_key, key, sizeof(known->key), known);
	return hash_added(known) ? known->number + 1 : 0;
}

static int add_value(struct scope *s, uint32_t stack, int64_t value)
{
	struct scope_value probe, *known;

	memset(&probe, 0, sizeof(probe));
	probe.key.profile = s->profiles.n - 1;
	probe.key.stack = stack;
	HASH_FIND(hh, s->by_stack, &probe.key, sizeof(probe.key), known);
	if (!known) {
		known = chunks_add(&s->values);
		if (!known)
			return -ENOMEM;
		memcpy(&known->key, &probe.key, sizeof(known->key));
		HASH_ADD(hh, s->by_stack, key, sizeof(known->key), known);
		if (!hash_added(known))
			return -ENOMEM;
	}
	if (__builtin_add_overflow(known->value, value, &known->value))
		known->value = INT64_MAX;
	return 0;
}

static const struct scope_profile *profile_at(const struct scope *s, uint32_t i)
{
	return chunks_at(&s->profiles, i);
}

static int unit_of(const struct scope_profile *p)
{
	for (int i = 0; i < N_UNIT_NAMES; i++)
		if (strcmp(p->unit, units[i].name) == 0)
			return i;
	return 0;
}

/* In whole units of our own. */
static int64_t scaled(const struct scope_number *n, int64_t scale)
{
	int64_t value;
	double x = n->x * (double)scale;

	if (n->n != INT64_MIN && !__builtin_mul_overflow(n->n, scale, &value))
		return value;
	return x >= 0x1p63    ? INT64_MAX
	       : x <= -0x1p63 ? INT64_MIN
			      : (int64_t)(x < 0 ? x - .5 : x + .5);
}

static int end_samples(struct scope *s, int64_t scale)
{
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < s->samples.n; i++) {
		uint32_t stack = *(uint32_t *)chunks_at(&s->samples, i);
		int64_t weight = i < s->weights.n ? scaled(chunks_at(&s->weights, i), scale) : 1;

		s->bad += !s->weights.n ? 0 : i >= s->weights.n;
		r = add_value(s, stack, i < s->weights.n || !s->weights.n ? weight : 0);
	}
	s->n_samples += s->samples.n;
	s->bad += s->weights.n > s->samples.n ? s->weights.n - s->samples.n : 0;
	return r;
}

/* Between two events all time is of the stack that is open. */
static int end_events(struct scope *s, int64_t scale)
{
	uint32_t stack = 0;
	int64_t last = 0;
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < s->events.n; i++) {
		const struct scope_event *e = chunks_at(&s->events, i);
		int64_t at = scaled(&e->at, scale);

		if (stack && at > last)
			r = add_value(s, stack, at - last);
		s->bad += i && at < last;
		last = at;
		if (e->opens) {
			stack = push(s, stack, e->frame);
			if (!stack)
				return -ENOMEM;
			continue;
		}
		/* A frame that is not the innermost one closes those in it, too; one that is not open closes nothing. */
		for (uint32_t k = stack; k;
		     k = ((struct scope_stack *)chunks_at(&s->stacks, k - 1))->key.parent) {
			const struct scope_stack *open = chunks_at(&s->stacks, k - 1);

			if (open->key.frame != e->frame)
				continue;
			stack = open->key.parent;
			break;
		}
	}
	s->n_samples += s->events.n;
	return r;
}

/* What was read of a profile, whose unit is known only now. */
static int end_profile(struct scope *s)
{
	int64_t scale = units[unit_of(profile_at(s, s->profiles.n - 1))].scale;
	int r = end_samples(s, scale);

	if (r == 0)
		r = end_events(s, scale);
	again(&s->samples);
	again(&s->weights);
	again(&s->events);
	return r;
}

/* --- the document ----------------------------------------------------------------------------- */

static string_id text_of(struct scope *s, const struct json_value *v)
{
	return v->type == JSON_STRING ? dict_string_n(s->d, (const char *)v->text.data, v->text.len)
				      : (string_id){ 0 };
}

static struct scope_number number_of(const struct json_value *v)
{
	struct scope_number n = { .n = INT64_MIN };
	char text[64] = "";

	if (v->type != JSON_NUMBER || v->text.len >= sizeof(text))
		return (struct scope_number){ 0 };
	memcpy(text, v->text.data, v->text.len);
	n.x = strtod(text, NULL);
	if (!memchr(text, '.', v->text.len) && !memchr(text, 'e', v->text.len) &&
	    !memchr(text, 'E', v->text.len) && !json_integer(v, 1, &n.n))
		n.n = INT64_MIN;
	return n;
}

static bool index_of(const struct json_value *v, uint32_t *ret)
{
	int64_t n;

	if (!json_integer(v, 1, &n) || n < 0 || n >= UINT32_MAX)
		return false;
	*ret = (uint32_t)n;
	return true;
}

/* shared.frames[i] … */
static int take_frame(struct scope *s, const struct json_value *v)
{
	struct scope_frame *f;
	int64_t n;

	if (v->depth == 3 && v->type == JSON_BEGIN)
		return chunks_add(&s->frames) ? 0 : -ENOMEM;
	if (v->depth != 4 || !s->frames.n)
		return 0;
	f = chunks_at(&s->frames, s->frames.n - 1);
	if (json_is(v, 3, "name"))
		f->name = text_of(s, v);
	else if (json_is(v, 3, "file"))
		f->file = text_of(s, v);
	else if (json_is(v, 3, "line") && json_integer(v, 1, &n) && n > 0 && n <= UINT32_MAX)
		f->line = (uint32_t)n;
	return 0;
}

/* profiles[i].samples[k] … */
static int take_sample(struct scope *s, const struct json_value *v)
{
	uint32_t frame, *sample;

	if (v->depth == 5) {
		if (!index_of(v, &frame) || s->depth == MAX_FRAMES) {
			s->bad++;
			return 0;
		}
		s->depth++;
		s->stack = push(s, s->stack, frame);
		return s->stack ? 0 : -ENOMEM;
	}
	if (v->depth != 4)
		return 0;
	if (v->type == JSON_END) {
		sample = chunks_add(&s->samples);
		if (!sample)
			return -ENOMEM;
		*sample = s->stack;
	}
	s->depth = s->stack = 0;
	return 0;
}

/* profiles[i].events[k] … */
static int take_event(struct scope *s, const struct json_value *v)
{
	struct scope_event *e;

	if (v->depth == 4 && v->type == JSON_BEGIN) {
		e = chunks_add(&s->events);
		return e ? 0 : -ENOMEM;
	}
	if (v->depth != 5 || !s->events.n)
		return 0;
	e = chunks_at(&s->events, s->events.n - 1);
	if (json_is(v, 4, "type"))
		e->opens = v->type == JSON_STRING && v->text.len == 1 && v->text.data[0] == 'O';
	else if (json_is(v, 4, "frame"))
		s->bad += !index_of(v, &e->frame);
	else if (json_is(v, 4, "at"))
		e->at = number_of(v);
	return 0;
}

/* profiles[i] … */
static int take_profile(struct scope *s, const struct json_value *v)
{
	struct scope_profile *p;
	struct scope_number *weight;

	if (v->depth == 2 && v->type == JSON_BEGIN)
		return chunks_add(&s->profiles) ? 0 : -ENOMEM;
	if (v->depth == 2 && v->type == JSON_END)
		return end_profile(s);
	if (v->depth < 3 || !s->profiles.n)
		return 0;
	p = chunks_at(&s->profiles, s->profiles.n - 1);
	if (v->depth == 3 && json_is(v, 2, "name"))
		json_copy_text(p->name, sizeof(p->name), v);
	else if (v->depth == 3 && json_is(v, 2, "unit"))
		json_copy_text(p->unit, sizeof(p->unit), v);
	else if (json_is(v, 2, "samples"))
		return take_sample(s, v);
	else if (json_is(v, 2, "events"))
		return take_event(s, v);
	else if (v->depth == 4 && json_is(v, 2, "weights") && v->type == JSON_NUMBER) {
		weight = chunks_add(&s->weights);
		if (!weight)
			return -ENOMEM;
		*weight = number_of(v);
	}
	return 0;
}

static int take(void *ctx, const struct json_value *v)
{
	struct scope *s = ctx;

	if (v->depth == 1 && json_is(v, 0, "exporter"))
		json_copy_text(s->exporter, sizeof(s->exporter), v);
	else if (v->depth == 1 && json_is(v, 0, "activeProfileIndex"))
		s->bad += !index_of(v, &s->active);
	else if (v->depth == 1 && json_is(v, 0, "name"))
		json_copy_text(s->title, sizeof(s->title), v);
	else if (v->depth >= 3 && json_is(v, 0, "shared") && json_is(v, 1, "frames"))
		return take_frame(s, v);
	else if (v->depth >= 2 && json_is(v, 0, "profiles") && json_in_array(v, 1))
		return take_profile(s, v);
	return 0;
}

/* --- what came of it -------------------------------------------------------------------------- */

/* Which value type each profile's values are. */
struct scope_types {
	struct value_type types[PROFILE_MAX_TYPES];
	uint32_t n, of_kind[N_UNITS];
	bool one_each; /* the profiles are value types, and no threads */
};

/* As memscope wrote it: the name says the unit where speedscope has none for it. */
static const char *unit_for(const struct scope_profile *p)
{
	return strcmp(p->unit, "none") == 0 || !p->unit[0] ? "count"
	       : units[unit_of(p)].kind == TIMES           ? "nanoseconds"
							   : "bytes";
}

static void find_types(const struct scope *s, struct scope_types *t)
{
	t->one_each = strcmp(s->exporter, "memscope") == 0 && s->profiles.n <= PROFILE_MAX_TYPES;
	for (uint32_t i = 0; i < s->profiles.n; i++) {
		const struct scope_profile *p = profile_at(s, i);
		int kind = units[unit_of(p)].kind;

		if (t->one_each) {
			t->types[t->n++] = (struct value_type){ p->name, unit_for(p) };
		} else if (!t->of_kind[kind]) {
			t->types[t->n] = unit_types[kind];
			t->of_kind[kind] = ++t->n;
		}
	}
	if (!t->n)
		t->types[t->n++] = unit_types[COUNTS];
}

/* memscope writes the image where others have a source file. */
static location_id place_of(struct scope *s, const struct scope_frame *f)
{
	struct line line = { .function = f->name.ix ? f->name : dict_string(s->d, "[unknown]"),
			     .line = f->line };
	struct module m = { .kind = MODULE_ELF, .path = f->file };
	const char *file = dict_str(s->d, f->file);

	if (strcmp(s->exporter, "memscope") != 0) {
		line.file = f->file;
		return dict_location_lines(s->d, (module_id){ 0 }, 0, &line, 1);
	}
	if (strcmp(file, "[kernel]") == 0)
		m.kind = MODULE_KERNEL;
	else if (strcmp(file, "[vdso]") == 0)
		m.kind = MODULE_VDSO;
	else if (file[0] == '[')
		m.kind = MODULE_LANG;
	return dict_location_lines(s->d, f->file.ix ? dict_module(s->d, &m) : (module_id){ 0 }, 0,
				   &line, 1);
}

static int make_stacks(struct scope *s, stack_id *stacks)
{
	struct line line = { .function = dict_string(s->d, "[unknown]") };
	location_id unknown = dict_location_lines(s->d, (module_id){ 0 }, 0, &line, 1);

	/* Parents come first. */
	for (uint32_t i = 0; i < s->stacks.n; i++) {
		const struct scope_stack *k = chunks_at(&s->stacks, i);
		location_id frame = unknown;

		if (k->key.frame < s->frames.n)
			frame = place_of(s, chunks_at(&s->frames, k->key.frame));
		else
			s->bad++;
		stacks[i + 1] = dict_stack_push(s->d, stacks[k->key.parent], frame);
	}
	return dict_oom(s->d) ? -ENOMEM : 0;
}

static labels_id labels_of(struct scope *s, const struct scope_types *t, uint32_t profile)
{
	const struct scope_profile *p = profile_at(s, profile);
	struct label label = { .key = dict_string(s->d, "thread"),
			       .str = dict_string(s->d, p->name) };

	return t->one_each || s->profiles.n < 2 || !p->name[0] ? (labels_id){ 0 }
							       : dict_labels(s->d, &label, 1);
}

static int add_samples(struct scope *s, const struct scope_types *t, struct profile *p)
{
	_cleanup_(freep) stack_id *stacks = calloc(s->stacks.n + 1ul, sizeof(*stacks));
	int r = stacks ? make_stacks(s, stacks) : -ENOMEM;

	for (uint32_t i = 0; r == 0 && i < s->values.n; i++) {
		const struct scope_value *v = chunks_at(&s->values, i);
		int64_t values[PROFILE_MAX_TYPES] = { 0 };
		uint32_t type = v->key.profile;

		if (!t->one_each)
			type = t->of_kind[units[unit_of(profile_at(s, v->key.profile))].kind] - 1;
		values[type] = v->value;
		r = profile_add(p, stacks[v->key.stack], labels_of(s, t, v->key.profile), values);
	}
	return r;
}

static int make_profile(struct scope *s, struct profile **ret_profile)
{
	_cleanup_(profile_freep) struct profile *p = NULL;
	struct scope_types types = { 0 };
	char target[300];
	const char *comments[2] = { target };
	int r;

	find_types(s, &types);
	p = profile_new(s->d, types.types, types.n);
	if (!p)
		return -ENOMEM;
	r = add_samples(s, &types, p);
	snprintf(target, sizeof(target), "%s%.*s", about_prefix(ABOUT_TARGET),
		 (int)(types.one_each ? strcspn(s->title, ",") : strlen(s->title)), s->title);
	if (r == 0)
		r = profile_set_meta(
			p, &(struct profile_meta){
				   .period_type = { "", "" },
				   .default_type =
					   types.one_each && s->active < types.n ? s->active : 0,
				   .comments = s->title[0] ? comments : NULL });
	if (r == 0)
		*ret_profile = TAKE_PTR(p);
	return r;
}

int speedscope_read(struct dict *d, struct input *in, const char *name, struct import_info *info,
		    struct profile **ret_profile, struct err *e)
{
	_cleanup_(scope_fini) struct scope s = {
		.d = d,
		.frames = CHUNKS_OF(struct scope_frame),
		.stacks = CHUNKS_OF(struct scope_stack),
		.values = CHUNKS_OF(struct scope_value),
		.profiles = CHUNKS_OF(struct scope_profile),
		.samples = CHUNKS_OF(uint32_t),
		.weights = CHUNKS_OF(struct scope_number),
		.events = CHUNKS_OF(struct scope_event),
	};
	char what[160];
	int r = json_walk(in, take, &s, what, sizeof(what));

	if (r == -EBADMSG) {
		/* Of the profile in which it is damaged, what there is. */
		r = s.profiles.n ? end_profile(&s) : 0;
		if (r == 0 && !s.n_samples)
			return err_set(e, -EBADMSG, "%s: %s", name, what);
		snprintf(info->damage, sizeof(info->damage),
			 "%s; the %" PRIu64 " samples and events before it were kept", what,
			 s.n_samples);
	}
	if (r == 0 && !s.profiles.n)
		return err_set(e, -EBADMSG, "%s: speedscope's file without a profile", name);
	if (r == 0)
		r = make_profile(&s, ret_profile);
	if (r < 0 || dict_oom(d)) {
		if (r == 0)
			profile_free(TAKE_PTR(*ret_profile));
		return err_set(e, -ENOMEM, "%s: out of memory while reading it", name);
	}
	if (s.bad && !info->damage[0])
		snprintf(info->damage, sizeof(info->damage),
			 "%" PRIu64 " frames, weights or events that make no sense were left out",
			 s.bad);
	return 0;
}
