/*
 * HotSpot's counters for its own tools (jstat): a file of named values, mapped by the JVM and written as it runs.
 *
 *   prologue  magic:4 (cafec0c0, big endian)  byte_order:1 (1: little)  major:1  minor:1  accessible:1  used:4  overflow:4
 *             mod_time:8  entry_offset:4  num_entries:4
 *   entry     length:4  name_offset:4  vector_length:4  type:1 ('J': 8 bytes, 'B': characters)  flags:1  units:1  variability:1
 *             data_offset:4  … name … data       offsets are from the entry's begin
 *
 * (hotspot/share/runtime/perfMemory.hpp, version 2.0, the same from JDK 6 on.) The bytes are another program's: every offset is checked.
 */
#ifndef MEMSCOPE_HEAP_GC_HSPERF_H
#define MEMSCOPE_HEAP_GC_HSPERF_H

#include "model/gc_counters.h"

#include <stddef.h>

enum { HSPERF_MAX = 1 << 20 };

/* -EBADMSG: that is no such file, or one that is being made; -ENOENT: it has no counters of collections. */
int hsperf_read(const uint8_t *bytes, size_t len, struct gc_counters *ret_counters);

#endif
