#include "render/tables/profile_text.h"

#include "analyse/functions.h"
#include "analyse/sites.h"
#include "analyse/top.h"
#include "base/strbuf.h"
#include "model/about.h"
#include "render/formats/text.h"
#include "render/shown.h"
#include "render/tables/call_tree.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { NAME_COLUMNS = 90, ESTIMATES_SHOWN = 3 };

/* A profile on its way into a report. */
struct report {
	const struct profile *p;
	const struct profile_text_opts *o;
	struct shown shown;
	enum site_kind sites;
	int64_t whole;        /* sum of what is positive */
	struct top_row *rows; /* PROFILE_TOP: by self, then by total */
	int n_self, n_total;
	struct profile_sums sums;
	struct strbuf out;
};

/* Never more than there are functions: what a caller asks for is not to be allocated. */
static uint32_t most_rows(const struct profile *p, uint32_t rows)
{
	const struct dict *d = profile_dict(p);
	uint64_t n = 1;

	for (uint32_t i = 1; i <= dict_location_count(d); i++)
		n += 1 + dict_location_get(d, (location_id){ i })->n_lines;
	return n < rows ? (uint32_t)n : rows;
}

static int64_t positive_total(const struct profile *p, uint32_t type)
{
	int64_t sum = 0;

	for (uint32_t i = 0; i < profile_n_samples(p); i++) {
		int64_t v = profile_sample(p, i).values[type];

		if (v > 0 && __builtin_add_overflow(sum, v, &sum))
			return INT64_MAX;
	}
	return sum;
}

/* "12.3 µs  12.5%" to the right of what is there. */
static void add_value(struct report *r, int64_t value, int64_t whole)
{
	struct unit_text text = shown_text(&r->shown, NULL, value);
	uint32_t columns = text_columns(text.s);

	strbuf_printf(&r->out, "%*s%s ", columns < 14 ? (int)(14 - columns) : 0, "", text.s);
	strbuf_printf(&r->out, "%7s ", unit_percent(value, whole).s);
}

static void add_module(struct strbuf *b, const char *module)
{
	bool has_brackets = module[0] == '[';

	if (!*module)
		return;
	strbuf_puts(b, has_brackets ? "  " : "  [");
	text_add(b, TEXT_FOLDED, module, 40);
	strbuf_puts(b, has_brackets ? "" : "]");
}

static const char *self_heading(const struct report *r)
{
	static const char *const headings[] = {
		[SITE_NONE] = "Top by self",
		[SITE_ALLOCATION] =
			"Top by self: allocation sites, without the allocator's own frames",
		[SITE_WAIT] = "Top by self: wait sites, without the kernel's own frames",
	};

	return headings[r->sites];
}

static int64_t whole(double v)
{
	return v >= 0x1p63 ? INT64_MAX : v <= -0x1p63 ? INT64_MIN : (int64_t)v;
}

/* Of a file that may say anything. */
static struct unit_text samples_text(double n)
{
	return unit_count(whole(round(fmax(0, n))));
}

/* "1.1 MiB to 1.4 MiB", to the right of `width` columns. */
static void add_range(struct report *r, const struct interval *i, uint32_t width)
{
	int64_t low = whole(i->low), high = whole(i->high);
	bool bytes = strcmp(r->shown.unit, "bytes") == 0;
	char text[200];
	uint32_t columns;

	if (low == high && high < INT64_MAX)
		snprintf(text, sizeof(text), "counted");
	else if (bytes)
		snprintf(text, sizeof(text), "%s", unit_bytes_range(low, high, false).s);
	else
		snprintf(text, sizeof(text), "%s to %s", shown_text(&r->shown, NULL, low).s,
			 shown_text(&r->shown, NULL, high).s);
	columns = text_columns(text);
	strbuf_printf(&r->out, "%*s%s", columns < width ? (int)(width - columns) : 0, "", text);
}

