#include "symbolize/probe_functions.h"

#include "elf/code_refs.h"
#include "elf/sdt.h"

#include <string.h>

enum { USERS_MAX = 4, PART_BYTES_MAX = 2048 };

/* Debian 12: python3.11 (its probes are in a cold part), libruby-3.1. */
static const struct known {
	const char *provider, *probe, *name;
} all_known[] = {
	{ "python", "gc__start", "gc_collect_main [by its probe]" },
	{ "ruby", "gc__mark__begin", "gc_marks [by its probe]" },
	{ "ruby", "gc__sweep__begin", "gc_sweep [by its probe]" },
};

static const char *name_of(const struct sdt_note *note)
{
	for (size_t i = 0; i < sizeof(all_known) / sizeof(all_known[0]); i++)
		if (strcmp(note->provider, all_known[i].provider) == 0 &&
		    strcmp(note->name, all_known[i].probe) == 0)
			return all_known[i].name;
	return NULL;
}

static bool add(struct probe_function *found, uint32_t *n, uint32_t fde, const char *name)
{
	for (uint32_t i = 0; i < *n; i++)
		if (found[i].fde == fde)
			return true;
	if (*n == PROBE_FUNCTIONS_MAX)
		return false;
	found[(*n)++] = (struct probe_function){ fde, name };
	return true;
}

/* The functions that refer to an address inside of `fde`; to its first one, whoever calls it does, too. */
static void add_those_that_jump_into(struct probe_function *found, uint32_t *n,
				     struct elf_file *elf, const struct cfi *cfi, uint32_t fde,
				     const char *name)
{
	struct cfi_fde part = cfi_fde_at(cfi, fde);
	uint64_t inside[PART_BYTES_MAX];
	uint32_t users[USERS_MAX], n_inside = 0;
	int n_users;

	if (part.end - part.start > PART_BYTES_MAX)
		return;
	for (uint64_t at = part.start + 1; at < part.end; at++)
		inside[n_inside++] = at;
	n_users = n_inside ? code_refs_users(elf, cfi, inside, n_inside, users, USERS_MAX) : 0;
	for (int i = 0; i < n_users; i++)
		add(found, n, users[i], name);
}

uint32_t probe_functions_find(struct elf_file *elf, const struct cfi *cfi,
			      struct probe_function ret_found[PROBE_FUNCTIONS_MAX])
{
	_cleanup_(sdt_notes_freep) struct sdt_notes *notes = NULL;
	const struct elf_segment *segs;
	uint32_t n = 0, n_segs;

	if (sdt_notes_load(elf, &notes, NULL) < 0)
		return 0;
	segs = elf_file_segments(elf, &n_segs);
	for (uint32_t i = 0; i < sdt_notes_count(notes); i++) {
		const struct sdt_note *note = sdt_notes_at(notes, i);
		const char *name = name_of(note);
		uint64_t vaddr;
		uint32_t fde;

		if (!name || !elf_segments_off_to_vaddr(segs, n_segs, note->off, &vaddr) ||
		    cfi_find(cfi, vaddr, &fde) < 0)
			continue;
		if (!add(ret_found, &n, fde, name))
			break;
		add_those_that_jump_into(ret_found, &n, elf, cfi, fde, name);
	}
	return n;
}
