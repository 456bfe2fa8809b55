/*
 *   strings   n:4 { len:4 bytes }×n                                          numbered from 1, as all that follows
 *   modules   n:4 { kind:4 path:4 build_id:4 dev:8 ino:8 start:8 limit:8 file_off:8 }×n
 *   locations n:4 { vaddr:8 module:4 named:1 lines:4 { function:4 system:4 file:4 line:4 start:4 }×lines }×n
 *   stacks    n:4 { parent:4 leaf:4 }×n                                      a parent came before
 *   labels    n:4 { n:4 { key:4 str:4 num:8 unit:4 }×n }×n
 *   types     n:4 { name:4 unit:4 }×n
 *   meta      time:8 duration:8 period:8 period_name:4 period_unit:4 default:4 comments n:4 text:4×n
 *   samples   n:4 { stack:4 labels:4 value:8×types errors:4 { type:4 error }×errors }×n
 *   rows      n:4 sample:4×n                                                 0: as many as samples, each its own
 *   times     types:4, and if there are any: type:4×types bin_ns:8 { n:4 { bin:4 value:8×2 }×n }×samples
 *   over time series:4 { id:4 title:4 rows:4 columns:4 time:8×rows { name:4 value:8×rows }×columns }×series
 *             marks:4 { s:8 text:4 message:1 }×marks omitted:8
 */
#include "model/profile_wire.h"

#include "base/put.h"
#include "model/over_time.h"
#include "model/sample_times.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_MAX_BYTES = 256, COMMENTS_MAX = 1 << 16 };

/* --- writing --- */

/* Whole: profile_wire_read() takes as much as there is. */
static void put_all(struct strbuf *b, const char *text)
{
	put_text(b, text, UINT32_MAX);
}

static void write_strings(const struct dict *d, struct strbuf *b)
{
	uint32_t n = dict_string_count(d);

	put_u32(b, n);
	for (uint32_t i = 1; i <= n; i++)
		put_all(b, dict_str(d, (string_id){ i }));
}

static void write_modules(const struct dict *d, struct strbuf *b)
{
	uint32_t n = dict_module_count(d);

	put_u32(b, n);
	for (uint32_t i = 1; i <= n; i++) {
		const struct module *m = dict_module_get(d, (module_id){ i });

		put_u32(b, m->kind);
		put_u32(b, m->path.ix);
		put_u32(b, m->build_id.ix);
		put_u64(b, m->dev);
		put_u64(b, m->ino);
		put_u64(b, m->start);
		put_u64(b, m->limit);
		put_u64(b, m->file_off);
	}
}

static void write_locations(const struct dict *d, struct strbuf *b)
{
	uint32_t n = dict_location_count(d);

	put_u32(b, n);
	for (uint32_t i = 1; i <= n; i++) {
		const struct location *l = dict_location_get(d, (location_id){ i });

		put_u64(b, l->vaddr);
		put_u32(b, l->module.ix);
		put_u8(b, l->named);
		put_u32(b, l->n_lines);
		for (uint32_t k = 0; k < l->n_lines; k++) {
			put_u32(b, l->lines[k].function.ix);
			put_u32(b, l->lines[k].system_name.ix);
			put_u32(b, l->lines[k].file.ix);
			put_u32(b, l->lines[k].line);
			put_u32(b, l->lines[k].start_line);
		}
	}
}

static void write_stacks(const struct dict *d, struct strbuf *b)
{
	uint32_t n = dict_stack_count(d) - 1;

	put_u32(b, n);
	for (uint32_t i = 1; i <= n; i++) {
		put_u32(b, dict_stack_parent(d, (stack_id){ i }).ix);
		put_u32(b, dict_stack_leaf(d, (stack_id){ i }).ix);
	}
}

/* Up to the last that a sample has. */
static void write_labels(const struct profile *p, struct strbuf *b)
{
	const struct dict *d = profile_dict(p);
	uint32_t last = 0;

	for (uint32_t i = 0; i < profile_n_samples(p); i++) {
		uint32_t ix = profile_sample(p, i).labels.ix;

		last = ix > last ? ix : last;
	}
	put_u32(b, last);
	for (uint32_t i = 1; i <= last; i++) {
		uint32_t n;
		const struct label *labels = dict_labels_get(d, (labels_id){ i }, &n);

		put_u32(b, n);
		for (uint32_t k = 0; k < n; k++) {
			put_u32(b, labels[k].key.ix);
			put_u32(b, labels[k].str.ix);
			put_u64(b, (uint64_t)labels[k].num);
			put_u32(b, labels[k].unit.ix);
		}
	}
}

