/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The counters by number: one row each in stats.def. */
#ifndef MEMSCOPE_STAT_IDS_H
#define MEMSCOPE_STAT_IDS_H

enum stat_id {
#define STAT(id, name, loss, help) id,
#include "stats.def"
#undef STAT
	N_STATS,
};

#endif
