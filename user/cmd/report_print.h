/* memscope report: what it prints of profiles, as text, JSON or CSV. */
#ifndef MEMSCOPE_CMD_REPORT_PRINT_H
#define MEMSCOPE_CMD_REPORT_PRINT_H

#include "base/sink.h"
#include "cmd/inputs.h"

enum report_kind { REPORT_AS_TEXT, REPORT_AS_JSON, REPORT_AS_CSV, REPORT_AS_MARKDOWN, REPORT_AS_PAGE };

struct report_args {
	struct input_args in;
	const char *value, *callers, *callees, *by, *output;
	uint32_t rows; /* ROWS_AS_USUAL: not asked for */
	double min_percent;
	bool tree, reverse, json, csv, markdown, no_source;
	enum report_kind kind; /* of those, or what -o ends in */
};

#define ROWS_AS_USUAL UINT32_MAX

/* --source all */
bool report_all_sources(const struct report_args *a, char *const *operands);
/*
 * -EINVAL: wrong usage; the rest is about the files. With all sources of a directory one after another, those that have nothing of
 * what was asked for are left out.
 */
int report_print(struct inputs *in, const struct report_args *a, char *const *operands, int n, struct sink *out,
		 struct err *e);

#endif
