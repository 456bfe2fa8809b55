#include "collect/session/stats.h"

const struct stat_row stat_rows[N_STATS] = {
#define STAT(id, name, loss, help) [id] = { name, help, loss },
#include "stats.def"
#undef STAT
};
