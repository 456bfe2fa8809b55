/*
 * A profile as OpenTelemetry has it: a message ProfilesData of opentelemetry-proto 1.11.0 (July 2026),
 * profiles/v1development/profiles.proto, whose fields are those of 1.10.0. The signal is still in development: what reads
 * another version may refuse it.
 *
 * Each value type is a Profile of its own, since a sample has values of one type. Where it is known when they came
 * (model/sample_times.h), a sample has a value and a time for each bin, the time in the bin's middle; otherwise one value
 * and no time. Values of 0 are left out. Tables are shared, and entry 0 of each is empty, as the format asks. Labels are
 * attributes by the names that OpenTelemetry has for them; trace_id and span_id, where both are whole, are a link.
 */
#include "render/formats/otlp.h"
#include "base/chunks.h"
#include "base/hash.h"
#include "base/strbuf.h"
#include "base/version.h"
#include "model/about.h"
#include "model/sample_times.h"
#include "render/formats/text.h"
#include "render/formats/writers.h"

#include <errno.h>
#include <string.h>

enum { TRACE_BYTES = 16, SPAN_BYTES = 8 };
enum wire { VARINT = 0, FIXED64 = 1, BYTES = 2 };

/* An entry of a shared table, found by its bytes; the text of a string, the message of the others. */
struct entry {
	uint32_t ix;
	UT_hash_handle hh;
	uint8_t bytes[];
};

struct table {
	struct entry *by_bytes;
	struct strbuf out; /* all entries, each with its field's number in the dictionary */
	uint32_t n;
	unsigned field;
};

enum { MAPPINGS, LOCATIONS, FUNCTIONS, LINKS, STRINGS, ATTRIBUTES, STACKS, N_TABLES };

struct otlp {
	const struct profile *p;
	struct dict *d;
	const struct otlp_resource *resource; /* NULL: what the profile says of itself */
	struct table tables[N_TABLES];
	uint32_t *location_ix, *mapping_ix; /* by the dict's numbers; 0: not yet */
	struct strbuf part, stack, sample, profile;
	bool oom;
};

/* --- protobuf --------------------------------------------------------------------------------- */

static void put_varint(struct strbuf *out, uint64_t v)
{
	for (; v >= 0x80; v >>= 7)
		strbuf_putc(out, (char)(v | 0x80));
	strbuf_putc(out, (char)v);
}

static void put_key(struct strbuf *out, unsigned field, enum wire wire)
{
	put_varint(out, field << 3 | (unsigned)wire);
}

/* A number of 0 is what a field has that is not there. */
static void put_number(struct strbuf *out, unsigned field, uint64_t v)
{
	if (!v)
		return;
	put_key(out, field, VARINT);
	put_varint(out, v);
}

static void put_fixed(struct strbuf *out, uint64_t v)
{
	for (int i = 0; i < 8; i++)
		strbuf_putc(out, (char)(v >> 8 * i));
}

static void put_bytes(struct strbuf *out, unsigned field, const void *data, size_t len)
{
	put_key(out, field, BYTES);
	put_varint(out, len);
	if (len)
		strbuf_add(out, data, len);
}

static void put_message(struct strbuf *out, unsigned field, const struct strbuf *message)
{
	out->oom |= message->oom;
	put_bytes(out, field, message->s, message->len);
}

/* --- shared tables ---------------------------------------------------------------------------- */

/* The number of an entry, which is new or not. */
static uint32_t table_ix(struct otlp *o, int which, const void *bytes, size_t len)
{
	struct table *t = &o->tables[which];
	struct entry *e;

	HASH_FIND(hh, t->by_bytes, bytes, len, e);
	if (e)
		return e->ix;
	e = calloc(1, sizeof(*e) + len);
	if (!e) {
		o->oom = true;
		return 0;
	}
	if (len)
		memcpy(e->bytes, bytes, len);
	e->ix = t->n++;
	HASH_ADD_KEYPTR(hh, t->by_bytes, e->bytes, len, e);
	if (!hash_added(e)) {
		free(e);
		o->oom = true;
		return 0;
	}
	put_bytes(&t->out, t->field, bytes, len);
	return t->n - 1;
}

static uint32_t message_ix(struct otlp *o, int which, const struct strbuf *message)
{
	o->oom |= message->oom;
	return table_ix(o, which, message->s ? message->s : "", message->len);
}

static uint32_t string_ix(struct otlp *o, const char *text)
{
	struct strbuf clean = { 0 };
	uint32_t ix;

	strbuf_add_clean(&clean, text, strlen(text)); /* a string of protobuf is UTF-8 */
	ix = message_ix(o, STRINGS, &clean);
	strbuf_free(&clean);
	return ix;
}

