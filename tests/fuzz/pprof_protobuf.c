/*
 * A profile as pprof_read() has it, which takes the outer message apart itself, and as protobuf-c does of the whole: where both take it
 * they have the same types, times, comments, and the same sum, over all samples, of each value times a number that the sample's stack
 * makes (of addresses, modules, functions, files and lines). What protobuf-c takes, and has all that it refers to, we take. They may
 * differ so:
 *
 *   refused by us      what refers to nothing, or is there twice; no types, or too many; another number of values; a first string
 *                      that is not empty: profile_is_sound() has the list
 *   refused by it      numbers of another wire type, which are passed over here; field numbers beyond protobuf's
 *   not compared       what our walk of the outer message refuses: numbers beyond 64 bits, which protobuf cuts off; a
 *                      period type that is there twice, which protobuf merges; strings with a NUL, which end there; sums that do
 *                      not fit, which saturate here
 */
#include "model/pprof.h"
#include "model/pprof_wire.h"
#include "profile.pb-c.h"

#include "base/gunzip.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef Perftools__Profiles__Profile pb_profile;
typedef Perftools__Profiles__Sample pb_sample;
typedef Perftools__Profiles__Location pb_location;
typedef Perftools__Profiles__Function pb_function;
typedef Perftools__Profiles__Mapping pb_mapping;

