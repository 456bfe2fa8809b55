/*
 * The profile goes out in pieces, because protobuf messages may be joined: each piece is a Profile
 * with one element in it. So memory is needed for the id tables only, not for a second copy of
 * the samples.
 */
#include "model/pprof.h"

#include "base/chunks.h"
#include "base/hash.h"
#include "base/strbuf.h"
#include "profile.pb-c.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

typedef Perftools__Profiles__Profile pb_profile;
typedef Perftools__Profiles__ValueType pb_value_type;
typedef Perftools__Profiles__Sample pb_sample;
typedef Perftools__Profiles__Label pb_label;
typedef Perftools__Profiles__Mapping pb_mapping;
typedef Perftools__Profiles__Location pb_location;
typedef Perftools__Profiles__Line pb_line;
typedef Perftools__Profiles__Function pb_function;

/* Functions are one only if all their fields are equal. */
struct function_key {
	string_id name, system_name, file;
	uint32_t start_line;
};

struct function_entry {
	struct function_key key;
	uint64_t id;
	UT_hash_handle hh;
};

/* What the samples use of a module. */
struct module_use {
	uint64_t lo, hi;     /* addresses seen, inclusive */
	uint32_t mapping_id; /* 0: none                    */
	uint32_t n_roots;    /* samples that begin in it   */
	bool used;           /* false: main, without a sample in it */
	bool functions, files, lines, inlines;
};

/* Dict ids → numbers in the file; 0 is "not yet". */
struct writer {
	const struct profile *p;
	struct dict *d;
	ProtobufCBuffer base; /* first thing protobuf-c sees of us */
	struct sink *out;
	uint32_t *string_ix, *strings, n_strings;       /* strings: in order of the file */
	uint32_t *location_id, *locations, n_locations; /* locations: likewise            */
	struct module_use *modules;
	uint32_t *mappings, n_mappings; /* module ids in order of the file */
	struct chunks functions;
	struct function_entry *by_key;
	struct strbuf text;
	string_id *error_keys, count; /* by value type and label; "count"  */
	uint64_t *frames;             /* scratch of one sample */
	pb_label *labels;
	pb_label **label_ptrs;
	uint32_t max_depth, max_labels;
};

static void writer_free(struct writer *w)
{
	free(w->string_ix);
	free(w->strings);
	free(w->location_id);
	free(w->locations);
	free(w->modules);
	free(w->mappings);
	HASH_CLEAR(hh, w->by_key);
	chunks_free(&w->functions);
	strbuf_free(&w->text);
	free(w->error_keys);
	free(w->frames);
	free(w->labels);
	free(w->label_ptrs);
}

static void append(ProtobufCBuffer *buffer, size_t len, const uint8_t *data)
{
	struct writer *w = (struct writer *)((char *)buffer - offsetof(struct writer, base));

	sink_write(w->out, data, len);
}

static void put(struct writer *w, const pb_profile *piece)
{
	perftools__profiles__profile__pack_to_buffer(piece, &w->base);
}

/* --- strings --- */

static int64_t string(struct writer *w, string_id id)
{
	if (id.ix && !w->string_ix[id.ix]) {
		w->strings[w->n_strings] = id.ix;
		w->string_ix[id.ix] = ++w->n_strings; /* 0 is the empty string's */
	}
	return w->string_ix[id.ix];
}

/* For text that the dict has had since writer_init(). */
static int64_t text(struct writer *w, const char *s)
{
	return string(w, dict_string(w->d, s));
}

static void put_string(struct writer *w, char *s)
{
	pb_profile piece = PERFTOOLS__PROFILES__PROFILE__INIT;

	piece.n_string_table = 1;
	piece.string_table = &s;
	put(w, &piece);
}

static int put_strings(struct writer *w)
{
	put_string(w, "");
	for (uint32_t i = 0; i < w->n_strings; i++) {
		const char *s = dict_str(w->d, (string_id){ w->strings[i] });

		strbuf_reset(&w->text);
		strbuf_add_clean(&w->text, s, strlen(s));
		if (strbuf_oom(&w->text))
			return -ENOMEM;
		put_string(w, w->text.s ? w->text.s : "");
	}
	return 0;
}

