#include "render/tables/profile_text.h"

#include "analyse/selection.h"
#include "model/about.h"
#include "render/formats/text.h"
#include "render/tables/profile_parts.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

enum { NAME_COLUMNS = 90, ESTIMATES_SHOWN = 3 };

/* Of all: none of on-CPU samples, whose number is that of the CPU time, whatever functions it went to. */
static bool total_interval(const struct report *r, struct interval *ret_interval)
{
	if (!r->sums.estimated || r->sums.on_cpu)
		return false;
	*ret_interval = row_interval(&r->sums.all, &r->sums);
	return ret_interval->low < ret_interval->high;
}

/* A part of a profile that was read is all that there is to know. */
static const char *selected(const struct report *r)
{
	return r->o->whole ? profile_about(r->p, ABOUT_SELECTED, 0) : NULL;
}

static void add_text_selected(struct report *r)
{
	if (!selected(r))
		return;
	strbuf_printf(&r->out, "Selected: %s (%s): ", shown_text(&r->shown, NULL, r->part).s,
		      unit_percent(r->part, r->whole).s);
	strbuf_add_clean(&r->out, selected(r), strnlen(selected(r), 400));
	strbuf_putc(&r->out, '\n');
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
	line = profile_about(r->p, ABOUT_TIMES, 0);
	if (duration_ns > 0 && !line)
		strbuf_printf(&r->out, " in %s", unit_ns(duration_ns).s);
	if (total_interval(r, &all)) {
		strbuf_puts(&r->out, "; 95% interval ");
		profile_range(r, &all, 0);
	}
	strbuf_putc(&r->out, '\n');
	if (line) {
		strbuf_puts(&r->out, "Times are ");
		strbuf_add_clean(&r->out, line, strnlen(line, 200));
		strbuf_putc(&r->out, '\n');
	}
	add_text_selected(r);
	for (uint32_t i = 0; (line = profile_about(r->p, ABOUT_ESTIMATE, i)); i++) {
		strbuf_printf(&r->out, "%s", i < ESTIMATES_SHOWN ? "Estimate: " : "  …\n");
		if (i == ESTIMATES_SHOWN)
			break;
		strbuf_add_clean(&r->out, line, strnlen(line, 500));
		strbuf_putc(&r->out, '\n');
	}
}

static void add_json_windows(struct report *r)
{
	const struct profile_windows *w = r->o->windows;

	if (w)
		strbuf_printf(&r->out,
			      ",\n\"windows\":{\"n\":%u,\"begin_ns\":%" PRId64
			      ",\"end_ns\":%" PRId64 ",\"gaps\":%u,\"gaps_ns\":%" PRId64 "}",
			      w->n, w->from_ns, w->to_ns, w->gaps, w->gaps_ns);
}

static void add_json_head(struct report *r)
{
	struct interval all;
	const char *line;

	strbuf_putc(&r->out, '{');
	if (r->o->source) {
		strbuf_puts(&r->out, "\"source\":\"");
		text_add(&r->out, TEXT_JSON, r->o->source, UINT32_MAX);
		strbuf_puts(&r->out, "\",");
	}
	strbuf_puts(&r->out, "\"type\":\"");
	text_add(&r->out, TEXT_JSON, profile_type(r->p, r->shown.type)->name, UINT32_MAX);
	strbuf_puts(&r->out, "\",\"unit\":\"");
	text_add(&r->out, TEXT_JSON, r->shown.unit, UINT32_MAX);
	strbuf_printf(&r->out, "\",\"total\":%" PRId64 ",\"samples\":%u,\"duration_ns\":%" PRId64,
		      r->part, profile_n_samples(r->p), profile_get_meta(r->p)->duration_ns);
	if (selected(r)) {
		strbuf_printf(&r->out, ",\"whole\":%" PRId64 ",\"selected\":\"", r->whole);
		text_add(&r->out, TEXT_JSON, selected(r), UINT32_MAX);
		strbuf_putc(&r->out, '"');
	}
	add_json_windows(r);
	if (r->o->view == PROFILE_TOP)
		strbuf_printf(&r->out, ",\"estimated\":%s", r->sums.estimated ? "true" : "false");
	if (total_interval(r, &all))
		profile_json_ends(&r->out, "total", &all);
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
		if (i == r->shown.type || !profile_positive_total(r->p, i))
			continue;
		strbuf_puts(&r->out, n++ ? ", " : "; others have some: --value ");
		text_add(&r->out, TEXT_FOLDED, profile_type(r->p, i)->name, NAME_COLUMNS);
	}
	strbuf_puts(&r->out, ".\n");
}

