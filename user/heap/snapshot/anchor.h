/*
 * Places that a user names, because what they keep is what matters: chains that begin there are shown before all others,
 * whatever else keeps an object.
 *
 *   SYMBOL     a variable, a module or what a runtime calls a root; also what ends in ::SYMBOL or .SYMBOL
 *   ADDR+LEN   0x7f…+4096: words in these LEN bytes, and blocks that have one of them
 *
 * A root there becomes one of kind SNAPSHOT_ROOT_ANCHOR; blocks there are given one.
 */
#ifndef MEMSCOPE_HEAP_SNAPSHOT_ANCHOR_H
#define MEMSCOPE_HEAP_SNAPSHOT_ANCHOR_H

#include "heap/snapshot/snapshot.h"

#include "base/err.h"

/* The name of a root; false: it has none. */
typedef bool (*anchor_name_fn)(void *ctx, const struct snapshot_root *root, char *name, size_t cap);

/* `anchor` lives as long as `s`. -EINVAL: it cannot be read; -ENOENT: nothing is there; -ENOMEM. */
int snapshot_anchor(struct snapshot *s, const char *anchor, anchor_name_fn name, void *ctx, struct err *e);

#endif
