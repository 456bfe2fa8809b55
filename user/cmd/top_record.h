/* Profiling for memscope top: a run in a child of the screen, which sends the profiles of each stretch of time. */
#ifndef MEMSCOPE_CMD_TOP_RECORD_H
#define MEMSCOPE_CMD_TOP_RECORD_H

#include "screen/profile.h"
#include "screen/worker.h"

struct top_record {
	struct screen_target target;
	double delay_s; /* between two profiles */
};

/* For profile_view_live(): `ctx` is a struct top_record. */
int top_record(void *ctx, int in, int out);

/* For Ctrl-S: profiles and flame graphs as a run writes them, in a directory of their own. */
int top_save(const struct profile_set *set, const char *title, char *ret_path, size_t cap, struct err *e);

#endif
