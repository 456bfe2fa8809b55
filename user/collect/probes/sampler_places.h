/*
 * What a file has for those who listen to samplers: sites of the otel_memory contract and of memscope's library, a sampler of a runtime or
 * an allocator (samplers.h), jemalloc. All of it is asked of one cell (places_cell.h), and checked.
 */
#ifndef MEMSCOPE_COLLECT_PROBES_SAMPLER_PLACES_H
#define MEMSCOPE_COLLECT_PROBES_SAMPLER_PLACES_H

#include "base/bytes.h"
#include "base/err.h"
#include "collect/probes/alloc_image.h"
#include "collect/probes/samplers.h"
#include "elf/sdt.h"

/* By what a note says: provider and name. */
enum sample_note {
	SAMPLE_NOTE_ALLOC,     /* otel_memory:alloc, 3 arguments    */
	SAMPLE_NOTE_FREE,      /* otel_memory:free, 1               */
	SAMPLE_NOTE_UNTRACKED, /* memscope:untracked, 3             */
	SAMPLE_N_NOTES,
};

enum {
	SAMPLE_ARGS_MAX = 3,
	SAMPLE_NOTES_MAX = 16, /* of one kind in one file: a sampler may be inlined */
};

struct sample_site {
	uint64_t off, semaphore_off; /* in the file; 0: it has no semaphore         */
	uint32_t n_args;             /* 0: they are where memscope cannot read them */
	struct sdt_arg args[SAMPLE_ARGS_MAX];
};

enum {
	SAMPLER_ASK_NOTES = 1,
	SAMPLER_ASK_OWN = 2,     /* `found`, and where the file's offset is */
	SAMPLER_ASK_CONTROL = 4, /* jemalloc                                */
};

/* What was not asked for is empty. */
struct sampler_places {
	struct sample_site sites[SAMPLE_N_NOTES][SAMPLE_NOTES_MAX];
	uint32_t n_sites[SAMPLE_N_NOTES], n_left_out; /* … for there were too many */
	struct sampler_found found;
	bool is_mapped; /* the offset that was asked for is in a segment, at … */
	uint64_t vaddr;
	const char *control; /* the variable that sets jemalloc up; NULL: there is none */
	bool control_samples; /* it was built with a sampler                      */
};

/*
 * Asks for what `asks` (SAMPLER_ASK_…) says; `file_off` is where in the file a mapping of it begins. What is no ELF file has nothing.
 * -errno with a sentence: the cell ended early, took too long or lied; then there is nothing, too.
 */
int sampler_places_ask(const struct alloc_image *im, uint8_t asks, uint64_t file_off,
		       struct sampler_places *ret, struct err *e);

/*
 * What a cell answered, of a file of `file_bytes`. -EBADMSG, and nothing: it does not hold together.
 *
 *   n_left_out:4  for each kind of note  n:1  { off:8 semaphore:8 n_args:1 { kind:1 size:1 signed:1 reg:1 value:8 }×n_args }×n
 *   sampler:1 kind:1 why:1 linked_off:1 rate_vaddr:8 on_vaddr:8  { vaddr:8 off:8 }×sites of that sampler
 *   is_mapped:1 vaddr:8  control:1 control_samples:1
 *
 * Numbers of rows are from 1, 0 is none.
 */
int sampler_places_take(struct bytes answer, uint64_t file_bytes, struct sampler_places *ret);

#endif