static void text_table(struct report *r, const char *heading, const struct top_row *rows, int n,
		       bool by_self)
{
	bool sure = !r->sums.estimated;

	strbuf_printf(&r->out, "\n%s\n%14s %7s ", heading, "self", "");
	if (!sure && by_self)
		strbuf_printf(&r->out, "%24s ", "95% interval");
	strbuf_printf(&r->out, "%14s %7s ", "total", "");
	if (!sure && !by_self)
		strbuf_printf(&r->out, "%24s ", "95% interval");
	strbuf_puts(&r->out, " function\n");
	for (int i = 0; i < n; i++) {
		add_value(r, rows[i].self, r->whole);
		if (!sure && by_self)
			add_range(r, &rows[i].self_interval, 24);
		add_value(r, rows[i].total, r->whole);
		if (!sure && !by_self)
			add_range(r, &rows[i].total_interval, 24);
		strbuf_puts(&r->out, sure || by_self ? " " : "  ");
		text_add(&r->out, TEXT_FOLDED, *rows[i].name ? rows[i].name : "[unknown]",
			 NAME_COLUMNS);
		add_module(&r->out, rows[i].module);
		strbuf_putc(&r->out, '\n');
	}
}

static void json_ends(struct strbuf *b, const char *key, const struct interval *i)
{
	strbuf_printf(b, ",\"%s_low\":%.15g,\"%s_high\":%.15g", key, i->low, key, i->high);
}

static void json_table(struct report *r, const char *key, const struct top_row *rows, int n)
{
	struct strbuf *b = &r->out;

	strbuf_printf(b, ",\n\"%s\":[", key);
	for (int i = 0; i < n; i++) {
		strbuf_puts(b, i ? ",\n{\"function\":\"" : "\n{\"function\":\"");
		text_add(b, TEXT_JSON, rows[i].name, UINT32_MAX);
		strbuf_puts(b, "\",\"module\":\"");
		text_add(b, TEXT_JSON, rows[i].module, UINT32_MAX);
		strbuf_printf(b, "\",\"self\":%" PRId64 ",\"total\":%" PRId64, rows[i].self,
			      rows[i].total);
		if (r->sums.estimated) {
			json_ends(b, "self", &rows[i].self_interval);
			json_ends(b, "total", &rows[i].total_interval);
			strbuf_printf(b, ",\"samples\":%.15g", rows[i].samples);
		}
		strbuf_puts(b, "}");
	}
	strbuf_puts(b, "]");
}

static int make_top(struct report *r)
{
	uint32_t cap = most_rows(r->p, r->o->rows), type = r->shown.type;

	r->rows = calloc(2 * (cap + 1ul), sizeof(*r->rows));
	if (!r->rows)
		return -ENOMEM;
	r->n_self = top_functions(r->p, type, TOP_BY_SELF, r->rows, cap);
	if (r->n_self < 0)
		return r->n_self;
	r->n_total = top_functions(r->p, type, TOP_BY_TOTAL, r->rows + r->n_self, cap);
	if (r->n_total < 0)
		return r->n_total;
	return top_intervals(r->p, type, r->rows, (uint32_t)(r->n_self + r->n_total), &r->sums);
}

/* How sure the figures are, and of what. */
static void add_sureness(struct report *r)
{
	const struct value_error *e = &r->sums.all.error;
	bool blocks = r->sites == SITE_ALLOCATION && strcmp(r->shown.unit, "count") == 0;
	bool bursts = value_error_has_groups(e) || e->below != 0 || e->above != 0;

	if (!r->sums.estimated) {
		bool sampled = profile_about(r->p, ABOUT_ESTIMATE, 0) && r->sites != SITE_WAIT;

		strbuf_printf(
			&r->out, "\n%s\n",
			sampled && r->whole     ? "These are estimates whose errors are not known."
			: sampled               ? "No sample is among these values."
			: r->sites == SITE_WAIT ? "Every wait was measured: no sampling error."
						: "Every value is a count: no sampling error.");
		return;
	}
	strbuf_puts(&r->out, "\n95% intervals: ");
	if (r->sums.on_cpu)
		strbuf_printf(&r->out, "shares by %s samples (Wilson).",
			      samples_text(e->samples).s);
	else if (bursts)
		strbuf_printf(&r->out,
			      "variation between bursts, and the error of the tracing cost%s (%s "
			      "calls seen).%s",
			      e->v > 0 ? "; of samples, their sampling error" : "",
			      samples_text(e->samples).s,
			      fabs(e->below) + fabs(e->above) > 0.5 * (double)r->whole
				      ? "\nThe latter is common to all rows: shares are surer than "
					"amounts."
				      : "");
	else
		strbuf_printf(&r->out, "sampling error of %s samples.", samples_text(e->samples).s);
	if (blocks && !bursts)
		strbuf_puts(&r->out, " Where sizes are mixed, those of counts of blocks hold "
				     "nearer 90%.");
	strbuf_putc(&r->out, '\n');
}

