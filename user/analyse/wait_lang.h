/*
 * What a wait for a futex is for, where a language's runtime waits: its interpreter's lock, a monitor, a time.
 */
#ifndef MEMSCOPE_ANALYSE_WAIT_LANG_H
#define MEMSCOPE_ANALYSE_WAIT_LANG_H

#include "analyse/frame.h"
#include "analyse/wait_kind.h"

/* WAIT_LOCK: for none of these. */
enum wait_kind wait_kind_by_lang(const struct dict *d, const struct frame_path *path);

#endif