static void write_types(const struct profile *p, struct strbuf *b)
{
	uint32_t n = profile_n_types(p);

	put_u32(b, n);
	for (uint32_t i = 0; i < n; i++) {
		put_all(b, profile_type(p, i)->name);
		put_all(b, profile_type(p, i)->unit);
	}
}

static void write_meta(const struct profile *p, struct strbuf *b)
{
	const struct profile_meta *m = profile_get_meta(p);
	uint32_t n = 0;

	put_u64(b, (uint64_t)m->time_ns);
	put_u64(b, (uint64_t)m->duration_ns);
	put_u64(b, (uint64_t)m->period);
	put_all(b, m->period_type.name);
	put_all(b, m->period_type.unit);
	put_u32(b, m->default_type);
	while (m->comments && m->comments[n])
		n++;
	put_u32(b, n);
	for (uint32_t i = 0; i < n; i++)
		put_all(b, m->comments[i]);
}

static void write_errors(const struct profile_sample *s, uint32_t n_types, struct strbuf *b)
{
	struct value_error e;
	uint32_t n = 0;

	for (uint32_t t = 0; s->errors && t < n_types; t++)
		n += profile_error(s, t, &e);
	put_u32(b, n);
	for (uint32_t t = 0; n && t < n_types; t++)
		if (profile_error(s, t, &e)) {
			put_u32(b, t);
			strbuf_add(b, &e, sizeof(e));
		}
}

static void write_samples(const struct profile *p, struct strbuf *b)
{
	uint32_t n = profile_n_samples(p), n_types = profile_n_types(p);

	put_u32(b, n);
	for (uint32_t i = 0; i < n; i++) {
		struct profile_sample s = profile_sample(p, i);

		put_u32(b, s.stack.ix);
		put_u32(b, s.labels.ix);
		strbuf_add(b, s.values, n_types * sizeof(*s.values));
		write_errors(&s, n_types, b);
	}
}

static void write_rows(const struct profile *p, struct strbuf *b)
{
	uint32_t n = profile_n_rows(p);
	bool own = n == profile_n_samples(p);

	for (uint32_t i = 0; own && i < n; i++)
		own = profile_row_sample(p, i) == i;
	put_u32(b, own ? 0 : n);
	for (uint32_t i = 0; !own && i < n; i++)
		put_u32(b, profile_row_sample(p, i));
}

static void write_times(const struct profile *p, struct strbuf *b)
{
	const struct sample_times *t = profile_times(p);

	put_u32(b, t ? sample_times_n_types(t) : 0);
	if (!t)
		return;
	for (uint32_t i = 0; i < sample_times_n_types(t); i++)
		put_u32(b, sample_times_type(t, i));
	put_u64(b, sample_times_bin_ns(t));
	for (uint32_t i = 0; i < profile_n_samples(p); i++) {
		struct sample_time_reader at = sample_times_read(t, i);
		struct sample_time entry;

		put_u32(b, sample_times_count(t, i));
		while (sample_times_next(&at, &entry)) {
			put_u32(b, entry.bin);
			strbuf_add(b, entry.values, sizeof(entry.values));
		}
	}
}

static void write_over_time(const struct profile *p, struct strbuf *b)
{
	const struct over_time *o = profile_over_time(p);

	put_u32(b, o ? o->n_series : 0);
	for (uint32_t i = 0; o && i < o->n_series; i++) {
		const struct time_table *t = o->series[i].table;

		put_all(b, o->series[i].id);
		put_all(b, o->series[i].title);
		put_u32(b, t->n_rows);
		put_u32(b, t->n_columns);
		strbuf_add(b, t->times_s, t->n_rows * sizeof(*t->times_s));
		for (uint32_t c = 0; c < t->n_columns; c++) {
			put_all(b, t->columns[c].name);
			strbuf_add(b, t->columns[c].values, t->n_rows * sizeof(double));
		}
	}
	put_u32(b, o ? o->n_marks : 0);
	for (uint32_t i = 0; o && i < o->n_marks; i++) {
		strbuf_add(b, &o->marks[i].s, sizeof(o->marks[i].s));
		put_u32(b, o->marks[i].text.ix);
		put_u8(b, o->marks[i].message);
	}
	put_u64(b, o ? o->omitted : 0);
	put_u8(b, o != NULL);
}

