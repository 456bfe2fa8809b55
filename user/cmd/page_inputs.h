/* What a page is made of, read from where the user points: all that a run's directory has, or profiles. */
#ifndef MEMSCOPE_CMD_PAGE_INPUTS_H
#define MEMSCOPE_CMD_PAGE_INPUTS_H

#include "cmd/inputs.h"
#include "run/output/page_files.h"

/* `page` borrows from the rest. */
struct page_inputs {
	struct page_run page;
	struct page_files files;
	struct profile *profiles[PAGE_PROFILES], *sites;
	struct profile *without[PAGE_PROFILES]; /* they have figures over time, but no samples */
	uint32_t n_without;
	char ids[PAGE_PROFILES][64];
	bool keep_empty; /* set before reading: profiles without samples, which say that there were none */
};
void page_inputs_fini(struct page_inputs *g);

/* Each profile by itself. page_inputs_fini() in any case, here and below. */
int page_inputs_files(struct page_inputs *g, struct inputs *in, char *const *operands, int n,
		      struct err *e);
/* The directory of a run, or of its windows with what is chosen of them. */
int page_inputs_run(struct page_inputs *g, struct inputs *in, char *const *operands, int n,
		    struct err *e);

#endif
