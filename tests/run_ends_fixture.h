/* For tests of components that end a run: why, and in which words. */
#ifndef MEMSCOPE_TESTS_RUN_ENDS_FIXTURE_H
#define MEMSCOPE_TESTS_RUN_ENDS_FIXTURE_H

#include "run_fixture.h"

static char ended[200];

void run_ends(struct run *r, enum run_end why, const char *fmt, ...)
{
	va_list ap;

	r->end.why = why;
	va_start(ap, fmt);
	vsnprintf(ended, sizeof(ended), fmt, ap);
	va_end(ap);
}

#endif
