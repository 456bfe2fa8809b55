/* Windows on a full disk: older ones make room, and a service says when there is none. */
#ifndef MEMSCOPE_RUN_WINDOW_ROOM_H
#define MEMSCOPE_RUN_WINDOW_ROOM_H

#include "run/config.h"

#include <stdbool.h>
#include <stdint.h>

/* Removes the `n` oldest windows of the run's archive, but never the newest, where --keep lets windows go. false: none went. */
bool window_room_make(const struct run_config *cfg, uint64_t n);
/* A window was written, or could not be as the disk is full: `*unwritten`, 0 at first, counts those. Says so once, and once when
 * windows are written again. */
void window_room_note(uint64_t *unwritten, const char *dir, bool full);

#endif