static int write_view(struct report *r)
{
	switch (r->o->view) {
	case PROFILE_TREE:
		return profile_tree_write(r);
	case PROFILE_CALLERS:
		return profile_callers_write(r);
	case PROFILE_BY:
		return profile_labels_write(r);
	case PROFILE_TOP:
		break;
	}
	return profile_top_write(r);
}

/* Columns for the largest value, and for what units write: "1,023.9 MiB". */
static uint32_t value_columns(const struct report *r)
{
	uint32_t columns = text_columns(shown_text(&r->shown, NULL, r->whole).s);
	uint32_t least = *r->shown.noun ? 5 : 10;

	return columns > least ? columns : least;
}

static int write_body(struct report *r)
{
	int rc = r->o->view == PROFILE_TOP ? profile_top_make(r) : 0;

	if (rc == 0 && r->form != REPORT_CSV)
		(r->form == REPORT_JSON ? add_json_head : add_text_head)(r);
	if (rc == 0 && r->form == REPORT_TEXT && !r->part)
		add_nothing(r);
	else if (rc == 0)
		rc = write_view(r);
	if (r->form == REPORT_JSON)
		strbuf_puts(&r->out, "}");
	return rc;
}

static int write_report(const struct profile *p, const struct profile_text_opts *o,
			enum report_form form, const char *heading, struct sink *out, struct err *e)
{
	struct report r = { .p = p, .o = o, .form = form, .shown = shown_pick(p, o->type) };
	int rc;

	r.part = profile_positive_total(p, r.shown.type);
	r.whole = o->whole ? o->whole[r.shown.type] : r.part;
	r.sites = sites_kind(p, r.shown.type);
	r.style = (struct row_style){ &r.shown, value_columns(&r), o->width, o->colour };
	if (heading)
		strbuf_puts(&r.out, heading);
	rc = write_body(&r);
	if (rc < 0 || strbuf_oom(&r.out))
		rc = err_set(e, -ENOMEM, "out of memory for a report");
	else
		sink_write(out, r.out.s ? r.out.s : "", r.out.len);
	strbuf_free(&r.out);
	free(r.rows);
	return rc;
}

int profile_text_write(const struct profile *p, const struct profile_text_opts *o, struct sink *out,
		       struct err *e)
{
	return write_report(p, o, REPORT_TEXT, NULL, out, e);
}

int profile_json_write(const struct profile *p, const struct profile_text_opts *o, struct sink *out,
		       struct err *e)
{
	return write_report(p, o, REPORT_JSON, NULL, out, e);
}

/* --- CSV --- */

void profile_csv_begin(struct report *r)
{
	text_add_csv(&r->out, r->o->source ? r->o->source : "");
	strbuf_putc(&r->out, ',');
	text_add_csv(&r->out, profile_type(r->p, r->shown.type)->name);
	strbuf_putc(&r->out, ',');
	text_add_csv(&r->out, r->shown.unit);
	strbuf_putc(&r->out, ',');
}

#define HEADING_TOP                                                                                \
	"source,type,unit,function,module,self,total,self_low,self_high,"                          \
	"total_low,total_high\n"

int profile_csv_write(const struct profile *p, const struct profile_text_opts *o, bool heading,
		      struct sink *out, struct err *e)
{
	static const char *const headings[] = {
		[PROFILE_TOP] = HEADING_TOP,
		[PROFILE_TREE] = "source,type,unit,tree,depth,function,module,self,total\n",
		[PROFILE_CALLERS] = "source,type,unit,tree,depth,function,module,self,total\n",
		[PROFILE_BY] = "source,type,unit,by,name,self,total\n",
	};

	return write_report(p, o, REPORT_CSV, heading ? headings[o->view] : NULL, out, e);
}