/* --- what is used --- */

static void use_location(struct writer *w, location_id id)
{
	const struct location *loc = dict_location_get(w->d, id);
	struct module_use *m = &w->modules[loc->module.ix];

	if (w->location_id[id.ix])
		return;
	w->locations[w->n_locations] = id.ix;
	w->location_id[id.ix] = ++w->n_locations;
	if (!m->used && loc->module.ix) {
		w->mappings[w->n_mappings] = loc->module.ix;
		m->mapping_id = ++w->n_mappings;
		m->lo = m->hi = loc->vaddr;
		m->used = true;
	}
	m->lo = loc->vaddr < m->lo ? loc->vaddr : m->lo;
	m->hi = loc->vaddr > m->hi ? loc->vaddr : m->hi;
	m->functions |= loc->n_lines > 0;
	m->inlines |= loc->n_lines > 1;
	for (uint32_t i = 0; i < loc->n_lines; i++) {
		m->files |= loc->lines[i].file.ix != 0;
		m->lines |= loc->lines[i].line != 0;
	}
}

static void use_sample(struct writer *w, struct profile_sample s)
{
	uint32_t depth = dict_stack_depth(w->d, s.stack), n_labels;
	struct module_use *root = NULL;
	struct value_error error;

	for (stack_id at = s.stack; at.ix; at = dict_stack_parent(w->d, at)) {
		location_id leaf = dict_stack_leaf(w->d, at);

		use_location(w, leaf);
		root = &w->modules[dict_location_get(w->d, leaf)->module.ix];
	}
	if (root)
		root->n_roots++;
	if (depth > w->max_depth)
		w->max_depth = depth;
	dict_labels_get(w->d, s.labels, &n_labels);
	for (uint32_t i = 0; s.errors && i < profile_n_types(w->p); i++)
		if (profile_error(&s, i, &error))
			n_labels += ERROR_LABELS_MAX;
	if (n_labels > w->max_labels)
		w->max_labels = n_labels;
}

/* The process name of more samples than all others together, if there is one (Boyer and Moore). */
static const char *most_comm(const struct writer *w)
{
	string_id comm = { 0 };
	uint32_t lead = 0;

	for (uint32_t i = 0; i < profile_n_samples(w->p); i++) {
		const struct label *l =
			dict_label_find(w->d, profile_sample(w->p, i).labels, "comm");
		string_id its = l ? l->str : (string_id){ 0 };

		if (!lead)
			comm = its;
		lead += its.ix == comm.ix ? 1 : -1u;
	}
	return dict_str(w->d, comm);
}

/* The kernel names a process after its binary, cut to 15 bytes (TASK_COMM_LEN). */
static bool is_named_after(const char *comm, const char *path)
{
	const char *base = strrchr(path, '/');

	base = base ? base + 1 : path;
	return *comm && strncmp(base, comm, 15) == 0;
}

/*
 * The image that the processes are named after; else the one that most samples begin in, which
 * is libc for most programs. Kernel threads do not count.
 */
static module_id guess_main(const struct writer *w)
{
	const char *comm = most_comm(w);
	module_id best = { 0 };
	uint32_t best_roots = 0;

	for (uint32_t i = 1; i <= dict_module_count(w->d); i++) {
		const struct module *m = dict_module_get(w->d, (module_id){ i });

		if (m->kind == MODULE_ELF && is_named_after(comm, dict_str(w->d, m->path)))
			return (module_id){ i };
	}
	for (uint32_t i = 0; i < w->n_mappings; i++) {
		module_id m = { w->mappings[i] };

		if (dict_module_get(w->d, m)->kind == MODULE_ELF &&
		    w->modules[m.ix].n_roots > best_roots) {
			best = m;
			best_roots = w->modules[m.ix].n_roots;
		}
	}
	return best;
}

