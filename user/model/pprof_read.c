/*
 * The outer message is walked here, field by field, and only its elements are handed to
 * protobuf-c, one at a time: unpacked as a whole, a Profile of empty samples takes 60 times its
 * size (protobuf-c 1.4.1),
 * and what is read may be hostile. Elements may come in any order, so each pass below takes the
 * kind that the next one refers to.
 */
#include "model/pprof.h"

#include "base/arena.h"
#include "base/chunks.h"
#include "base/grow.h"
#include "base/gunzip.h"
#include "base/hash.h"
#include "model/pprof_wire.h"
#include "profile.pb-c.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

typedef Perftools__Profiles__ValueType pb_value_type;
typedef Perftools__Profiles__Sample pb_sample;
typedef Perftools__Profiles__Label pb_label;
typedef Perftools__Profiles__Mapping pb_mapping;
typedef Perftools__Profiles__Location pb_location;
typedef Perftools__Profiles__Line pb_line;
typedef Perftools__Profiles__Function pb_function;

enum {
	MAX_PROFILE_BYTES = 1 << 30,
	/* One element, so that what protobuf-c allocates for it is bounded: a stack of a million
	 * frames fits. */
	MAX_ELEMENT_BYTES = 8 << 20,
};

/* An id of the file (any 64-bit number but 0) → ours. */
struct id_entry {
	uint64_t id;
	uint32_t ix;
	UT_hash_handle hh;
};

struct id_map {
	struct chunks entries;
	struct id_entry *by_id;
};

struct reader {
	struct dict *d;
	const char *name;
	struct err *e;
	struct bytes data;
	struct arena scratch; /* one element at a time */
	ProtobufCAllocator allocator;
	string_id *strings;
	uint32_t n_strings, cap_strings;
	struct chunks functions; /* struct line, without its line number */
	struct id_map function_ids, mapping_ids, location_ids;
	struct value_type types[PROFILE_MAX_TYPES];
	uint32_t n_types;
	struct profile_meta meta;
	const char **comments;
	uint32_t n_comments;
	uint64_t default_name; /* string index */
	struct profile *profile;
	uint64_t n_samples;
	int error;    /* why unpack() gave NULL */
	bool no_room; /* in scratch          */
};

static void reader_free(struct reader *r)
{
	struct id_map *maps[] = { &r->function_ids, &r->mapping_ids, &r->location_ids };

	for (size_t i = 0; i < sizeof(maps) / sizeof(maps[0]); i++) {
		HASH_CLEAR(hh, maps[i]->by_id);
		chunks_free(&maps[i]->entries);
	}
	chunks_free(&r->functions);
	arena_free(&r->scratch);
	free(r->strings);
	free(r->comments);
	profile_free(r->profile);
}

static int __attribute__((format(printf, 2, 3))) damaged(struct reader *r, const char *fmt, ...)
{
	char what[128];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	err_set(r->e, -EBADMSG, "%s: not a whole pprof profile: %s", r->name, what);
	return -EBADMSG;
}

static int oom(struct reader *r)
{
	err_set(r->e, -ENOMEM, "%s: out of memory while reading it", r->name);
	return -ENOMEM;
}

/* --- ids, strings, elements --- */

static struct id_entry *id_find(const struct id_map *map, uint64_t id)
{
	struct id_entry *entry = NULL;

	/* Most writers number from 1 in the order of the file. */
	if (id && id <= map->entries.n)
		entry = chunks_at(&map->entries, (uint32_t)id - 1);
	if (!entry || entry->id != id)
		HASH_FIND(hh, map->by_id, &id, sizeof(id), entry);
	return entry;
}

static int id_add(struct reader *r, struct id_map *map, const char *kind, uint64_t id, uint32_t ix)
{
	struct id_entry *entry = id_find(map, id);

	if (entry || !id)
		return damaged(r, "%s id %llu %s", kind, (unsigned long long)id,
			       id ? "is there twice" : "is reserved");
	entry = chunks_add(&map->entries);
	if (!entry)
		return oom(r);
	entry->id = id;
	entry->ix = ix;
	HASH_ADD(hh, map->by_id, id, sizeof(id), entry);
	return hash_added(entry) ? 0 : oom(r);
}