void profile_wire_write(const struct profile *p, struct strbuf *out)
{
	const struct dict *d = profile_dict(p);

	write_strings(d, out);
	write_modules(d, out);
	write_locations(d, out);
	write_stacks(d, out);
	write_labels(p, out);
	write_types(p, out);
	write_meta(p, out);
	write_samples(p, out);
	write_rows(p, out);
	write_times(p, out);
	write_over_time(p, out);
}

/* --- reading --- */

/* What a number of theirs is here; index 0 is nothing, in each. */
struct ids {
	uint32_t *at;
	uint32_t n; /* the highest */
};

struct reading {
	struct dict *d;
	struct bytes *b;
	struct ids strings, modules, locations, stacks, labels;
};

/* A count of things that take `bytes` each at least, and room for what they are here. */
static int begin(struct reading *r, struct ids *ids, size_t bytes)
{
	uint32_t n;

	if (bytes_u32(r->b, &n) < 0 || n > r->b->len / bytes)
		return -EBADMSG;
	ids->at = calloc(n + 1ul, sizeof(*ids->at));
	ids->n = n;
	return ids->at ? 0 : -ENOMEM;
}

static int count(struct bytes *b, size_t bytes, uint32_t *ret)
{
	return bytes_u32(b, ret) < 0 || *ret > b->len / bytes ? -EBADMSG : 0;
}

static int take(struct bytes *b, const struct ids *ids, uint32_t *ret)
{
	uint32_t i;

	if (bytes_u32(b, &i) < 0 || i > ids->n)
		return -EBADMSG;
	*ret = ids->at[i];
	return 0;
}

static int take_text(struct bytes *b, struct bytes *ret)
{
	uint32_t len;

	return bytes_u32(b, &len) < 0 ? -EBADMSG : bytes_take(b, len, ret);
}

static int read_strings(struct reading *r)
{
	int code = begin(r, &r->strings, 4);

	for (uint32_t i = 1; code == 0 && i <= r->strings.n; i++) {
		struct bytes text;

		code = take_text(r->b, &text);
		if (code == 0)
			r->strings.at[i] =
				dict_string_n(r->d, (const char *)text.data, text.len).ix;
	}
	return code;
}

static int read_modules(struct reading *r)
{
	int code = begin(r, &r->modules, 52);

	for (uint32_t i = 1; code == 0 && i <= r->modules.n; i++) {
		struct module m = { 0 };
		uint32_t kind;

		if (bytes_u32(r->b, &kind) < 0 || kind > MODULE_LANG ||
		    take(r->b, &r->strings, &m.path.ix) < 0 ||
		    take(r->b, &r->strings, &m.build_id.ix) < 0 || bytes_u64(r->b, &m.dev) < 0 ||
		    bytes_u64(r->b, &m.ino) < 0 || bytes_u64(r->b, &m.start) < 0 ||
		    bytes_u64(r->b, &m.limit) < 0 || bytes_u64(r->b, &m.file_off) < 0)
			return -EBADMSG;
		m.kind = kind;
		r->modules.at[i] = dict_module(r->d, &m).ix;
	}
	return code;
}

static int take_line(struct reading *r, struct line *ret)
{
	if (take(r->b, &r->strings, &ret->function.ix) < 0 ||
	    take(r->b, &r->strings, &ret->system_name.ix) < 0 ||
	    take(r->b, &r->strings, &ret->file.ix) < 0 || bytes_u32(r->b, &ret->line) < 0 ||
	    bytes_u32(r->b, &ret->start_line) < 0)
		return -EBADMSG;
	return 0;
}

