/*
 * The files of a run's directory that report.html is made of, beside the profiles: tables over time and the summary.
 */
#ifndef MEMSCOPE_RUN_OUTPUT_PAGE_FILES_H
#define MEMSCOPE_RUN_OUTPUT_PAGE_FILES_H

#include "base/err.h"
#include "render/html/page.h"

struct page_files {
	struct time_table *tables[PAGE_SERIES];
	char *summary;
};

/*
 * Adds what is there to `page`, which borrows it. `suffix`: "-STAMP" of a run that shares its directory, or "". What
 * cannot be read is left out. 0 or -ENOMEM.
 */
int page_files_read(const char *dir, const char *suffix, struct page_run *page, struct page_files *files,
		    struct err *e);
/*
 * The tables alone, and of those the rows from `from_s` to `to_s` since the Epoch.
 */
int page_files_read_part(const char *dir, const char *suffix, double from_s, double to_s, struct page_run *page,
			 struct page_files *files, struct err *e);
void page_files_fini(struct page_files *files);

#endif