static int id_get(struct reader *r, struct id_map *map, const char *kind, uint64_t id,
		  uint32_t *ret_ix)
{
	const struct id_entry *entry = id_find(map, id);

	if (!entry)
		return damaged(r, "there is no %s %llu", kind, (unsigned long long)id);
	*ret_ix = entry->ix;
	return 0;
}

static int string(struct reader *r, int64_t ix, string_id *ret_string)
{
	if (ix < 0 || (uint64_t)ix >= r->n_strings)
		return damaged(r, "there is no string %lld", (long long)ix);
	*ret_string = r->strings[ix];
	return 0;
}

static int text(struct reader *r, int64_t ix, const char **ret_text)
{
	string_id id;
	int res = string(r, ix, &id);

	if (res < 0)
		return res;
	*ret_text = dict_str(r->d, id);
	return 0;
}

static void *scratch_alloc(void *reader, size_t size)
{
	struct reader *r = reader;
	void *at = arena_alloc(&r->scratch, size);

	r->no_room |= !at;
	return at;
}

static void scratch_free(void *reader, void *ptr)
{
}

/* An element as protobuf-c's struct, good until the next one; NULL with the reason in r->error. */
static void *unpack(struct reader *r, const ProtobufCMessageDescriptor *type, struct bytes b)
{
	ProtobufCMessage *message;

	if (b.len > MAX_ELEMENT_BYTES) {
		r->error = damaged(r, "a %s of %zu bytes", type->short_name, b.len);
		return NULL;
	}
	arena_reset(&r->scratch);
	message = protobuf_c_message_unpack(type, &r->allocator, b.len, b.data);
	if (!message)
		r->error = r->no_room ? oom(r)
				      : damaged(r, "a %s that cannot be decoded", type->short_name);
	return message;
}

/* Calls `take` for each element of field `number`. */
static int each(struct reader *r, uint64_t number, int (*take)(struct reader *, struct bytes))
{
	struct bytes rest = r->data;
	struct pprof_field f;
	int res;

	while (rest.len) {
		if (pprof_next_field(&rest, &f) < 0)
			return damaged(r, "it ends in the middle, or was never one");
		if (f.number != number)
			continue;
		if (f.wire != LEN)
			return damaged(r, "field %u has the wrong type", (unsigned)number);
		res = take(r, f.bytes);
		if (res < 0)
			return res;
	}
	return 0;
}

/* --- passes --- */

static int take_string(struct reader *r, struct bytes b)
{
	if (!GROW(r->strings, r->n_strings, r->cap_strings))
		return oom(r);
	r->strings[r->n_strings++] = dict_string_n(r->d, (const char *)b.data, b.len);
	return dict_oom(r->d) ? oom(r) : 0;
}

static int read_value_type(struct reader *r, struct bytes b, struct value_type *ret_type)
{
	struct value_type t;
	pb_value_type *pb = unpack(r, &perftools__profiles__value_type__descriptor, b);
	int res;

	if (!pb)
		return r->error;
	res = text(r, pb->type, &t.name);
	if (res == 0)
		res = text(r, pb->unit, &t.unit);
	if (res == 0)
		*ret_type = t;
	return res;
}

static int take_sample_type(struct reader *r, struct bytes b)
{
	int res;

	if (r->n_types == PROFILE_MAX_TYPES)
		return damaged(r, "more than %d value types", PROFILE_MAX_TYPES);
	res = read_value_type(r, b, &r->types[r->n_types]);
	if (res == 0)
		r->n_types++;
	return res;
}

static int take_period_type(struct reader *r, struct bytes b)
{
	return read_value_type(r, b, &r->meta.period_type);
}

static int add_comment(struct reader *r, uint64_t ix)
{
	const char **comments;
	int res;

	comments = reallocarray(r->comments, r->n_comments + 2, sizeof(*comments));
	if (!comments)
		return oom(r);
	r->comments = comments;
	res = text(r, (int64_t)ix, &comments[r->n_comments]);
	if (res < 0)
		return res;
	comments[++r->n_comments] = NULL;
	return 0;
}

