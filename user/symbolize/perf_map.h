/*
 * A perf map: what a just-in-time compiler writes to /tmp/perf-PID.map, one function a line.
 *
 *   3ef414c0 398 JS:*fibonacci /srv/app.js:3:19
 *
 * START and SIZE in hex, then the name to the end of the line
 * (tools/perf/Documentation/jit-interface.txt). Code moves and memory is reused: of several lines
 * that cover an address the last counts. Only lines that cover an address asked for are kept.
 */
#ifndef MEMSCOPE_SYMBOLIZE_PERF_MAP_H
#define MEMSCOPE_SYMBOLIZE_PERF_MAP_H

#include "base/cleanup.h"

#include <stddef.h>
#include <stdint.h>

enum {
	PERF_MAP_BYTES_MAX = 128 << 20,  /* only the end of a longer one is read */
};

struct perf_map;

/*
 * Reads the map for these addresses (ascending; borrowed until it is freed). -ENOENT: it has none
 * of them; -ENOMEM, or the errno of the file.
 */
int perf_map_read(int fd, const uint64_t *vaddrs, uint32_t n, struct perf_map **ret_map);
/* The same from memory, which is borrowed. */
int perf_map_parse(const char *text, size_t len, const uint64_t *vaddrs, uint32_t n,
		   struct perf_map **ret_map);
void perf_map_free(struct perf_map *m);
DEFINE_CLEANUP(struct perf_map *, perf_map_freep, perf_map_free)

/* The name at an address asked for, any bytes; NULL when there is none. */
const char *perf_map_find(const struct perf_map *m, uint64_t vaddr, size_t *ret_len);

#endif
