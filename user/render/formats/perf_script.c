/*
 * Text as `perf script` prints it, which many tools read (stackcollapse-perf, flamescope, the Firefox Profiler):
 *
 *   comm  pid/tid  seconds.microseconds:  period event:
 *           address function+0x0 (image)        leaf first
 *   an empty line
 *
 * One value type, which names the event; on-CPU samples are perf's own cpu-clock. The period is the event's value:
 * 1 for a counted sample, each of which is an event, because readers count those. Times are seconds since the begin of the recording
 * (timed_events.h says how exact). Inlined calls are lines of their own, as perf has them.
 */
#include "render/formats/code_path.h"
#include "render/formats/text.h"
#include "render/formats/timed_events.h"
#include "render/formats/writers.h"
#include "render/shown.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

/* Each is some 30 lines. */
enum { MOST_SAMPLES = 20000000 };

struct script {
	const struct profile *p;
	struct sink *out;
	struct strbuf text;
	const char *event;
};

static void put_event(struct script *s, const struct timed_event *e, const struct code_path *path)
{
	struct dict *d = profile_dict(s->p);
	labels_id labels = profile_sample(s->p, e->sample).labels;
	const struct label *comm = dict_label_find(d, labels, "thread");
	const struct label *pid = dict_label_find(d, labels, "pid");
	const struct label *tid = dict_label_find(d, labels, "tid");

	if (!comm)
		comm = dict_label_find(d, labels, "comm");
	text_add(&s->text, TEXT_PLAIN, comm && comm->str.ix ? dict_str(d, comm->str) : "all",
		 UINT32_MAX);
	strbuf_printf(&s->text,
		      " %" PRId64 "/%" PRId64 " %" PRId64 ".%06" PRId64 ": %" PRId64 " %s:\n",
		      pid ? pid->num : 0,
		      tid   ? tid->num
		      : pid ? pid->num
			    : 0,
		      e->ns / 1000000000, e->ns / 1000 % 1000000, e->value, s->event);
	for (uint32_t k = path->n; k-- > 0;) {
		const struct code_place *at = &path->places[k];

		strbuf_printf(&s->text, "\t%16" PRIx64 " ", at->vaddr);
		text_add(&s->text, TEXT_PLAIN, dict_str(d, at->function.name), UINT32_MAX);
		strbuf_puts(&s->text, at->kind == FRAME_UNKNOWN ? " (" : "+0x0 (");
		if (at->kind == FRAME_INLINED)
			strbuf_puts(&s->text, "inlined");
		else if (*at->function.module)
			text_add(&s->text, TEXT_PLAIN, at->function.module, UINT32_MAX);
		else
			strbuf_puts(&s->text, "[unknown]");
		strbuf_puts(&s->text, ")\n");
	}
	strbuf_putc(&s->text, '\n');
	if (s->text.len > 1 << 16 && !strbuf_oom(&s->text)) {
		sink_write(s->out, s->text.s, s->text.len);
		strbuf_reset(&s->text);
	}
}

int perf_script_write(const struct profile *p, const struct render_opts *opts, struct sink *out,
		      struct err *e)
{
	_cleanup_(timed_events_fini) struct timed_events events = { 0 };
	_cleanup_(code_path_fini) struct code_path path = { 0 };
	struct shown shown = shown_pick(p, opts->value_type);
	const char *type = profile_type(p, shown.type)->name;
	struct script s = { .p = p, .out = out };
	bool counts = strcmp(profile_type(p, shown.type)->unit, "count") == 0;
	int r;

	if (counts && profile_total(p, shown.type) > MOST_SAMPLES)
		return err_set(
			e, -EFBIG,
			"as text of perf script, %s samples are too many (at most %s); --value chooses another "
			"value, which is an event a stack",
			unit_count(profile_total(p, shown.type)).s, unit_count(MOST_SAMPLES).s);
	r = timed_events_make(p, shown.type, counts ? MOST_SAMPLES : 0, &events);
	s.event = strcmp(type, "samples") == 0 ? "cpu-clock" : type;
	for (size_t i = 0; r == 0 && i < events.n; i++) {
		r = code_path_set(&path, profile_dict(p),
				  profile_sample(p, events.all[i].sample).stack);
		if (r == 0)
			put_event(&s, &events.all[i], &path);
	}
	if (r == 0 && !strbuf_oom(&s.text) && !dict_oom(profile_dict(p)))
		sink_write(out, s.text.s ? s.text.s : "", s.text.len);
	else
		r = err_set(e, -ENOMEM, "out of memory for perf script's text");
	strbuf_free(&s.text);
	return r;
}