static int tables_init(struct otlp *o)
{
	static const unsigned fields[N_TABLES] = { 1, 2, 3, 4, 5, 6, 7 };
	static const uint8_t zeros[TRACE_BYTES];
	struct strbuf link = { 0 };

	for (int i = 0; i < N_TABLES; i++)
		o->tables[i].field = fields[i];
	/* Of a link the bytes, all 0: readers expect their lengths. */
	put_bytes(&link, 1, zeros, TRACE_BYTES);
	put_bytes(&link, 2, zeros, SPAN_BYTES);
	for (int i = 0; i < N_TABLES; i++)
		if (i == LINKS)
			message_ix(o, i, &link);
		else
			table_ix(o, i, "", 0);
	strbuf_free(&link);
	o->location_ix = calloc(dict_location_count(o->d) + 1ul, sizeof(*o->location_ix));
	o->mapping_ix = calloc(dict_module_count(o->d) + 1ul, sizeof(*o->mapping_ix));
	return o->location_ix && o->mapping_ix && !o->oom ? 0 : -ENOMEM;
}

static void otlp_fini(struct otlp *o)
{
	for (int i = 0; i < N_TABLES; i++) {
		hash_free(o->tables[i].by_bytes);
		strbuf_free(&o->tables[i].out);
	}
	free(o->location_ix);
	free(o->mapping_ix);
	strbuf_free(&o->part);
	strbuf_free(&o->stack);
	strbuf_free(&o->sample);
	strbuf_free(&o->profile);
}

/* --- attributes ------------------------------------------------------------------------------- */

/* KeyValueAndUnit: `text`, or where that is NULL a number. */
static uint32_t attribute_ix(struct otlp *o, const char *key, const char *text, int64_t number,
			     const char *unit)
{
	struct strbuf value = { 0 }, message = { 0 }, clean = { 0 };
	uint32_t ix;

	if (text) {
		strbuf_add_clean(&clean, text, strlen(text));
		put_message(&value, 1, &clean);
	} else {
		put_key(&value, 3, VARINT); /* also of 0: one of the kinds of value must be there */
		put_varint(&value, (uint64_t)number);
	}
	put_number(&message, 1, string_ix(o, key));
	put_message(&message, 2, &value);
	put_number(&message, 3, string_ix(o, unit));
	ix = message_ix(o, ATTRIBUTES, &message);
	strbuf_free(&value);
	strbuf_free(&message);
	strbuf_free(&clean);
	return ix;
}