enum { MOST_BYTES = 1 << 16, LARGE = 62 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

/* --- protobuf-c's: by number, all of it read anew for each question, which is slow and short --- */

#define FIND(pb, kind, wanted)                                                                     \
	({                                                                                         \
		void *found = NULL;                                                                \
		for (size_t at = 0; (wanted) && at < (pb)->n_##kind && !found; at++)               \
			if ((pb)->kind[at]->id == (wanted))                                        \
				found = (pb)->kind[at];                                            \
		found;                                                                             \
	})

static bool has_string(const pb_profile *pb, int64_t ix)
{
	return ix >= 0 && (uint64_t)ix < pb->n_string_table;
}

static const char *text_of(const pb_profile *pb, int64_t ix)
{
	return has_string(pb, ix) ? pb->string_table[ix] : "";
}

#define IDS_ARE_SOUND(pb, kind)                                                                    \
	({                                                                                         \
		bool all = true;                                                                   \
		for (size_t k = 0; k < (pb)->n_##kind; k++)                                        \
			all = all && (pb)->kind[k]->id &&                                          \
			      FIND(pb, kind, (pb)->kind[k]->id) == (pb)->kind[k];                  \
		all;                                                                               \
	})

static bool type_is_sound(const pb_profile *pb, const Perftools__Profiles__ValueType *t)
{
	return has_string(pb, t->type) && has_string(pb, t->unit);
}

static bool head_is_sound(const pb_profile *pb)
{
	bool sound = pb->n_sample_type && pb->n_sample_type <= PROFILE_MAX_TYPES &&
		     pb->n_string_table && !*pb->string_table[0] &&
		     has_string(pb, pb->default_sample_type);

	for (size_t i = 0; i < pb->n_sample_type; i++)
		sound = sound && type_is_sound(pb, pb->sample_type[i]);
	for (size_t i = 0; i < pb->n_comment; i++)
		sound = sound && has_string(pb, pb->comment[i]);
	return sound && (!pb->period_type || type_is_sound(pb, pb->period_type));
}

static bool places_are_sound(const pb_profile *pb)
{
	bool sound = IDS_ARE_SOUND(pb, function) && IDS_ARE_SOUND(pb, mapping) &&
		     IDS_ARE_SOUND(pb, location);

	for (size_t i = 0; i < pb->n_function; i++)
		sound = sound && has_string(pb, pb->function[i]->name) &&
			has_string(pb, pb->function[i]->system_name) &&
			has_string(pb, pb->function[i]->filename);
	for (size_t i = 0; i < pb->n_mapping; i++)
		sound = sound && has_string(pb, pb->mapping[i]->filename) &&
			has_string(pb, pb->mapping[i]->build_id);
	for (size_t i = 0; sound && i < pb->n_location; i++) {
		const pb_location *l = pb->location[i];

		sound = !l->mapping_id || FIND(pb, mapping, l->mapping_id);
		for (size_t k = 0; k < l->n_line; k++)
			sound = sound && (!l->line[k]->function_id ||
					  FIND(pb, function, l->line[k]->function_id));
	}
	return sound;
}

static bool samples_are_sound(const pb_profile *pb)
{
	bool sound = true;

	for (size_t i = 0; i < pb->n_sample; i++) {
		const pb_sample *s = pb->sample[i];

		sound = sound && s->n_value == pb->n_sample_type;
		for (size_t k = 0; sound && k < s->n_location_id; k++)
			sound = FIND(pb, location, s->location_id[k]);
		for (size_t k = 0; k < s->n_label; k++)
			sound = sound && has_string(pb, s->label[k]->key) &&
				has_string(pb, s->label[k]->str) &&
				(*text_of(pb, s->label[k]->str) ||
				 has_string(pb, s->label[k]->num_unit));
	}
	return sound;
}

static bool profile_is_sound(const pb_profile *pb)
{
	return head_is_sound(pb) && places_are_sound(pb) && samples_are_sound(pb);
}

/* --- a stack as a number --- */

static uint64_t mix(uint64_t a, uint64_t b)
{
	return (a ^ b) * 0x9e3779b97f4a7c15 + (a >> 29);
}

static uint64_t mix_text(uint64_t a, const char *s)
{
	for (; *s; s++)
		a = mix(a, (uint8_t)*s);
	return mix(a, 256);
}

static uint64_t mix_line(uint64_t a, const char *function, const char *system_name,
			 const char *file, int64_t line, int64_t start)
{
	a = mix_text(mix_text(mix_text(a, function), system_name), file);
	a = mix(a, line > 0 && line <= UINT32_MAX ? (uint64_t)line : 0);
	return mix(a, start > 0 && start <= UINT32_MAX ? (uint64_t)start : 0);
}

static uint64_t pb_place(const pb_profile *pb, uint64_t id, uint64_t a)
{
	const pb_location *l = FIND(pb, location, id);
	const pb_mapping *m = FIND(pb, mapping, l->mapping_id);

	a = mix(a, l->address);
	a = mix_text(a, m ? text_of(pb, m->filename) : "");
	a = mix_text(a, m ? text_of(pb, m->build_id) : "");
	for (size_t i = 0; i < l->n_line; i++) {
		const pb_function *f = FIND(pb, function, l->line[i]->function_id);

		if (f)
			a = mix_line(a, text_of(pb, f->name), text_of(pb, f->system_name),
				     text_of(pb, f->filename), l->line[i]->line, f->start_line);
	}
	return a;
}

static uint64_t our_place(const struct dict *d, location_id id, uint64_t a)
{
	const struct location *l = dict_location_get(d, id);
	const struct module *m = dict_module_get(d, l->module);

	a = mix(a, l->vaddr);
	a = mix_text(a, dict_str(d, m->path));
	a = mix_text(a, dict_str(d, m->build_id));
	for (uint32_t i = 0; i < l->n_lines; i++)
		a = mix_line(a, dict_str(d, l->lines[i].function),
			     dict_str(d, l->lines[i].system_name), dict_str(d, l->lines[i].file),
			     l->lines[i].line, l->lines[i].start_line);
	return a;
}

/* --- the comparison --- */

#define same(is) ((is) ? (void)0 : differs(#is, __LINE__))

static void differs(const char *what, int line)
{
	fprintf(stderr, "line %d: not so: %s\n", line, what);
	abort();
}

static void compare_heads(const pb_profile *pb, const struct profile *p)
{
	const struct profile_meta *meta = profile_get_meta(p);
	size_t n = 0;

	same(profile_n_types(p) == pb->n_sample_type);
	for (uint32_t i = 0; i < profile_n_types(p); i++)
		same(!strcmp(profile_type(p, i)->name, text_of(pb, pb->sample_type[i]->type)) &&
		     !strcmp(profile_type(p, i)->unit, text_of(pb, pb->sample_type[i]->unit)));
	same(meta->time_ns == pb->time_nanos && meta->duration_ns == pb->duration_nanos &&
	     meta->period == pb->period);
	while (meta->comments && meta->comments[n]) {
		same(n < pb->n_comment && !strcmp(meta->comments[n], text_of(pb, pb->comment[n])));
		n++;
	}
	same(n == pb->n_comment && profile_n_rows(p) == pb->n_sample);
}

static void compare_values(const pb_profile *pb, const struct profile *p, struct dict *d)
{
	uint64_t theirs[PROFILE_MAX_TYPES] = { 0 }, ours[PROFILE_MAX_TYPES] = { 0 };

	for (size_t i = 0; i < pb->n_sample; i++) {
		const pb_sample *s = pb->sample[i];
		uint64_t stack = 0;

		for (size_t k = s->n_location_id; k--;)
			stack = pb_place(pb, s->location_id[k], stack);
		for (size_t t = 0; t < pb->n_sample_type; t++)
			theirs[t] += stack * (uint64_t)s->value[t];
	}
	for (uint32_t i = 0; i < profile_n_samples(p); i++) {
		struct profile_sample s = profile_sample(p, i);
		uint32_t depth = dict_stack_depth(d, s.stack);
		location_id frames[MOST_BYTES];
		uint64_t stack = 0;

		for (uint32_t k = 0; k < depth; k++, s.stack = dict_stack_parent(d, s.stack))
			frames[k] = dict_stack_leaf(d, s.stack);
		for (uint32_t k = depth; k--;)
			stack = our_place(d, frames[k], stack);
		for (uint32_t t = 0; t < profile_n_types(p); t++)
			ours[t] += stack * (uint64_t)s.values[t];
	}
	for (uint32_t t = 0; t < profile_n_types(p); t++)
		same(theirs[t] == ours[t]);
}

/* See "not compared" above. */
static bool is_simple(struct bytes data)
{
	struct pprof_field f;
	unsigned periods = 0;

	while (data.len) {
		if (pprof_next_field(&data, &f) < 0)
			return false;
		periods += f.number == PERIOD_TYPE;
		if (f.number == STRING_TABLE && f.bytes.len && memchr(f.bytes.data, 0, f.bytes.len))
			return false;
	}
	return periods < 2;
}

static bool sums_fit(const pb_profile *pb)
{
	for (size_t i = 0; i < pb->n_sample; i++)
		for (size_t t = 0; t < pb->sample[i]->n_value; t++)
			if (llabs(pb->sample[i]->value[t] >> 1) >= (int64_t)1 << (LARGE - 16))
				return false;
	return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	_cleanup_(dict_freep) struct dict *d = dict_new();
	_cleanup_(profile_freep) struct profile *p = NULL;
	pb_profile *pb;
	int r;

	if (len > MOST_BYTES || is_gzip(bytes_of(data, len)))
		return 0;
	r = pprof_read(d, data, len, "x", &p, NULL);
	pb = perftools__profiles__profile__unpack(NULL, len, data);
	if (!pb || !is_simple(bytes_of(data, len)))
		goto out;
	same((r == 0) == profile_is_sound(pb));
	if (r == 0 && sums_fit(pb)) {
		compare_heads(pb, p);
		compare_values(pb, p, d);
	}
out:
	if (pb)
		perftools__profiles__profile__free_unpacked(pb, NULL);
	return 0;
}