/* Numbers, and comments, which come one by one or packed. */
static int read_scalars(struct reader *r)
{
	struct bytes rest = r->data;
	struct pprof_field f;
	int res = 0;

	while (rest.len && res == 0) {
		if (pprof_next_field(&rest, &f) < 0)
			return damaged(r, "it ends in the middle");
		if (f.wire == VARINT && f.number == TIME_NANOS)
			r->meta.time_ns = (int64_t)f.value;
		else if (f.wire == VARINT && f.number == DURATION_NANOS)
			r->meta.duration_ns = (int64_t)f.value;
		else if (f.wire == VARINT && f.number == PERIOD)
			r->meta.period = (int64_t)f.value;
		else if (f.wire == VARINT && f.number == DEFAULT_SAMPLE_TYPE)
			r->default_name = f.value;
		else if (f.wire == VARINT && f.number == COMMENT)
			res = add_comment(r, f.value);
		while (f.number == COMMENT && f.bytes.len && res == 0) {
			uint64_t ix;

			if (bytes_uleb(&f.bytes, &ix) < 0)
				return damaged(r, "a comment that cannot be decoded");
			res = add_comment(r, ix);
		}
	}
	return res;
}

static int take_function(struct reader *r, struct bytes b)
{
	struct line line = { 0 }, *slot;
	pb_function *pb = unpack(r, &perftools__profiles__function__descriptor, b);
	int res;

	if (!pb)
		return r->error;
	res = string(r, pb->name, &line.function);
	if (res == 0)
		res = string(r, pb->system_name, &line.system_name);
	if (res == 0)
		res = string(r, pb->filename, &line.file);
	if (res < 0)
		return res;
	if (pb->start_line > 0 && pb->start_line <= UINT32_MAX)
		line.start_line = (uint32_t)pb->start_line;
	slot = chunks_add(&r->functions);
	if (!slot)
		return oom(r);
	*slot = line;
	return id_add(r, &r->function_ids, "function", pb->id, r->functions.n - 1);
}

static bool starts(const char *s, const char *with)
{
	return !strncmp(s, with, strlen(with));
}

/* pprof keeps no kind; the names are those of /proc/PID/maps and of perf. */
static enum module_kind kind_of(const char *path)
{
	if (starts(path, "[kernel") || starts(path, "[guest.kernel"))
		return MODULE_KERNEL;
	if (starts(path, "[vdso"))
		return MODULE_VDSO;
	if (starts(path, "[Python") || starts(path, "[Java"))
		return MODULE_LANG;
	if (!*path || starts(path, "//anon") || starts(path, "[anon") || starts(path, "[heap") ||
	    starts(path, "[stack"))
		return MODULE_ANON;
	return MODULE_ELF;
}

static int take_mapping(struct reader *r, struct bytes b)
{
	struct module m = { 0 };
	pb_mapping *pb = unpack(r, &perftools__profiles__mapping__descriptor, b);
	module_id id;
	int res;

	if (!pb)
		return r->error;
	res = string(r, pb->filename, &m.path);
	if (res == 0)
		res = string(r, pb->build_id, &m.build_id);
	if (res < 0)
		return res;
	m.kind = kind_of(dict_str(r->d, m.path));
	m.start = pb->memory_start;
	m.limit = pb->memory_limit;
	m.file_off = pb->file_offset;
	id = dict_module(r->d, &m);
	if (dict_oom(r->d))
		return oom(r);
	return id_add(r, &r->mapping_ids, "mapping", pb->id, id.ix);
}

static int read_lines(struct reader *r, const pb_location *pb, struct line *lines, uint32_t *ret_n)
{
	uint32_t n = 0;

	for (size_t i = 0; i < pb->n_line; i++) {
		uint32_t ix = 0;
		int res;

		if (!pb->line[i]->function_id)
			continue;
		res = id_get(r, &r->function_ids, "function", pb->line[i]->function_id, &ix);
		if (res < 0)
			return res;
		lines[n] = *(struct line *)chunks_at(&r->functions, ix);
		if (pb->line[i]->line > 0 && pb->line[i]->line <= UINT32_MAX)
			lines[n].line = (uint32_t)pb->line[i]->line;
		n++;
	}
	*ret_n = n;
	return 0;
}

static int take_location(struct reader *r, struct bytes b)
{
	module_id module = { 0 };
	location_id id;
	struct line *lines;
	pb_location *pb = unpack(r, &perftools__profiles__location__descriptor, b);
	uint32_t n;
	int res;

	if (!pb)
		return r->error;
	if (pb->mapping_id) {
		res = id_get(r, &r->mapping_ids, "mapping", pb->mapping_id, &module.ix);
		if (res < 0)
			return res;
	}
	lines = arena_alloc(&r->scratch, pb->n_line * sizeof(*lines));
	if (!lines)
		return oom(r);
	res = read_lines(r, pb, lines, &n);
	if (res < 0)
		return res;
	id = n ? dict_location_lines(r->d, module, pb->address, lines, n)
	       : dict_location(r->d, module, pb->address);
	if (dict_oom(r->d))
		return oom(r);
	return id_add(r, &r->location_ids, "location", pb->id, id.ix);
}

