/*
 * What a picture, or another file of one profile, shows:
 *
 *   redis-server (pid 5099), on-CPU, 2026-11-22 19:52:53, 10.1 s, 3,100 samples
 *
 * Who: the titles the profile was recorded with, else its targets (model/about.h), else the process that all
 * its samples are of, else render_opts.what. What is not known is left out.
 */
#ifndef MEMSCOPE_RENDER_FORMATS_TITLE_H
#define MEMSCOPE_RENDER_FORMATS_TITLE_H

#include "base/strbuf.h"
#include "render/render.h"
#include "render/shown.h"

/* All of the above. Raw bytes: escape them. */
void title_add(struct strbuf *out, const struct profile *p, const struct render_opts *opts,
	       const struct shown *shown, int64_t total);
/* "redis-server (pid 5099), on-CPU"; of more than `max_columns` the first part is cut short. */
void title_who_add(struct strbuf *out, const struct profile *p, const struct render_opts *opts,
		   const struct shown *shown, uint32_t max_columns);
/* "2026-11-22 19:52:53, 10.1 s, 3,100 samples"; of a difference when both were. */
void title_facts_add(struct strbuf *out, const struct profile *p, const struct render_opts *opts,
		     const struct shown *shown, int64_t total);
/* " · sampled at 99 Hz", " · one sample in 512.0 KiB", " · estimated: …"; nothing where that is not known. Raw bytes. */
void title_how_add(struct strbuf *out, const struct profile *p, const struct render_opts *opts,
		   const struct shown *shown);
/* "env=prod, host=a1": the labels of the recording; nothing when it has none. Raw bytes. */
void title_labels_add(struct strbuf *out, const struct profile *p);

#endif
