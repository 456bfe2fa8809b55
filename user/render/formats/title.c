#include "render/formats/title.h"

#include "model/about.h"
#include "render/formats/text.h"

#include <ctype.h>
#include <string.h>
#include <time.h>

enum { NAMES = 2, LEAST_NAME = 12 /* columns */ };

/* "web, db and 3 more"; false: there is none. */
static bool add_lines(struct strbuf *out, const struct profile *p, enum about what)
{
	uint32_t n = 0;

	while (profile_about(p, what, n))
		n++;
	for (uint32_t i = 0; i < n && (i < NAMES || n == NAMES + 1); i++) {
		strbuf_puts(out, i ? ", " : "");
		strbuf_puts(out, profile_about(p, what, i));
	}
	if (n > NAMES + 1)
		strbuf_printf(out, " and %u more", n - NAMES);
	return n > 0;
}

/* The process that all samples are of; profiles of others have such labels, too. */
static bool add_process(struct strbuf *out, const struct profile *p)
{
	const struct dict *d = profile_dict(p);
	const struct label *comm = NULL, *pid = NULL;

	for (uint32_t i = 0; i < profile_n_samples(p); i++) {
		labels_id labels = profile_sample(p, i).labels;
		const struct label *c = dict_label_find(d, labels, "comm");
		const struct label *n = dict_label_find(d, labels, "pid");

		if (!c || !c->str.ix || (comm && comm->str.ix != c->str.ix))
			return false;
		if (i && !pid != !n)
			return false;
		if (pid && n && pid->num != n->num)
			return false;
		comm = c;
		pid = n;
	}
	if (!comm)
		return false;
	strbuf_puts(out, dict_str(d, comm->str));
	if (pid)
		strbuf_printf(out, " (pid %lld)", (long long)pid->num);
	return true;
}

static void add_name(struct strbuf *out, const struct profile *p, const char *what)
{
	if (!add_lines(out, p, ABOUT_TITLE) && !add_lines(out, p, ABOUT_TARGET) &&
	    !add_process(out, p))
		strbuf_puts(out, what ? what : "");
}

/* Of a difference both, where they differ. */
static void add_names(struct strbuf *out, const struct profile *p, const struct render_opts *opts)
{
	struct strbuf before = { 0 }, after = { 0 };

	add_name(&after, p, opts->what);
	if (opts->before)
		add_name(&before, opts->before, opts->before_what);
	if (before.len && strcmp(before.s, after.s ? after.s : "") != 0) {
		strbuf_puts(out, before.s);
		strbuf_puts(out, " → ");
	}
	strbuf_puts(out, after.s ? after.s : "");
	strbuf_free(&before);
	strbuf_free(&after);
}

static bool add_time(struct strbuf *out, const struct profile *p)
{
	time_t sec = profile_get_meta(p)->time_ns / 1000000000;
	char when[32];
	struct tm tm;

	if (sec <= 0 || !localtime_r(&sec, &tm) ||
	    !strftime(when, sizeof(when), "%Y-%m-%d %H:%M:%S", &tm))
		return false;
	strbuf_puts(out, when);
	return true;
}

void title_who_add(struct strbuf *out, const struct profile *p, const struct render_opts *opts,
		   const struct shown *shown, uint32_t max_columns)
{
	struct strbuf name = { 0 }, kind = { 0 };
	const char *title = shown->title;
	uint32_t columns;

	add_names(&name, p, opts);
	if (name.len && *title) {
		/* "on-CPU", after a name */
		strbuf_puts(&kind, ", ");
		strbuf_putc(&kind, (char)tolower((unsigned char)*title++));
	}
	strbuf_puts(&kind, title);
	columns = kind.s ? text_columns(kind.s) : 0;
	columns = max_columns > columns + LEAST_NAME ? max_columns - columns : LEAST_NAME;
	if (name.s && text_columns(name.s) > columns)
		text_add(out, TEXT_PLAIN, name.s, columns);
	else
		strbuf_puts(out, name.s ? name.s : "");
	strbuf_puts(out, kind.s ? kind.s : "");
	out->oom |= name.oom || kind.oom;
	strbuf_free(&name);
	strbuf_free(&kind);
}

void title_facts_add(struct strbuf *out, const struct profile *p, const struct render_opts *opts,
		     const struct shown *shown, int64_t total)
{
	int64_t duration_ns = profile_get_meta(p)->duration_ns;

	if (opts->before) {
		strbuf_puts(out, "difference");
		if (profile_get_meta(p)->time_ns > 0 &&
		    profile_get_meta(opts->before)->time_ns > 0) {
			strbuf_puts(out, ", ");
			add_time(out, opts->before);
			strbuf_puts(out, " → ");
			add_time(out, p);
		}
		return;
	}
	if (add_time(out, p))
		strbuf_puts(out, ", ");
	if (duration_ns > 0)
		strbuf_printf(out, "%s, ", unit_ns(duration_ns).s);
	if (opts->countname || *shown->noun)
		strbuf_printf(out, "%s %s", shown_text(shown, opts->countname, total).s,
			      shown_noun(shown, opts->countname));
	else
		strbuf_printf(out, "total %s", shown_text(shown, NULL, total).s);
}

static bool is(const struct value_type *t, const char *name, const char *unit)
{
	return strcmp(t->name, name) == 0 && strcmp(t->unit, unit) == 0;
}

void title_how_add(struct strbuf *out, const struct profile *p, const struct render_opts *opts,
		   const struct shown *shown)
{
	const struct profile_meta *meta = profile_get_meta(p);
	const struct value_type *period = &meta->period_type;
	bool time = is(period, "cpu", "nanoseconds");
	const char *line;

	if (opts->before)
		return;
	for (uint32_t i = 0; (line = profile_about(p, ABOUT_ESTIMATE, i)); i++)
		strbuf_printf(out, " · estimated: %s", line);
	if (profile_about(p, ABOUT_ESTIMATE, 0) || meta->period <= 1)
		return;
	if (time && is(profile_type(p, shown->type), "samples", "count"))
		strbuf_printf(out, " · sampled at %.4g Hz", 1e9 / (double)meta->period);
	else if (is(period, "space", "bytes"))
		strbuf_printf(out, " · one sample in %s", unit_bytes(meta->period).s);
	else if (!time && *period->name && strcmp(period->unit, "count") == 0)
		strbuf_printf(out, " · one sample every %s %s", unit_count(meta->period).s,
			      period->name);
}

void title_add(struct strbuf *out, const struct profile *p, const struct render_opts *opts,
	       const struct shown *shown, int64_t total)
{
	title_who_add(out, p, opts, shown, UINT32_MAX);
	strbuf_puts(out, ", ");
	title_facts_add(out, p, opts, shown, total);
}

void title_labels_add(struct strbuf *out, const struct profile *p)
{
	const char *label;

	for (uint32_t i = 0; (label = profile_about(p, ABOUT_LABEL, i)); i++) {
		strbuf_puts(out, i ? ", " : "");
		strbuf_puts(out, label);
	}
}
