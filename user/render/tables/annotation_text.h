/*
 * A function as text, as readers of perf annotate know it: its lines of source with what each cost, then its instructions, each line
 * of source before those that were compiled from it, jumps as lines beside them.
 */
#ifndef MEMSCOPE_RENDER_TABLES_ANNOTATION_TEXT_H
#define MEMSCOPE_RENDER_TABLES_ANNOTATION_TEXT_H

#include "analyse/line_costs.h"
#include "base/err.h"
#include "base/sink.h"
#include "model/code_text.h"

struct annotation_opts {
	const struct profile *p;
	const struct line_costs *costs;
	const struct code_sources *sources;
	uint32_t type;     /* of value, that `costs` are of                              */
	uint32_t context;  /* lines, and instructions, around those with cost; the rest is left out, and counted */
	bool of_all;       /* percent of the whole profile, not of the function          */
	bool no_source;    /* files were not read, on request                            */
};

/* 0 or -ENOMEM. */
int annotation_text_write(const struct annotation_opts *o, const struct function_cost *function, struct sink *out, struct err *e);

/*
 * The same as JSON, of several functions: {"type", "unit", "all", "functions": [{"function", "module", "self", "total", "lines": [{"file", "line",
 * "self", "total", "text": null where it was not read}], "code": [{"name", "start", "self", "no_lines", "instructions": [{"address", "self",
 * "text", "target", "jump": an address or null, "file", "line", "inlined": [the inlined calls, innermost first]}]}]}], "files": [{"path",
 * "problem", "newer"}], "problems": [{"image", "problem"}]}
 */
int annotation_json_write(const struct annotation_opts *o, const struct function_cost *const *functions, uint32_t n, struct sink *out,
			  struct err *e);

#endif