static int write_top(struct report *r, bool json)
{
	const struct top_row *total = r->rows + r->n_self;

	if (json) {
		json_table(r, "by_self", r->rows, r->n_self);
		json_table(r, "by_total", total, r->n_total);
		return 0;
	}
	text_table(r, self_heading(r), r->rows, r->n_self, true);
	text_table(r, "Top by total", total, r->n_total, false);
	add_sureness(r);
	return 0;
}

/* --- trees --- */

static void add_left_out(struct report *r, bool left_out)
{
	if (left_out)
		strbuf_printf(&r->out, "Branches below %g%% are not shown; --min 0 shows all.\n",
			      r->o->min_percent);
}

static int write_tree(struct report *r, bool json)
{
	_cleanup_(frame_tree_freep) struct frame_tree *tree = NULL;
	struct call_tree_opts o = { &r->shown, r->whole, r->o->min_percent };
	bool left_out;
	int rc = frame_tree_build(r->p,
				  &(struct frame_tree_opts){
					  .type = r->shown.type,
					  .by = r->o->root_by,
					  .root_comm = r->o->root_comm,
				  },
				  &tree);

	if (rc < 0)
		return rc;
	rc = sites_charge(tree, r->sites);
	if (rc < 0)
		return rc;
	if (json) {
		strbuf_puts(&r->out, ",\n\"tree\":");
		return call_tree_json(tree, &o, &r->out);
	}
	strbuf_puts(&r->out, "\nCall tree\n");
	rc = call_tree_text(tree, &o, &r->out, &left_out);
	add_left_out(r, rc == 0 && left_out);
	return rc;
}

static int64_t self_of(const struct frame_tree *t, const char *function)
{
	int64_t sum = 0;

	for (uint32_t i = 1; i < t->n_nodes; i++)
		if (strcmp(t->nodes[i].name, function) == 0 &&
		    __builtin_add_overflow(sum, t->nodes[i].self, &sum))
			return INT64_MAX;
	return sum;
}

static int function_trees(struct report *r, struct frame_tree **callers,
			  struct frame_tree **callees)
{
	struct frame_tree_opts opts = { .type = r->shown.type, .from = r->o->function };
	int rc = frame_tree_build(r->p, &opts, callees);

	opts.leaf_first = true;
	opts.root_comm = r->o->root_comm;
	opts.by = r->o->root_by;
	return rc < 0 ? rc : frame_tree_build(r->p, &opts, callers);
}

/* Nothing is charged to sites here: malloc's callers are asked for by that name. */
static int write_callers(struct report *r, bool json)
{
	_cleanup_(frame_tree_freep) struct frame_tree *callers = NULL, *callees = NULL;
	struct call_tree_opts up = { &r->shown, 0, r->o->min_percent, .no_self = true };
	struct call_tree_opts down = { &r->shown, 0, r->o->min_percent };
	bool left_out[2];
	int64_t self;
	int rc = function_trees(r, &callers, &callees);

	if (rc < 0)
		return rc;
	up.whole = down.whole = callees->nodes[0].total;
	self = self_of(callees, r->o->function);
	if (json) {
		strbuf_puts(&r->out, ",\n\"function\":\"");
		text_add(&r->out, TEXT_JSON, r->o->function, UINT32_MAX);
		strbuf_printf(&r->out,
			      "\",\"function_total\":%" PRId64 ",\"function_self\":%" PRId64
			      ",\n\"callers\":",
			      up.whole, self);
		rc = call_tree_json(callers, &up, &r->out);
		strbuf_puts(&r->out, ",\n\"callees\":");
		return rc < 0 ? rc : call_tree_json(callees, &down, &r->out);
	}
	strbuf_puts(&r->out, "\n");
	text_add(&r->out, TEXT_FOLDED, r->o->function, NAME_COLUMNS);
	strbuf_printf(&r->out, ": total %s (%s), ", shown_text(&r->shown, NULL, up.whole).s,
		      unit_percent(up.whole, r->whole).s);
	strbuf_printf(&r->out, "self %s (%s)\n", shown_text(&r->shown, NULL, self).s,
		      unit_percent(self, r->whole).s);
	strbuf_puts(&r->out, "\nCallers, in percent of its total\n");
	rc = call_tree_text(callers, &up, &r->out, &left_out[0]);
	strbuf_puts(&r->out, "\nCallees, in percent of its total\n");
	if (rc == 0)
		rc = call_tree_text(callees, &down, &r->out, &left_out[1]);
	add_left_out(r, rc == 0 && (left_out[0] || left_out[1]));
	return rc;
}

