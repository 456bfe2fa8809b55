/* What `memscope ls` shows of an archive, read from its files. */
#ifndef MEMSCOPE_CMD_LS_READ_H
#define MEMSCOPE_CMD_LS_READ_H

#include "analyse/archive_view.h"
#include "cmd/input_archive.h"

struct ls_opts {
	const char *choice;    /* which windows are shown; NULL: the last `rows`      */
	const char *container; /* as it was asked for; NULL: all                      */
	uint32_t rows;         /* 0: all                                              */
	bool check;            /* all files are read                                  */
};

/* Of the windows in `place`, which it borrows. archive_view_fini() in any case. -EINVAL: the choice; -ESRCH: no window has that
 * time; -errno. */
int ls_read(const struct input_place *place, const struct ls_opts *opts, struct archive_view *ret_view,
	    struct err *e);
/* Frees what the labels are in; with the view. */
void ls_labels_free(struct archive_view *v);

#endif
