/* What the kernel's program is to do at a site of a sampler: for files of this room. */
#ifndef MEMSCOPE_COLLECT_PROBES_SAMPLER_SITE_H
#define MEMSCOPE_COLLECT_PROBES_SAMPLER_SITE_H

#include "abi.h"
#include "collect/probes/samplers.h"

/* Of the i-th site of a file: what an event there is, and where its arguments are. */
enum ms_sample_what sampler_site(const struct sampler_found *found, uint32_t i,
				 struct ms_site *ret_site);

#endif