/* --- parts --- */

struct part {
	const char *name;
	int64_t self, total;
};

static int compare_parts(const void *a, const void *b)
{
	const struct part *x = a, *y = b;

	if (x->self != y->self)
		return x->self > y->self ? -1 : 1;
	if (x->total != y->total)
		return x->total > y->total ? -1 : 1;
	return strcmp(x->name, y->name);
}

/* The first level of the tree: its totals are what the parts have. */
static uint32_t label_parts(const struct frame_tree *t, struct part *parts)
{
	uint32_t n = 0;

	for (uint32_t i = t->nodes[0].first_child; i; i = t->nodes[i].next_sibling)
		parts[n++] =
			(struct part){ t->nodes[i].name, t->nodes[i].total, t->nodes[i].total };
	return n;
}

static int module_parts(const struct frame_tree *t, struct part *parts)
{
	_cleanup_(functions_fini) struct functions f = { 0 };
	uint32_t n = 0;

	if (functions_make_modules(t, &f) < 0)
		return -ENOMEM;
	for (uint32_t i = 0; i < f.n; i++)
		if (f.rows[i].total > 0)
			parts[n++] = (struct part){ *f.rows[i].name ? f.rows[i].name : "[unknown]",
						    f.rows[i].self, f.rows[i].total };
	return (int)n;
}

static bool by_module(const struct report *r)
{
	return strcmp(r->o->by, "module") == 0;
}

static int make_parts(struct report *r, struct frame_tree **tree, struct part **parts)
{
	bool processes = strcmp(r->o->by, "process") == 0;
	struct frame_tree_opts opts = {
		.type = r->shown.type,
		.by = processes || by_module(r) ? NULL : r->o->by,
		.root_comm = processes,
	};
	int n = frame_tree_build(r->p, &opts, tree);

	if (n < 0)
		return n;
	if (by_module(r) && sites_charge(*tree, r->sites) < 0)
		return -ENOMEM;
	*parts = calloc((*tree)->n_nodes, sizeof(**parts));
	if (!*parts)
		return -ENOMEM;
	n = by_module(r) ? module_parts(*tree, *parts) : (int)label_parts(*tree, *parts);
	if (n > 0)
		qsort(*parts, (size_t)n, sizeof(**parts), compare_parts);
	return n;
}

static void json_parts(struct report *r, const struct part *parts, uint32_t n)
{
	strbuf_puts(&r->out, ",\n\"by\":\"");
	text_add(&r->out, TEXT_JSON, r->o->by, UINT32_MAX);
	strbuf_puts(&r->out, "\",\"parts\":[");
	for (uint32_t i = 0; i < n; i++) {
		strbuf_puts(&r->out, i ? ",\n{\"name\":\"" : "\n{\"name\":\"");
		text_add(&r->out, TEXT_JSON, parts[i].name, UINT32_MAX);
		strbuf_puts(&r->out, "\",");
		if (by_module(r))
			strbuf_printf(&r->out, "\"self\":%" PRId64 ",", parts[i].self);
		strbuf_printf(&r->out, "\"total\":%" PRId64 "}", parts[i].total);
	}
	strbuf_puts(&r->out, "]");
}

static int write_parts(struct report *r, bool json)
{
	_cleanup_(frame_tree_freep) struct frame_tree *tree = NULL;
	_cleanup_(freep) struct part *parts = NULL;
	int n = make_parts(r, &tree, &parts);
	uint32_t rows;

	if (n < 0)
		return n;
	rows = (uint32_t)n < r->o->rows ? (uint32_t)n : r->o->rows;
	if (json) {
		json_parts(r, parts, rows);
		return 0;
	}
	strbuf_puts(&r->out, "\nBy ");
	text_add(&r->out, TEXT_FOLDED, r->o->by, NAME_COLUMNS);
	if (by_module(r))
		strbuf_printf(&r->out, "\n%14s %7s %14s %7s  module\n", "self", "", "total", "");
	else
		strbuf_printf(&r->out, "\n%14s\n", "total");
	for (uint32_t i = 0; i < rows; i++) {
		add_value(r, parts[i].self, r->whole);
		if (by_module(r))
			add_value(r, parts[i].total, r->whole);
		strbuf_putc(&r->out, ' ');
		text_add(&r->out, TEXT_FOLDED, parts[i].name, NAME_COLUMNS);
		strbuf_putc(&r->out, '\n');
	}
	if (rows < (uint32_t)n)
		strbuf_printf(&r->out, "Rows not shown: %u; -n %d shows all.\n", (uint32_t)n - rows,
			      n);
	return 0;
}

