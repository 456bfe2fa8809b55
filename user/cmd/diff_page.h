/* memscope diff -o FILE.html: runs before and after, and their difference, as one page (render/html/page.h). */
#ifndef MEMSCOPE_CMD_DIFF_PAGE_H
#define MEMSCOPE_CMD_DIFF_PAGE_H

#include "cmd/diff_sides.h"

struct diff_page {
	struct diff_side sides[2];
	const char *names[2];
	const char *source;    /* of runs: this one alone; NULL: all */
	enum diff_scale scale;
	bool scale_as_needed;  /* nothing was asked for: per second where lengths differ */
	double least_share;
};

/* `in`: of the page alone. -EINVAL: nothing in both counts the same. */
int diff_page_write(const struct diff_page *page, struct inputs *in, const char *path,
		    struct err *e);

#endif
