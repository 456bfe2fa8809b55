/* Searching a file for samplers (samplers.h): in a cell (sampler_places.h). */
#ifndef MEMSCOPE_COLLECT_PROBES_SAMPLERS_FIND_H
#define MEMSCOPE_COLLECT_PROBES_SAMPLERS_FIND_H

#include "collect/probes/alloc_image.h"
#include "collect/probes/samplers.h"

/* The sampler that `elf`, the file of `im`, has. Debug files are asked for where its functions have no names. */
void samplers_find(const struct alloc_image *im, struct elf_file *elf,
		   struct sampler_found *ret_found);

/* jemalloc, by its control function, whatever else of it has a name. */
struct sampler_control {
	const char *variable; /* of sampler_controls; NULL: there is no jemalloc */
	bool has_sampler;     /* it was built with one                           */
};
void samplers_find_control(struct elf_file *elf, struct sampler_control *ret_control);

#endif
