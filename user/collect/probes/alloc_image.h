/* A file that a target maps, to be searched for functions: alloc_sites.h, samplers_find.h. */
#ifndef MEMSCOPE_COLLECT_PROBES_ALLOC_IMAGE_H
#define MEMSCOPE_COLLECT_PROBES_ALLOC_IMAGE_H

#include "elf/debug_link.h"

/* The file, and how its separate debug info is opened. */
struct alloc_image {
	int fd;           /* borrowed */
	const char *path; /* debug info may lie beside it */
	debug_open_fn open_debug;
	void *ctx;
};

#endif
