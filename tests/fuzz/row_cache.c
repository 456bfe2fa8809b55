/*
 * An entry of the cache on disk. Its checksum is made right first, or nothing but the checksum would
 * be looked at: what is then believed must be within its bounds.
 */
#include "base/cleanup.h"
#include "base/hash.h"
#include "unwind/row_format.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* magic, version, length of the header, digest, checksum of what follows */
enum { CHECKSUM_AT = 8 + 4 + 4 + 16, CHECKED_FROM = CHECKSUM_AT + 8 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_(unwind_table_freep) struct unwind_table *t = NULL;
	_cleanup_(freep) uint8_t *copy = malloc(size + 1);
	uint64_t checksum;

	if (!copy)
		return 0;
	memcpy(copy, data, size);
	if (size > CHECKED_FROM) {
		checksum = content_hash(copy + CHECKED_FROM, size - CHECKED_FROM);
		memcpy(copy + CHECKSUM_AT, &checksum, sizeof(checksum));
	}
	if (row_format_read(copy, size, NULL, &t) < 0)
		return 0;
	for (uint64_t page = t->first_page; page < t->first_page + t->n_pages; page++) {
		const struct ms_rule *rule =
			unwind_table_find(t, (page << MS_ROW_PAGE_SHIFT) + 0x123);

		if (rule < t->rules || rule >= t->rules + t->n_rules ||
		    rule->kind >= MS_N_RULE_KINDS || rule->reg >= MS_N_REGS ||
		    rule->base_reg >= MS_N_REGS)
			abort();
	}
	return 0;
}