static int read_locations(struct reading *r)
{
	int code = begin(r, &r->locations, 17);

	for (uint32_t i = 1; code == 0 && i <= r->locations.n; i++) {
		_cleanup_(freep) struct line *lines = NULL;
		struct line one;
		uint64_t vaddr;
		module_id m;
		uint32_t n;
		uint8_t named;

		if (bytes_u64(r->b, &vaddr) < 0 || take(r->b, &r->modules, &m.ix) < 0 ||
		    bytes_u8(r->b, &named) < 0 || count(r->b, 20, &n) < 0)
			return -EBADMSG;
		if (n > 1 && !(lines = calloc(n, sizeof(*lines))))
			return -ENOMEM;
		for (uint32_t k = 0; k < n; k++)
			if (take_line(r, lines ? &lines[k] : &one) < 0)
				return -EBADMSG;
		r->locations.at[i] =
			named ? dict_location_lines(r->d, m, vaddr, lines ? lines : &one, n).ix
			      : dict_location(r->d, m, vaddr).ix;
	}
	return code;
}

static int read_stacks(struct reading *r)
{
	int code = begin(r, &r->stacks, 8);

	for (uint32_t i = 1; code == 0 && i <= r->stacks.n; i++) {
		uint32_t parent;
		location_id leaf;

		if (bytes_u32(r->b, &parent) < 0 || parent >= i ||
		    take(r->b, &r->locations, &leaf.ix) < 0)
			return -EBADMSG;
		r->stacks.at[i] =
			dict_stack_push(r->d, (stack_id){ r->stacks.at[parent] }, leaf).ix;
	}
	return code;
}

static int read_labels(struct reading *r)
{
	int code = begin(r, &r->labels, 4);

	for (uint32_t i = 1; code == 0 && i <= r->labels.n; i++) {
		_cleanup_(freep) struct label *labels = NULL;
		uint32_t n;

		if (count(r->b, 20, &n) < 0)
			return -EBADMSG;
		labels = calloc(n + 1ul, sizeof(*labels));
		if (!labels)
			return -ENOMEM;
		for (uint32_t k = 0; k < n; k++)
			if (take(r->b, &r->strings, &labels[k].key.ix) < 0 ||
			    take(r->b, &r->strings, &labels[k].str.ix) < 0 ||
			    bytes_u64(r->b, (uint64_t *)&labels[k].num) < 0 ||
			    take(r->b, &r->strings, &labels[k].unit.ix) < 0)
				return -EBADMSG;
		r->labels.at[i] = dict_labels(r->d, labels, n).ix;
	}
	return code;
}

static int read_types(struct reading *r, struct profile **ret)
{
	struct value_type types[PROFILE_MAX_TYPES];
	char text[2 * PROFILE_MAX_TYPES][NAME_MAX_BYTES + 1];
	uint32_t n;

	if (bytes_u32(r->b, &n) < 0 || !n || n > PROFILE_MAX_TYPES)
		return -EBADMSG;
	for (uint32_t i = 0; i < 2 * n; i++) {
		struct bytes b;

		if (take_text(r->b, &b) < 0)
			return -EBADMSG;
		snprintf(text[i], sizeof(text[i]), "%.*s",
			 (int)(b.len < NAME_MAX_BYTES ? b.len : NAME_MAX_BYTES),
			 (const char *)b.data);
		if (i % 2)
			types[i / 2] = (struct value_type){ text[i - 1], text[i] };
	}
	*ret = profile_new(r->d, types, n);
	return *ret ? 0 : -ENOMEM;
}

/* As the dict has it: good as long as that is. */
static const char *text_of(struct reading *r)
{
	struct bytes b;

	if (take_text(r->b, &b) < 0)
		return NULL;
	return dict_str(r->d, dict_string_n(r->d, (const char *)b.data, b.len));
}

static int read_meta(struct reading *r, struct profile *p)
{
	_cleanup_(freep) const char **comments = NULL;
	struct profile_meta m = { 0 };
	uint32_t n;

	if (bytes_u64(r->b, (uint64_t *)&m.time_ns) < 0 ||
	    bytes_u64(r->b, (uint64_t *)&m.duration_ns) < 0 ||
	    bytes_u64(r->b, (uint64_t *)&m.period) < 0 || !(m.period_type.name = text_of(r)) ||
	    !(m.period_type.unit = text_of(r)) || bytes_u32(r->b, &m.default_type) < 0 ||
	    m.default_type >= profile_n_types(p) || count(r->b, 4, &n) < 0 || n > COMMENTS_MAX)
		return -EBADMSG;
	comments = calloc(n + 1ul, sizeof(*comments));
	if (!comments)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++)
		if (!(comments[i] = text_of(r)))
			return -EBADMSG;
	m.comments = n ? comments : NULL;
	return profile_set_meta(p, &m);
}