/* --- all of it --- */

/* Of all: none of on-CPU samples, whose number is that of the CPU time, whatever functions it went to. */
static bool total_interval(const struct report *r, struct interval *ret_interval)
{
	if (!r->sums.estimated || r->sums.on_cpu)
		return false;
	*ret_interval = row_interval(&r->sums.all, &r->sums);
	return ret_interval->low < ret_interval->high;
}

static void add_text_head(struct report *r)
{
	int64_t duration_ns = profile_get_meta(r->p)->duration_ns;
	struct interval all;
	const char *line;

	text_add(&r->out, TEXT_FOLDED, r->shown.title, NAME_COLUMNS);
	strbuf_puts(&r->out, " (");
	text_add(&r->out, TEXT_FOLDED, profile_type(r->p, r->shown.type)->name, NAME_COLUMNS);
	strbuf_putc(&r->out, '/');
	text_add(&r->out, TEXT_FOLDED, r->shown.unit, NAME_COLUMNS);
	strbuf_printf(&r->out, "): %s%s", shown_text(&r->shown, NULL, r->whole).s,
		      *r->shown.noun ? " " : "");
	text_add(&r->out, TEXT_FOLDED, r->shown.noun, NAME_COLUMNS);
	if (duration_ns > 0)
		strbuf_printf(&r->out, " in %s", unit_ns(duration_ns).s);
	if (total_interval(r, &all)) {
		strbuf_puts(&r->out, "; 95% interval ");
		add_range(r, &all, 0);
	}
	strbuf_putc(&r->out, '\n');
	for (uint32_t i = 0; (line = profile_about(r->p, ABOUT_ESTIMATE, i)); i++) {
		strbuf_printf(&r->out, "%s", i < ESTIMATES_SHOWN ? "Estimate: " : "  …\n");
		if (i == ESTIMATES_SHOWN)
			break;
		strbuf_add_clean(&r->out, line, strnlen(line, 500));
		strbuf_putc(&r->out, '\n');
	}
}

static void add_json_head(struct report *r)
{
	struct interval all;
	const char *line;

	strbuf_puts(&r->out, "{\"type\":\"");
	text_add(&r->out, TEXT_JSON, profile_type(r->p, r->shown.type)->name, UINT32_MAX);
	strbuf_puts(&r->out, "\",\"unit\":\"");
	text_add(&r->out, TEXT_JSON, r->shown.unit, UINT32_MAX);
	strbuf_printf(&r->out, "\",\"total\":%" PRId64 ",\"samples\":%u,\"duration_ns\":%" PRId64,
		      r->whole, profile_n_samples(r->p), profile_get_meta(r->p)->duration_ns);
	if (r->o->view == PROFILE_TOP)
		strbuf_printf(&r->out, ",\"estimated\":%s", r->sums.estimated ? "true" : "false");
	if (total_interval(r, &all))
		json_ends(&r->out, "total", &all);
	for (uint32_t i = 0; (line = profile_about(r->p, ABOUT_ESTIMATE, i)); i++) {
		strbuf_puts(&r->out, i ? ",\"" : ",\n\"estimates\":[\"");
		text_add(&r->out, TEXT_JSON, line, UINT32_MAX);
		strbuf_puts(&r->out, "\"");
	}
	if (profile_about(r->p, ABOUT_ESTIMATE, 0))
		strbuf_puts(&r->out, "]");
}

/* No table is of any use; which values there are instead. */
static void add_nothing(struct report *r)
{
	uint32_t n = 0;

	strbuf_puts(&r->out, strncmp(profile_type(r->p, r->shown.type)->name, "inuse_", 6) == 0
				     ? "Nothing was in use any more when the profile was written"
				     : "All values of it are 0");
	for (uint32_t i = 0; i < profile_n_types(r->p); i++) {
		if (i == r->shown.type || !positive_total(r->p, i))
			continue;
		strbuf_puts(&r->out, n++ ? ", " : "; others have some: --value ");
		text_add(&r->out, TEXT_FOLDED, profile_type(r->p, i)->name, NAME_COLUMNS);
	}
	strbuf_puts(&r->out, ".\n");
}