/* Moves `main` to the front, used or not. */
static void order_mappings(struct writer *w, module_id main)
{
	uint32_t at = 0;

	if (!main.ix)
		return;
	while (at < w->n_mappings && w->mappings[at] != main.ix)
		at++;
	if (at == w->n_mappings)
		w->n_mappings++;
	memmove(w->mappings + 1, w->mappings, at * sizeof(*w->mappings));
	w->mappings[0] = main.ix;
	for (uint32_t i = 0; i < w->n_mappings; i++)
		w->modules[w->mappings[i]].mapping_id = i + 1;
}

/* Before the tables of strings are made: every name that the labels of errors may have. */
static int init_error_keys(struct writer *w)
{
	uint32_t n = profile_n_types(w->p);
	char key[256];

	w->error_keys = calloc(n * N_ERROR_LABELS, sizeof(*w->error_keys));
	if (!w->error_keys)
		return -ENOMEM;
	for (uint32_t i = 0; i < n * N_ERROR_LABELS && profile_has_errors(w->p); i++) {
		snprintf(key, sizeof(key), "%.200s%s", profile_type(w->p, i / N_ERROR_LABELS)->name,
			 value_error_labels[i % N_ERROR_LABELS]);
		w->error_keys[i] = dict_string(w->d, key);
	}
	w->count = dict_string(w->d, "count");
	return 0;
}

static int writer_init(struct writer *w, const struct profile *p, struct sink *out)
{
	uint32_t n_strings, n_locations, n_modules;

	*w = (struct writer){
		.p = p,
		.d = profile_dict(p),
		.base.append = append,
		.out = out,
		.functions = CHUNKS_OF(struct function_entry),
	};
	dict_string(w->d, "//anon"); /* what text() will ask for */
	if (init_error_keys(w) < 0)
		return -ENOMEM;
	n_strings = dict_string_count(w->d) + 1;
	n_locations = dict_location_count(w->d) + 1;
	n_modules = dict_module_count(w->d) + 1;
	w->string_ix = calloc(n_strings, sizeof(*w->string_ix));
	w->strings = calloc(n_strings, sizeof(*w->strings));
	w->location_id = calloc(n_locations, sizeof(*w->location_id));
	w->locations = calloc(n_locations, sizeof(*w->locations));
	w->modules = calloc(n_modules, sizeof(*w->modules));
	w->mappings = calloc(n_modules, sizeof(*w->mappings));
	if (!w->string_ix || !w->strings || !w->location_id || !w->locations || !w->modules ||
	    !w->mappings || dict_oom(w->d))
		return -ENOMEM;

	for (uint32_t i = 0; i < profile_n_samples(p); i++)
		use_sample(w, profile_sample(p, i));
	w->frames = calloc(w->max_depth + 1, sizeof(*w->frames));
	w->labels = calloc(w->max_labels + 1, sizeof(*w->labels));
	w->label_ptrs = calloc(w->max_labels + 1, sizeof(*w->label_ptrs));
	return w->frames && w->labels && w->label_ptrs ? 0 : -ENOMEM;
}

/* --- the pieces --- */

static pb_value_type value_type(struct writer *w, const struct value_type *t)
{
	pb_value_type v = PERFTOOLS__PROFILES__VALUE_TYPE__INIT;

	v.type = text(w, t->name);
	v.unit = text(w, t->unit);
	return v;
}

static int put_head(struct writer *w)
{
	const struct profile_meta *meta = profile_get_meta(w->p);
	pb_profile piece = PERFTOOLS__PROFILES__PROFILE__INIT;
	pb_value_type types[PROFILE_MAX_TYPES], *type_ptrs[PROFILE_MAX_TYPES], period;
	_cleanup_(freep) int64_t *comments = NULL;
	size_t n = 0;

	while (meta->comments && meta->comments[n])
		n++;
	comments = calloc(n + 1, sizeof(*comments));
	if (!comments)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		comments[i] = text(w, meta->comments[i]);
	for (uint32_t i = 0; i < profile_n_types(w->p); i++) {
		types[i] = value_type(w, profile_type(w->p, i));
		type_ptrs[i] = &types[i];
	}
	period = value_type(w, &meta->period_type);
	piece.sample_type = type_ptrs;
	piece.n_sample_type = profile_n_types(w->p);
	piece.time_nanos = meta->time_ns;
	piece.duration_nanos = meta->duration_ns;
	piece.period_type = period.type ? &period : NULL;
	piece.period = meta->period;
	piece.comment = comments;
	piece.n_comment = n;
	piece.default_sample_type = types[meta->default_type].type;
	put(w, &piece);
	return 0;
}