/* "alloc_space_stderr": is it of an error, and of which value type's? Of two of a name the later one. */
static bool error_label(const struct reader *r, const char *key, uint32_t *ret_type,
			enum value_error_label *ret_label)
{
	const char *suffix = strrchr(key, '_');

	for (int l = 0; suffix && l < N_ERROR_LABELS; l++) {
		size_t len = (size_t)(suffix - key);

		if (strcmp(suffix, value_error_labels[l]) != 0)
			continue;
		for (uint32_t t = r->n_types; t--;) {
			if (strncmp(r->types[t].name, key, len) != 0 || r->types[t].name[len])
				continue;
			*ret_type = t;
			*ret_label = (enum value_error_label)l;
			return true;
		}
	}
	return false;
}

/* Errors of values are labels in the file, and no labels here. */
static int read_errors(struct reader *r, const pb_sample *pb, stack_id stack, labels_id labels)
{
	struct value_error errors[PROFILE_MAX_TYPES];
	bool has[PROFILE_MAX_TYPES] = { false };
	int res = 0;

	for (size_t i = 0; i < pb->n_label; i++) {
		struct value_error_number number = { .number = pb->label[i]->num };
		string_id key = { 0 };
		uint32_t t;

		if (pb->label[i]->str || string(r, pb->label[i]->key, &key) < 0 ||
		    !error_label(r, dict_str(r->d, key), &t, &number.label))
			continue;
		if (!has[t])
			value_error_begin(&errors[t]);
		has[t] = true;
		value_error_read(&errors[t], pb->value[t], number);
	}
	for (uint32_t t = 0; t < r->n_types && res == 0; t++) {
		if (!has[t])
			continue;
		value_error_end(&errors[t]);
		res = profile_add_error(r->profile, stack, labels, t, &errors[t]);
	}
	return res < 0 ? oom(r) : 0;
}

static int read_labels(struct reader *r, const pb_sample *pb, labels_id *ret_labels)
{
	struct label *labels = arena_alloc(&r->scratch, pb->n_label * sizeof(*labels));
	enum value_error_label what;
	uint32_t n = 0, type;
	int res = 0;

	if (!labels)
		return oom(r);
	for (size_t i = 0; i < pb->n_label && res == 0; i++) {
		const pb_label *from = pb->label[i];
		struct label *to = &labels[n];

		*to = (struct label){ 0 };
		res = string(r, from->key, &to->key);
		if (res == 0)
			res = string(r, from->str, &to->str);
		if (res == 0 && !to->str.ix) {
			to->num = from->num;
			res = string(r, from->num_unit, &to->unit);
			if (error_label(r, dict_str(r->d, to->key), &type, &what))
				continue;
		}
		n++;
	}
	if (res == 0)
		*ret_labels = dict_labels(r->d, labels, n);
	return res;
}

static int take_sample(struct reader *r, struct bytes b)
{
	stack_id stack = { 0 };
	labels_id labels;
	uint32_t sample;
	pb_sample *pb = unpack(r, &perftools__profiles__sample__descriptor, b);
	int res;

	r->n_samples++;
	if (!pb)
		return r->error;
	if (pb->n_value != r->n_types)
		return damaged(r, "sample %llu has %zu values for %u value types",
			       (unsigned long long)r->n_samples, pb->n_value, r->n_types);
	for (size_t i = pb->n_location_id; i--;) {
		location_id frame;

		res = id_get(r, &r->location_ids, "location", pb->location_id[i], &frame.ix);
		if (res < 0)
			return res;
		stack = dict_stack_push(r->d, stack, frame);
	}
	res = read_labels(r, pb, &labels);
	if (res < 0)
		return res;
	if (profile_add_to(r->profile, stack, labels, pb->value, &sample) < 0 ||
	    profile_note_row(r->profile, sample) < 0)
		return oom(r);
	return read_errors(r, pb, stack, labels);
}

/*
 * The type of that name, the last type where there is none. Off-CPU profiles have two of a name,
 * count and time: the later one is meant.
 */
