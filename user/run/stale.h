/*
 * What an earlier run left in the same directory. A run replaces the one before it as a whole: files
 * that it would have written and this one did not (another --only, an empty profile without a
 * picture) would pass for files of this run. Everything else in the directory is the user's.
 */
#ifndef MEMSCOPE_RUN_STALE_H
#define MEMSCOPE_RUN_STALE_H

#include "base/strbuf.h"

#include <stdint.h>

/*
 * Removes every file of ours in `dir` that is not among `written`: those of names that are always ours, and what the list of the
 * run before has (base/archive.h), as profiles of events are named by their events. Call it when those are in place: a
 * run that gathers nothing takes nothing away. The names removed, separated by blanks, are
 * appended to *removed; what cannot be removed stays. What a run that was killed was about to give one of these names
 * (base/new_file.h) goes as well, and is not named.
 */
void stale_remove(const char *dir, const char *const *written, uint32_t n_written,
		  struct strbuf *removed);

#endif
