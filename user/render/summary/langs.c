/*
 * Languages with frames of their own: whose frames are in the stacks, and which of them could not be read or named.
 */
#include "base/units.h"
#include "render/summary/sections.h"
#include "render/tables/cells.h"

#include <stdio.h>

#define GC_SHOWN 0.001 /* of the samples: what takes less is no row */

static bool is_known(const struct summary_langs *l)
{
	return l->processes || l->unreadable;
}

/* A row a runtime; `label`: the section's has not been written yet. */
static void put_gc(const struct run_summary *s, bool label, struct sink *out)
{
	for (int i = 0; i < N_GC_RUNTIMES; i++) {
		double part = s->oncpu.samples
				      ? (double)s->oncpu.gc_by_runtime[i] / (double)s->oncpu.samples
				      : 0;

		if (part < GC_SHOWN)
			continue;
		if (label)
			cells_label(out, "Languages");
		else
			sink_printf(out, "%*s", CELLS_LABEL_WIDTH, "");
		sink_printf(out, "%s: garbage collection takes %.1f%% of the time on CPU\n",
			    gc_runtime_name((enum gc_runtime)i), 100 * part);
		label = false;
	}
}

static void put_count(struct sink *out, uint64_t n, const char *one, const char *many)
{
	if (n == 0)
		return;
	cells_right(out, unit_count((int64_t)n).s, CELLS_LABEL_WIDTH + 8);
	sink_printf(out, " %s\n", n == 1 ? one : many);
}

static void put_unreadable(struct sink *out, const struct summary_langs *l)
{
	char text[400];

	if (!l->unreadable)
		return;
	snprintf(text, sizeof(text), "no frames of an interpreter in %s process%s: %s",
		 unit_count((int64_t)l->unreadable).s, l->unreadable == 1 ? "" : "es", l->trouble);
	cells_wrapped(out, text, CELLS_LABEL_WIDTH, false);
}

void section_langs_text(const struct run_summary *s, struct sink *out)
{
	const struct summary_langs *l = &s->langs;

	if (!is_known(l)) {
		put_gc(s, true, out);
		return;
	}
	cells_label(out, "Languages");
	if (l->processes) {
		sink_puts(out, l->name);
		if (l->processes > 1)
			sink_printf(out, " and others, %s processes",
				    unit_count((int64_t)l->processes).s);
		if (l->named)
			sink_printf(out, ": %s locations symbolized, with lines",
				    unit_count((int64_t)l->named).s);
		sink_puts(out, "\n");
		if (l->untested)
			cells_wrapped(
				out,
				"memscope was never tried with this version: compare its frames with what the "
				"program itself prints",
				CELLS_LABEL_WIDTH, false);
	} else {
		sink_puts(out, "none readable\n");
	}
	put_gc(s, false, out);
	put_unreadable(out, l);
	put_count(out, l->gone, "frame without a name: its code was gone when it was to be read",
		  "frames without a name: their code was gone when it was to be read");
	put_count(out, l->damaged, "frame without a name: what it refers to is no code",
		  "frames without a name: what they refer to is no code");
	put_count(out, l->native, "event of the interpreter alone: its language was not found yet",
		  "events of the interpreter alone: its language was not found yet");
	put_count(out, l->lost, "stack with frames that could not be read",
		  "stacks with frames that could not be read");
	put_count(out, l->misplaced,
		  "stack whose native frames and the language's differ: counted as guessed",
		  "stacks whose native frames and the language's differ: counted as guessed");
	put_count(out, l->left_out, "process without frames of its language: the table was full",
		  "processes without frames of their language: the table was full");
}

/* What is missing, alone. */
void section_langs_brief(const struct run_summary *s, uint32_t rows, struct sink *out)
{
	const struct summary_langs *l = &s->langs;

	(void)rows;
	if (!l->unreadable && !l->untested)
		return;
	cells_label(out, "Languages");
	if (l->unreadable)
		sink_printf(out, "%s\n", l->trouble);
	else
		sink_printf(out, "%s: memscope was never tried with this version\n", l->name);
}

void section_langs_json(struct json_doc *d, cJSON *root, const struct run_summary *s)
{
	const struct summary_langs *l = &s->langs;
	cJSON *o;

	if (!is_known(l)) {
		json_null(d, root, "languages");
		return;
	}
	o = json_object(d, root, "languages");
	json_count(d, o, "processes", l->processes);
	json_text(d, o, "runtime", l->name);
	json_truth(d, o, "untested", l->untested);
	json_count(d, o, "unreadable", l->unreadable);
	json_text(d, o, "trouble", l->trouble);
	json_count(d, o, "left_out", l->left_out);
	json_count(d, o, "named", l->named);
	json_count(d, o, "gone", l->gone);
	json_count(d, o, "damaged", l->damaged);
	json_count(d, o, "native_events", l->native);
	json_count(d, o, "lost_stacks", l->lost);
	json_count(d, o, "misplaced_stacks", l->misplaced);
}
