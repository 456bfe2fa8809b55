/*
 * Where the probe of a function goes, by its file: placement.h, with the function's code and the jumps of the code around it.
 */
#ifndef MEMSCOPE_COLLECT_PROBES_FUNCTION_PLACE_H
#define MEMSCOPE_COLLECT_PROBES_FUNCTION_PLACE_H

#include "collect/probes/placement.h"
#include "elf/elf_syms.h"

struct function_place {
	uint64_t vaddr, off; /* of the function; in the file */
	struct placement at_entry, best;
};

/* `ask`: all but the code. false: the function cannot be probed, for it is not in the file, or is one that chooses another. */
bool function_place_find(struct elf_file *elf, const struct elf_sym *sym, struct placement_ask ask,
			 struct function_place *ret_place);
/*
 * Where a jump from elsewhere lands in a function before its probe, the probe moves to the entry. Of so many functions at most
 * probes are behind the entry.
 */
#define FUNCTION_PLACES_MAX 192
void function_places_check(struct elf_file *elf, struct function_place *const *places, uint32_t n);

#endif