/*
 * A range holds every address that is said to lie in it, also where the sample fell into a part
 * of the image that was not known when the module was interned.
 */
static void set_range(pb_mapping *mapping, const struct module *m, const struct module_use *use)
{
	uint64_t start = m->start, limit = m->limit, off = m->file_off;

	if (limit <= start)
		return;
	if (use->used && use->lo < start) {
		off = off > start - use->lo ? off - (start - use->lo) : 0;
		start = use->lo;
	}
	if (use->used && use->hi >= limit)
		limit = use->hi + (use->hi != UINT64_MAX);
	mapping->memory_start = start;
	mapping->memory_limit = limit;
	mapping->file_offset = off;
}

static void put_mapping(struct writer *w, module_id id)
{
	const struct module_use *use = &w->modules[id.ix];
	const struct module *m = dict_module_get(w->d, id);
	pb_profile piece = PERFTOOLS__PROFILES__PROFILE__INIT;
	pb_mapping mapping = PERFTOOLS__PROFILES__MAPPING__INIT, *ptr = &mapping;

	mapping.id = use->mapping_id;
	set_range(&mapping, m, use);
	mapping.filename = m->path.ix ? string(w, m->path) : text(w, "//anon");
	mapping.build_id = string(w, m->build_id);
	mapping.has_functions = use->functions;
	mapping.has_filenames = use->files;
	mapping.has_line_numbers = use->lines;
	mapping.has_inline_frames = use->inlines;
	piece.n_mapping = 1;
	piece.mapping = &ptr;
	put(w, &piece);
}

/* The number of a line's function, written when it is met first; 0 when out of memory. */
static uint64_t function(struct writer *w, const struct line *line)
{
	struct function_key key = { line->function, line->system_name, line->file,
				    line->start_line };
	pb_profile piece = PERFTOOLS__PROFILES__PROFILE__INIT;
	pb_function f = PERFTOOLS__PROFILES__FUNCTION__INIT, *ptr = &f;
	struct function_entry *entry;

	HASH_FIND(hh, w->by_key, &key, sizeof(key), entry);
	if (entry)
		return entry->id;
	entry = chunks_add(&w->functions);
	if (!entry)
		return 0;
	entry->key = key;
	entry->id = w->functions.n;
	HASH_ADD(hh, w->by_key, key, sizeof(key), entry);
	if (!hash_added(entry))
		return 0;
	f.id = entry->id;
	f.name = string(w, key.name.ix ? key.name : key.system_name);
	f.system_name = string(w, key.system_name);
	f.filename = string(w, key.file);
	f.start_line = key.start_line;
	piece.n_function = 1;
	piece.function = &ptr;
	put(w, &piece);
	return f.id;
}

static int put_location(struct writer *w, location_id id)
{
	const struct location *loc = dict_location_get(w->d, id);
	_cleanup_(freep) pb_line *lines = calloc(loc->n_lines + 1, sizeof(*lines));
	_cleanup_(freep) pb_line **ptrs = calloc(loc->n_lines + 1, sizeof(*ptrs));
	pb_profile piece = PERFTOOLS__PROFILES__PROFILE__INIT;
	pb_location location = PERFTOOLS__PROFILES__LOCATION__INIT, *ptr = &location;

	if (!lines || !ptrs)
		return -ENOMEM;
	for (uint32_t i = 0; i < loc->n_lines; i++) {
		perftools__profiles__line__init(&lines[i]);
		lines[i].line = loc->lines[i].line;
		lines[i].function_id = function(w, &loc->lines[i]);
		if (!lines[i].function_id)
			return -ENOMEM;
		ptrs[i] = &lines[i];
	}
	location.id = w->location_id[id.ix];
	location.mapping_id = w->modules[loc->module.ix].mapping_id;
	location.address = loc->vaddr;
	location.n_line = loc->n_lines;
	location.line = ptrs;
	piece.n_location = 1;
	piece.location = &ptr;
	put(w, &piece);
	return 0;
}