static uint32_t default_type(const struct reader *r, const char *name)
{
	for (uint32_t i = r->n_types; i--;)
		if (!strcmp(r->types[i].name, name))
			return i;
	return r->n_types - 1;
}

static int read_types(struct reader *r)
{
	const char *name;
	int res;

	res = each(r, STRING_TABLE, take_string);
	if (res == 0)
		res = each(r, SAMPLE_TYPE, take_sample_type);
	if (res == 0)
		res = each(r, PERIOD_TYPE, take_period_type);
	if (res == 0)
		res = read_scalars(r);
	if (res < 0)
		return res;
	if (!r->n_types)
		return damaged(r, "it has no value types");
	if (r->strings[0].ix) /* there are strings: the types needed them */
		return damaged(r, "its first string is not the empty one");

	r->profile = profile_new(r->d, r->types, r->n_types);
	if (!r->profile)
		return oom(r);
	res = text(r, (int64_t)r->default_name, &name);
	if (res < 0)
		return res;
	r->meta.default_type = default_type(r, name);
	r->meta.comments = r->comments;
	return profile_set_meta(r->profile, &r->meta) < 0 ? oom(r) : 0;
}

static int read_all(struct reader *r)
{
	int res;

	res = read_types(r);
	if (res == 0)
		res = each(r, FUNCTION, take_function);
	if (res == 0)
		res = each(r, MAPPING, take_mapping);
	if (res == 0)
		res = each(r, LOCATION, take_location);
	if (res == 0)
		res = each(r, SAMPLE, take_sample);
	return res;
}

static int read_plain(struct dict *d, struct bytes data, const char *name,
		      struct profile **ret_profile, struct err *e)
{
	_cleanup_(reader_free) struct reader r = {
		.d = d,
		.name = name,
		.e = e,
		.data = data,
		.allocator = { .alloc = scratch_alloc, .free = scratch_free },
		.functions = CHUNKS_OF(struct line),
		.function_ids.entries = CHUNKS_OF(struct id_entry),
		.mapping_ids.entries = CHUNKS_OF(struct id_entry),
		.location_ids.entries = CHUNKS_OF(struct id_entry),
		.meta.period_type = { "", "" },
	};
	int res;

	if (data.len > MAX_PROFILE_BYTES)
		return err_set(e, -EFBIG, "%s: larger than any profile (%zu bytes)", name,
			       data.len);
	r.allocator.allocator_data = &r;
	res = read_all(&r);
	if (res == 0)
		*ret_profile = TAKE_PTR(r.profile);
	return res;
}

int pprof_read(struct dict *d, const void *data, size_t len, const char *name,
	       struct profile **ret_profile, struct err *e)
{
	_cleanup_(freep) void *plain = NULL;
	struct bytes in = bytes_of(data, len);
	size_t plain_len;
	int res;

	if (!is_gzip(in))
		return read_plain(d, in, name, ret_profile, e);
	res = gunzip_file(in, name, &plain, &plain_len, e);
	if (res < 0)
		return res;
	return read_plain(d, bytes_of(plain, plain_len), name, ret_profile, e);
}

int pprof_read_times(const void *data, size_t len, const char *name, int64_t *ret_begin_ns,
		     int64_t *ret_ns, struct err *e)
{
	_cleanup_(freep) void *plain = NULL;
	struct bytes in = bytes_of(data, len);
	int64_t begin_ns = 0, ns = 0;
	struct pprof_field f;
	size_t plain_len;
	int r = is_gzip(in) ? gunzip_file(in, name, &plain, &plain_len, e) : 0;

	if (r < 0)
		return r;
	if (plain)
		in = bytes_of(plain, plain_len);
	while (in.len) {
		if (pprof_next_field(&in, &f) < 0)
			return err_set(e, -EBADMSG, "%s: not a whole pprof profile", name);
		if (f.wire == VARINT && f.number == TIME_NANOS)
			begin_ns = (int64_t)f.value;
		if (f.wire == VARINT && f.number == DURATION_NANOS)
			ns = (int64_t)f.value;
	}
	if (begin_ns <= 0 || ns < 0 || ns > INT64_MAX - begin_ns)
		return err_set(e, -EBADMSG, "%s: the profile does not say when it was taken", name);
	*ret_begin_ns = begin_ns;
	*ret_ns = ns;
	return 0;
}