static int write_view(struct report *r, bool json)
{
	switch (r->o->view) {
	case PROFILE_TREE:
		return write_tree(r, json);
	case PROFILE_CALLERS:
		return write_callers(r, json);
	case PROFILE_BY:
		return write_parts(r, json);
	case PROFILE_TOP:
		break;
	}
	return write_top(r, json);
}

static int write_report(const struct profile *p, const struct profile_text_opts *o, bool json,
			struct sink *out, struct err *e)
{
	struct report r = { .p = p, .o = o, .shown = shown_pick(p, o->type) };
	int rc = 0;

	r.whole = positive_total(p, r.shown.type);
	r.sites = sites_kind(p, r.shown.type);
	if (o->view == PROFILE_TOP)
		rc = make_top(&r);
	if (rc == 0)
		(json ? add_json_head : add_text_head)(&r);
	if (rc == 0 && !json && !r.whole)
		add_nothing(&r);
	else if (rc == 0)
		rc = write_view(&r, json);
	if (json)
		strbuf_puts(&r.out, "}\n");
	if (rc < 0 || strbuf_oom(&r.out))
		rc = err_set(e, -ENOMEM, "out of memory for a report");
	else
		sink_write(out, r.out.s, r.out.len);
	strbuf_free(&r.out);
	free(r.rows);
	return rc;
}

int profile_text_write(const struct profile *p, const struct profile_text_opts *o, struct sink *out,
		       struct err *e)
{
	return write_report(p, o, false, out, e);
}

int profile_json_write(const struct profile *p, const struct profile_text_opts *o, struct sink *out,
		       struct err *e)
{
	return write_report(p, o, true, out, e);
}

/* --- a function by its name --- */

/* "parse" is parse, and parse(char const*) */
static bool is_name_of(const char *function, const char *name)
{
	size_t len = strlen(name);

	return strncmp(function, name, len) == 0 && (!function[len] || function[len] == '(');
}

/* What of it is exact is more than what has it as a part. */
struct found {
	const char *name, *others[4];
	uint32_t n;
	bool exact;
};

static void found_add(struct found *f, const char *function, bool exact)
{
	if (exact && !f->exact)
		*f = (struct found){ .exact = true };
	if (f->n && f->name == function) /* interned */
		return;
	for (uint32_t i = 0; i < f->n && i < 4; i++)
		if (f->others[i] == function)
			return;
	if (!f->n)
		f->name = function;
	if (f->n < 4)
		f->others[f->n] = function;
	f->n++;
}

static void find_in_tree(const struct frame_tree *t, const char *name, struct found *f)
{
	for (uint32_t i = 1; i < t->n_nodes; i++) {
		const char *function = t->nodes[i].name;

		if (strcmp(function, name) == 0) {
			*f = (struct found){ .name = function, .n = 1, .exact = true };
			return;
		}
		if (is_name_of(function, name))
			found_add(f, function, true);
		else if (!f->exact && strstr(function, name))
			found_add(f, function, false);
	}
}

int profile_find_function(const struct profile *p, const char *name, const char **ret_name,
			  struct err *e)
{
	_cleanup_(frame_tree_freep) struct frame_tree *tree = NULL;
	struct strbuf list = { 0 };
	struct found f = { 0 };
	int r = 0;

	/* Of all types: a function may have none of one of them. */
	for (uint32_t t = 0; t < profile_n_types(p) && !(f.n == 1 && f.exact); t++) {
		frame_tree_free(tree);
		tree = NULL;
		if (frame_tree_build(p, &(struct frame_tree_opts){ .type = t }, &tree) < 0)
			return err_set(e, -ENOMEM, "out of memory for a report");
		find_in_tree(tree, name, &f);
	}
	if (!f.n)
		return err_set(e, -ENOENT, "no function of this profile is named \"%.200s\"", name);
	if (f.n > 1) {
		for (uint32_t i = 0; i < f.n && i < 4; i++) {
			strbuf_puts(&list, i ? ", " : "");
			strbuf_add_clean(&list, f.others[i], strnlen(f.others[i], 60));
		}
		r = err_set(e, -EINVAL, "several functions have \"%.100s\" in their name: %s%s",
			    name, list.s ? list.s : "", f.n > 4 ? ", …" : "");
	} else {
		*ret_name = f.name;
	}
	strbuf_free(&list);
	return r;
}
