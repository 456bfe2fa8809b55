#include "render/html/page_names.h"

#include "base/hash.h"
#include "render/html/packed.h"

#include <stdlib.h>
#include <string.h>

struct page_name {
	uint32_t number;
	UT_hash_handle hh;
	char text[];
};

uint32_t page_name_number(struct page_names *names, const char *text)
{
	struct page_name *found;
	size_t len = strlen(text);

	HASH_FIND(hh, names->by_text, text, len, found);
	if (found)
		return found->number;
	found = calloc(1, sizeof(*found) + len + 1);
	if (found) {
		memcpy(found->text, text, len + 1);
		found->number = names->n;
		HASH_ADD_KEYPTR(hh, names->by_text, found->text, len, found);
		if (hash_added(found)) {
			packed_name(&names->bytes, text);
			return names->n++;
		}
		free(found);
	}
	names->oom = true;
	return 0;
}

void page_names_fini(struct page_names *names)
{
	struct page_name *s, *next;

	HASH_ITER (hh, names->by_text, s, next) {
		HASH_DEL(names->by_text, s);
		free(s);
	}
	strbuf_free(&names->bytes);
}