static int read_sample(struct reading *r, struct profile *p, uint32_t number)
{
	uint32_t n_types = profile_n_types(p), errors, sample = 0;
	int64_t values[PROFILE_MAX_TYPES];
	labels_id labels;
	stack_id stack;
	int code;

	if (take(r->b, &r->stacks, &stack.ix) < 0 || take(r->b, &r->labels, &labels.ix) < 0 ||
	    bytes_copy(r->b, values, n_types * sizeof(*values)) < 0 ||
	    bytes_u32(r->b, &errors) < 0 || errors > n_types)
		return -EBADMSG;
	code = profile_add_to(p, stack, labels, values, &sample);
	/* Each is one of its own: what follows speaks of them by number. */
	if (code == 0 && sample != number)
		code = -EBADMSG;
	for (uint32_t i = 0; code == 0 && i < errors; i++) {
		struct value_error e;
		uint32_t type;

		if (bytes_u32(r->b, &type) < 0 || type >= n_types ||
		    bytes_copy(r->b, &e, sizeof(e)) < 0)
			return -EBADMSG;
		code = profile_add_error(p, stack, labels, type, &e);
	}
	return code;
}

static int read_samples(struct reading *r, struct profile *p)
{
	uint32_t n;
	int code = count(r->b, 12 + 8ul * profile_n_types(p), &n);

	for (uint32_t i = 0; code == 0 && i < n; i++)
		code = read_sample(r, p, i);
	return code;
}

static int read_rows(struct reading *r, struct profile *p)
{
	uint32_t n, sample;
	int code = count(r->b, 4, &n);

	for (uint32_t i = 0; code == 0 && i < n; i++) {
		if (bytes_u32(r->b, &sample) < 0 || sample >= profile_n_samples(p))
			return -EBADMSG;
		code = profile_note_row(p, sample);
	}
	return code;
}

static int read_entries(struct reading *r, struct sample_times *t, uint32_t sample, uint64_t bin_ns)
{
	uint32_t n;
	int code = count(r->b, 4 + 8 * SAMPLE_TIMES_TYPES, &n);

	for (uint32_t i = 0; code == 0 && i < n; i++) {
		int64_t values[SAMPLE_TIMES_TYPES];
		uint32_t bin;

		if (bytes_u32(r->b, &bin) < 0 || bytes_copy(r->b, values, sizeof(values)) < 0 ||
		    bin > INT64_MAX / bin_ns)
			return -EBADMSG;
		code = sample_times_add(t, sample, bin * bin_ns, values);
	}
	return code;
}

static int read_times(struct reading *r, struct profile *p)
{
	_cleanup_(sample_times_freep) struct sample_times *t = NULL;
	uint32_t types[SAMPLE_TIMES_TYPES], n;
	uint64_t bin_ns;
	int code = 0;

	if (bytes_u32(r->b, &n) < 0 || n > SAMPLE_TIMES_TYPES)
		return -EBADMSG;
	if (!n)
		return 0;
	for (uint32_t i = 0; i < n; i++)
		if (bytes_u32(r->b, &types[i]) < 0 || types[i] >= profile_n_types(p))
			return -EBADMSG;
	if (bytes_u64(r->b, &bin_ns) < 0 || !bin_ns || bin_ns > INT64_MAX)
		return -EBADMSG;
	t = sample_times_new(types, n, bin_ns, SAMPLE_TIMES_MAX);
	if (!t)
		return -ENOMEM;
	for (uint32_t i = 0; code == 0 && i < profile_n_samples(p); i++)
		code = read_entries(r, t, i, bin_ns);
	if (code == 0)
		profile_set_times(p, TAKE_PTR(t));
	return code;
}