/* As OpenTelemetry's semantic conventions call what memscope's labels say; others keep their names. */
static const char *attribute_name(const char *label)
{
	static const char *const names[][2] = {
		{ "pid", "process.pid" },
		{ "tid", "thread.id" },
		{ "comm", "process.executable.name" },
		{ "thread", "thread.name" },
		{ "container", "container.name" },
		{ "container_id", "container.id" },
		{ "pod", "k8s.pod.name" },
		{ "namespace", "k8s.namespace.name" },
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (strcmp(label, names[i][0]) == 0)
			return names[i][1];
	return label;
}

static int hex_digit(char c)
{
	const char *digits = "0123456789abcdef",
		   *at = c ? strchr(digits, c | ('@' < c ? 0x20 : 0)) : NULL;

	return at ? (int)(at - digits) : -1;
}

/* "00ff…": `n` bytes, not all of them 0. */
static bool from_hex(const char *text, size_t n, uint8_t *ret)
{
	uint8_t any = 0;

	if (strlen(text) != 2 * n)
		return false;
	for (size_t i = 0; i < n; i++) {
		int high = hex_digit(text[2 * i]), low = hex_digit(text[2 * i + 1]);

		if (high < 0 || low < 0)
			return false;
		any |= ret[i] = (uint8_t)(high << 4 | low);
	}
	return any != 0;
}

/* 0: the labels have no whole one. */
static uint32_t link_ix(struct otlp *o, labels_id labels)
{
	const struct label *trace = dict_label_find(o->d, labels, "trace_id");
	const struct label *span = dict_label_find(o->d, labels, "span_id");
	uint8_t trace_bytes[TRACE_BYTES], span_bytes[SPAN_BYTES];
	struct strbuf link = { 0 };
	uint32_t ix;

	if (!trace || !span || !from_hex(dict_str(o->d, trace->str), TRACE_BYTES, trace_bytes) ||
	    !from_hex(dict_str(o->d, span->str), SPAN_BYTES, span_bytes))
		return 0;
	put_bytes(&link, 1, trace_bytes, TRACE_BYTES);
	put_bytes(&link, 2, span_bytes, SPAN_BYTES);
	ix = message_ix(o, LINKS, &link);
	strbuf_free(&link);
	return ix;
}

/* The field attribute_indices of a sample. */
static void put_labels(struct otlp *o, labels_id labels, bool linked, struct strbuf *out)
{
	struct strbuf packed = { 0 };
	const struct label *l;
	uint32_t n;

	l = dict_labels_get(o->d, labels, &n);
	for (uint32_t i = 0; i < n; i++) {
		const char *key = dict_str(o->d, l[i].key);

		if (linked && (strcmp(key, "trace_id") == 0 || strcmp(key, "span_id") == 0))
			continue;
		put_varint(&packed, attribute_ix(o, attribute_name(key),
						 l[i].str.ix ? dict_str(o->d, l[i].str) : NULL,
						 l[i].num, dict_str(o->d, l[i].unit)));
	}
	if (packed.len || packed.oom)
		put_message(out, 2, &packed);
	strbuf_free(&packed);
}

/* --- stacks ----------------------------------------------------------------------------------- */

static uint32_t mapping_ix(struct otlp *o, module_id id)
{
	const struct module *m = dict_module_get(o->d, id);
	struct strbuf message = { 0 }, packed = { 0 };
	const char *build_id = dict_str(o->d, m->build_id);

	if (!id.ix || o->mapping_ix[id.ix])
		return o->mapping_ix[id.ix];
	if (m->limit > m->start) {
		put_number(&message, 1, m->start);
		put_number(&message, 2, m->limit);
		put_number(&message, 3, m->file_off);
	}
	put_number(&message, 4, string_ix(o, m->path.ix ? dict_str(o->d, m->path) : "//anon"));
	if (*build_id) {
		put_varint(&packed,
			   attribute_ix(o, "process.executable.build_id.gnu", build_id, 0, ""));
		put_message(&message, 5, &packed);
	}
	o->mapping_ix[id.ix] = message_ix(o, MAPPINGS, &message);
	strbuf_free(&message);
	strbuf_free(&packed);
	return o->mapping_ix[id.ix];
}

static uint32_t function_ix(struct otlp *o, const struct line *line)
{
	struct strbuf message = { 0 };
	uint32_t ix;

	put_number(&message, 1, string_ix(o, dict_str(o->d, line->function)));
	put_number(&message, 2, string_ix(o, dict_str(o->d, line->system_name)));
	put_number(&message, 3, string_ix(o, dict_str(o->d, line->file)));
	put_number(&message, 4, line->start_line);
	ix = message_ix(o, FUNCTIONS, &message);
	strbuf_free(&message);
	return ix;
}

/* What code of that module is, as OpenTelemetry names kinds of frames; NULL: it has no name for that. */
static const char *frame_type(const struct dict *d, const struct module *m)
{
	static const char *const languages[][2] = {
		{ "[Python]", "cpython" }, { "[Java]", "jvm" }, { "[JavaScript]", "v8js" },
		{ "[Ruby]", "ruby" },      { "[PHP]", "php" },  { "[Perl]", "perl" },
	};

	if (m->kind == MODULE_KERNEL)
		return "kernel";
	if (m->kind == MODULE_ELF || m->kind == MODULE_VDSO)
		return "native";
	for (size_t i = 0; m->kind == MODULE_LANG && i < sizeof(languages) / sizeof(*languages);
	     i++)
		if (strcmp(dict_str(d, m->path), languages[i][0]) == 0)
			return languages[i][1];
	return NULL;
}

static uint32_t location_ix(struct otlp *o, location_id id)
{
	const struct location *l = dict_location_get(o->d, id);
	const char *type = frame_type(o->d, dict_module_get(o->d, l->module));
	struct strbuf message = { 0 }, part = { 0 };

	if (o->location_ix[id.ix])
		return o->location_ix[id.ix];
	put_number(&message, 1, mapping_ix(o, l->module));
	put_number(&message, 2, l->vaddr);
	for (uint32_t i = 0; i < l->n_lines; i++) {
		strbuf_reset(&part);
		put_number(&part, 1, function_ix(o, &l->lines[i]));
		put_number(&part, 2, l->lines[i].line);
		put_message(&message, 3, &part);
	}
	if (!message.len) { /* else it would be the entry that stands for none */
		struct line unknown = { .function = dict_string(o->d, "[unknown]") };

		strbuf_reset(&part);
		put_number(&part, 1, function_ix(o, &unknown));
		put_message(&message, 3, &part);
	}
	if (type) {
		strbuf_reset(&part);
		put_varint(&part, attribute_ix(o, "profile.frame.type", type, 0, ""));
		put_message(&message, 4, &part);
	}
	o->location_ix[id.ix] = message_ix(o, LOCATIONS, &message);
	strbuf_free(&message);
	strbuf_free(&part);
	return o->location_ix[id.ix];
}

static uint32_t stack_ix(struct otlp *o, stack_id stack)
{
	struct strbuf *packed = &o->part, *message = &o->stack;

	strbuf_reset(packed);
	strbuf_reset(message);
	for (; stack.ix; stack = dict_stack_parent(o->d, stack))
		put_varint(packed, location_ix(o, dict_stack_leaf(o->d, stack)));
	if (packed->len || packed->oom)
		put_message(message, 1, packed);
	return message_ix(o, STACKS, message);
}

/* --- samples ---------------------------------------------------------------------------------- */

/* Which of the times' values value type `type` is; -1: it has none. */
static int timed_as(const struct sample_times *times, uint32_t type)
{
	for (uint32_t i = 0; times && i < sample_times_n_types(times); i++)
		if (sample_times_type(times, i) == type)
			return (int)i;
	return -1;
}

/* The middle of a bin, within the run. */
static uint64_t bin_time(const struct otlp *o, uint32_t bin)
{
	const struct profile_meta *meta = profile_get_meta(o->p);
	uint64_t width = sample_times_bin_ns(profile_times(o->p)), at = bin * width + width / 2;
	uint64_t most = meta->duration_ns > 0 ? (uint64_t)meta->duration_ns - 1 : at;

	return (uint64_t)meta->time_ns + (at < most ? at : most);
}

/* Field 4, values, and field 5, their times. */
static void put_values(struct otlp *o, uint32_t sample, int64_t value, int timed,
		       struct strbuf *out)
{
	struct strbuf values = { 0 }, at_ns = { 0 };
	struct sample_time entry;

	if (timed < 0) {
		put_varint(&values, (uint64_t)value);
	} else {
		struct sample_time_reader at = sample_times_read(profile_times(o->p), sample);

		while (sample_times_next(&at, &entry)) {
			if (!entry.values[timed])
				continue;
			put_varint(&values, (uint64_t)entry.values[timed]);
			put_fixed(&at_ns, bin_time(o, entry.bin));
		}
	}
	put_message(out, 4, &values);
	if (at_ns.len || at_ns.oom)
		put_message(out, 5, &at_ns);
	strbuf_free(&values);
	strbuf_free(&at_ns);
}

static void put_value_type(struct otlp *o, unsigned field, const struct value_type *t,
			   struct strbuf *out)
{
	struct strbuf message = { 0 };

	put_number(&message, 1, string_ix(o, t->name));
	put_number(&message, 2, string_ix(o, t->unit));
	put_message(out, field, &message);
	strbuf_free(&message);
}

/* Of each value type its own. */
static void put_id(const uint8_t *id, uint32_t type, struct strbuf *out)
{
	uint8_t own[TRACE_BYTES];

	memcpy(own, id, sizeof(own));
	own[TRACE_BYTES - 1] ^= (uint8_t)type;
	put_bytes(out, 7, own, sizeof(own));
}

static bool has_samples(const struct profile *p, uint32_t type)
{
	for (uint32_t i = 0; i < profile_n_samples(p); i++)
		if (profile_sample(p, i).values[type])
			return true;
	return false;
}

static void put_profile(struct otlp *o, uint32_t type, struct strbuf *out)
{
	const struct profile_meta *meta = profile_get_meta(o->p);
	int timed = timed_as(profile_times(o->p), type);
	struct strbuf *profile = &o->profile;

	if (o->resource && !has_samples(o->p, type))
		return; /* "senders SHOULD NOT create empty envelopes" */
	strbuf_reset(profile);
	put_value_type(o, 1, profile_type(o->p, type), profile);
	for (uint32_t i = 0; i < profile_n_samples(o->p); i++) {
		struct profile_sample s = profile_sample(o->p, i);
		uint32_t link;

		if (!s.values[type])
			continue;
		strbuf_reset(&o->sample);
		put_number(&o->sample, 1, stack_ix(o, s.stack));
		link = link_ix(o, s.labels);
		put_labels(o, s.labels, link != 0, &o->sample);
		put_number(&o->sample, 3, link);
		put_values(o, i, s.values[type], timed, &o->sample);
		put_message(profile, 2, &o->sample);
	}
	if (meta->time_ns > 0) {
		put_key(profile, 3, FIXED64);
		put_fixed(profile, (uint64_t)meta->time_ns);
	}
	put_number(profile, 4, meta->duration_ns > 0 ? (uint64_t)meta->duration_ns : 0);
	if (*meta->period_type.name && strcmp(profile_type(o->p, type)->name, OTLP_OFF_CPU) != 0) {
		put_value_type(o, 5, &meta->period_type, profile);
		put_number(profile, 6, (uint64_t)meta->period);
	}
	if (o->resource)
		put_id(o->resource->id, type, profile);
	put_message(out, 2, profile);
}

/* InstrumentationScope: who measured. */
static void put_scope(struct strbuf *out)
{
	struct strbuf scope = { 0 };

	put_bytes(&scope, 1, "memscope", strlen("memscope"));
	put_bytes(&scope, 2, MEMSCOPE_VERSION, strlen(MEMSCOPE_VERSION));
	put_message(out, 1, &scope);
	strbuf_free(&scope);
}

/* KeyValue, an attribute of a resource. */
static void put_attribute(const char *name, const char *text, size_t len, struct strbuf *out)
{
	struct strbuf clean = { 0 }, value = { 0 }, attribute = { 0 };

	strbuf_add_clean(&clean, text, len);
	put_message(&value, 1, &clean);
	put_bytes(&attribute, 1, name, strlen(name));
	put_message(&attribute, 2, &value);
	put_message(out, 1, &attribute);
	strbuf_free(&clean);
	strbuf_free(&value);
	strbuf_free(&attribute);
}

/* Resource: whose profile it is, by default "redis-server (pid 5099)" without the number. */
static void put_resource(const struct otlp *o, struct strbuf *out)
{
	const char *target = profile_about(o->p, ABOUT_TARGET, 0),
		   *end = target ? strstr(target, " (pid ") : NULL;
	struct strbuf resource = { 0 };

	for (uint32_t i = 0; o->resource && i < o->resource->n; i++)
		put_attribute(o->resource->names[i], o->resource->values[i],
			      strlen(o->resource->values[i]), &resource);
	if (!o->resource && target && *target)
		put_attribute("service.name", target, end ? (size_t)(end - target) : strlen(target),
			      &resource);
	if (resource.len || resource.oom)
		put_message(out, 1, &resource);
	strbuf_free(&resource);
}

/* The profile that is to be shown first comes first. */
static void put_profiles(struct otlp *o, const struct render_opts *opts, struct strbuf *out)
{
	uint32_t n = profile_n_types(o->p), first = profile_get_meta(o->p)->default_type;

	if (opts && opts->value_type >= 0) {
		put_profile(o, (uint32_t)opts->value_type, out);
		return;
	}
	first = first < n ? first : 0;
	put_profile(o, first, out);
	for (uint32_t i = 0; i < n; i++)
		if (i != first)
			put_profile(o, i, out);
}

static int write_data(const struct profile *p, const struct render_opts *opts,
		      const struct otlp_resource *of, struct sink *out, struct err *e)
{
	struct otlp o = { .p = p, .d = profile_dict(p), .resource = of };
	struct strbuf scope = { 0 }, resource = { 0 }, head = { 0 }, dictionary = { 0 };
	size_t len = 0;
	bool oom = tables_init(&o) < 0;

	if (!oom) {
		put_scope(&scope);
		put_profiles(&o, opts, &scope);
		put_resource(&o, &resource);
		put_message(&resource, 2, &scope);
		put_message(&head, 1, &resource);
		for (int i = 0; i < N_TABLES; i++) {
			len += o.tables[i].out.len;
			oom |= o.tables[i].out.oom;
		}
		put_key(&dictionary, 2, BYTES);
		put_varint(&dictionary, len);
		oom |= o.oom || head.oom || dictionary.oom;
	}
	if (!oom) {
		sink_write(out, head.s, head.len);
		sink_write(out, dictionary.s, dictionary.len);
		for (int i = 0; i < N_TABLES; i++)
			sink_write(out, o.tables[i].out.s, o.tables[i].out.len);
	}
	strbuf_free(&scope);
	strbuf_free(&resource);
	strbuf_free(&head);
	strbuf_free(&dictionary);
	otlp_fini(&o);
	return oom ? err_set(e, -ENOMEM, "out of memory for OpenTelemetry's profile") : 0;
}

int otlp_write(const struct profile *p, const struct render_opts *opts, struct sink *out,
	       struct err *e)
{
	return write_data(p, opts, NULL, out, e);
}

int otlp_export(const struct profile *p, const struct otlp_resource *of, struct sink *out,
		struct err *e)
{
	return write_data(p, NULL, of, out, e);
}