/* As labels behind those that there are; how many there are then. */
static uint32_t add_errors(struct writer *w, const struct profile_sample *s, uint32_t n_labels)
{
	struct value_error_number numbers[ERROR_LABELS_MAX];
	struct value_error error;

	for (uint32_t i = 0; i < profile_n_types(w->p); i++) {
		uint32_t n = 0;

		if (profile_error(s, i, &error))
			n = value_error_write(&error, s->values[i], numbers);
		for (uint32_t k = 0; k < n; k++) {
			pb_label *label = &w->labels[n_labels];

			perftools__profiles__label__init(label);
			label->key =
				string(w, w->error_keys[i * N_ERROR_LABELS + numbers[k].label]);
			label->num = numbers[k].number;
			label->num_unit = numbers[k].label == ERROR_LABEL_SAMPLES
						  ? string(w, w->count)
						  : text(w, profile_type(w->p, i)->unit);
			w->label_ptrs[n_labels++] = label;
		}
	}
	return n_labels;
}

static void put_sample(struct writer *w, struct profile_sample s)
{
	pb_profile piece = PERFTOOLS__PROFILES__PROFILE__INIT;
	pb_sample sample = PERFTOOLS__PROFILES__SAMPLE__INIT, *ptr = &sample;
	const struct label *labels;
	uint32_t n_labels, depth = 0;

	for (stack_id at = s.stack; at.ix; at = dict_stack_parent(w->d, at))
		w->frames[depth++] = w->location_id[dict_stack_leaf(w->d, at).ix];
	labels = dict_labels_get(w->d, s.labels, &n_labels);
	for (uint32_t i = 0; i < n_labels; i++) {
		pb_label *label = &w->labels[i];

		perftools__profiles__label__init(label);
		label->key = string(w, labels[i].key);
		label->str = string(w, labels[i].str);
		label->num = labels[i].num;
		label->num_unit = string(w, labels[i].unit);
		w->label_ptrs[i] = label;
	}
	if (s.errors)
		n_labels = add_errors(w, &s, n_labels);
	sample.location_id = w->frames;
	sample.n_location_id = depth;
	sample.value = (int64_t *)s.values;
	sample.n_value = profile_n_types(w->p);
	sample.label = w->label_ptrs;
	sample.n_label = n_labels;
	piece.n_sample = 1;
	piece.sample = &ptr;
	put(w, &piece);
}

static int write_all(struct writer *w, module_id main)
{
	int r;

	order_mappings(w, main.ix ? main : guess_main(w));
	r = put_head(w);
	if (r < 0)
		return r;
	for (uint32_t i = 0; i < w->n_mappings; i++)
		put_mapping(w, (module_id){ w->mappings[i] });
	for (uint32_t i = 0; i < w->n_locations; i++) {
		r = put_location(w, (location_id){ w->locations[i] });
		if (r < 0)
			return r;
	}
	for (uint32_t i = 0; i < profile_n_samples(w->p); i++)
		put_sample(w, profile_sample(w->p, i));
	return put_strings(w);
}

int pprof_write(const struct profile *p, module_id main_module, struct sink *out, struct err *e)
{
	_cleanup_(writer_free) struct writer w = { 0 };
	int r;

	r = writer_init(&w, p, out);
	if (r == 0)
		r = write_all(&w, main_module);
	if (r < 0)
		return err_set(e, r, "out of memory while writing a profile");
	return 0;
}
