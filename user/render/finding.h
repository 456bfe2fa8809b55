/*
 * A run, or a profile, as a finding: what an engineer writes down about a fault, in Markdown (CommonMark 0.30, without extensions),
 * under the headings Date, Symptom, Investigation, Root cause, Fix and Result. What is known is filled in: the verdict and its
 * evidence, the command that was run, figures and how each was measured, what was lost. What only people know is a paragraph that
 * begins with "To fill in".
 *
 * The summary is summary.json's bytes, whoever wrote them: what is no member of it is left out, and no text in it can
 * become markup.
 */
#ifndef MEMSCOPE_RENDER_FINDING_H
#define MEMSCOPE_RENDER_FINDING_H

#include "analyse/top.h"
#include "base/bytes.h"
#include "base/err.h"
#include "base/sink.h"
#include "render/shown.h"

/* Rows of a table. */
enum { FINDING_ROWS = 8 };

struct finding {
	struct bytes summary;      /* summary.json; empty: there is none                 */
	const struct profile *p;   /* instead, or for a run without a summary: not NULL then */
	struct shown shown;        /* which of its values                                */
	const struct top_row *rows; /* its functions: n_rows of them, by self            */
	uint32_t n_rows;
	const char *of;            /* the directory or file, as it was named            */
};

/* -EBADMSG: that is no summary; -ENOMEM. */
int finding_write(const struct finding *f, struct sink *out, struct err *e);

#endif