static int read_table(struct reading *r, uint32_t rows, uint32_t columns, struct time_table **ret)
{
	_cleanup_(time_table_freep) struct time_table *t = NULL;
	_cleanup_(freep) const char **names = NULL;
	struct bytes values = *r->b;

	names = calloc(columns + 1ul, sizeof(*names));
	if (!names)
		return -ENOMEM;
	/* Once for the names, which a table is made with; once for the figures. */
	if (bytes_skip(r->b, rows * sizeof(double)) < 0)
		return -EBADMSG;
	for (uint32_t c = 0; c < columns; c++)
		if (!(names[c] = text_of(r)) || bytes_skip(r->b, rows * sizeof(double)) < 0)
			return -EBADMSG;
	t = time_table_new(names, columns, rows);
	if (!t)
		return -ENOMEM;
	if (bytes_copy(&values, t->times_s, rows * sizeof(double)) < 0)
		return -EBADMSG;
	for (uint32_t c = 0; c < columns; c++) {
		struct bytes name;

		if (take_text(&values, &name) < 0 ||
		    bytes_copy(&values, t->columns[c].values, rows * sizeof(double)) < 0)
			return -EBADMSG;
	}
	*ret = TAKE_PTR(t);
	return 0;
}

static int read_series(struct reading *r, struct over_time *o)
{
	const char *id = text_of(r), *title = id ? text_of(r) : NULL;
	struct time_table *table;
	uint32_t rows, columns;
	int code;

	if (!title || count(r->b, 8, &rows) < 0 || count(r->b, 4, &columns) < 0)
		return -EBADMSG;
	code = read_table(r, rows, columns, &table);
	return code < 0 ? code : over_time_add_series(o, id, title, table);
}

static int read_over_time(struct reading *r, struct profile *p)
{
	_cleanup_(over_time_freep) struct over_time *o = over_time_new();
	uint8_t is_there, message;
	uint32_t n;
	int code = 0;

	if (!o)
		return -ENOMEM;
	if (bytes_u32(r->b, &n) < 0 || n > OVER_TIME_SERIES)
		return -EBADMSG;
	for (uint32_t i = 0; code == 0 && i < n; i++)
		code = read_series(r, o);
	if (code < 0)
		return code;
	if (count(r->b, 13, &n) < 0 || n > OVER_TIME_MARKS)
		return -EBADMSG;
	for (uint32_t i = 0; i < n; i++) {
		struct over_time_mark mark;

		if (bytes_copy(r->b, &mark.s, sizeof(mark.s)) < 0 ||
		    take(r->b, &r->strings, &mark.text.ix) < 0 || bytes_u8(r->b, &message) < 0)
			return -EBADMSG;
		mark.message = message != 0;
		code = over_time_add_mark(o, &mark);
		if (code < 0)
			return code;
	}
	if (bytes_u64(r->b, &o->omitted) < 0 || bytes_u8(r->b, &is_there) < 0)
		return -EBADMSG;
	if (is_there)
		profile_set_over_time(p, TAKE_PTR(o));
	return 0;
}

static int read_dict(struct reading *r)
{
	static int (*const parts[])(struct reading *) = { read_strings, read_modules,
							  read_locations, read_stacks,
							  read_labels };
	int code = 0;

	for (size_t i = 0; code == 0 && i < sizeof(parts) / sizeof(*parts); i++)
		code = parts[i](r);
	return code;
}

static int read_all(struct reading *r, struct profile **ret)
{
	static int (*const parts[])(struct reading *, struct profile *) = { read_meta, read_samples,
									    read_rows, read_times,
									    read_over_time };
	_cleanup_(profile_freep) struct profile *p = NULL;
	int code = read_dict(r);

	if (code == 0)
		code = read_types(r, &p);
	for (size_t i = 0; code == 0 && i < sizeof(parts) / sizeof(*parts); i++)
		code = parts[i](r, p);
	if (code == 0 && dict_oom(r->d))
		code = -ENOMEM;
	if (code == 0)
		*ret = TAKE_PTR(p);
	return code;
}

int profile_wire_read(struct dict *d, struct bytes *b, struct profile **ret_profile)
{
	struct reading r = { .d = d, .b = b };
	struct ids *const all[] = { &r.strings, &r.modules, &r.locations, &r.stacks, &r.labels };
	int code = read_all(&r, ret_profile);

	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
		free(all[i]->at);
	return code;
}
