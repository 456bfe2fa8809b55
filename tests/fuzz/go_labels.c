/*
 * Go's labels as anyone may have made them: memory that holds a map. What is read ends, and texts end in their room.
 *
 *   cookie:8 memory …
 */
#include "lang/go.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BASE 0xc000010000ULL

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

struct image {
	const uint8_t *bytes;
	size_t len;
	int reads;
};

static bool read_image(void *ctx, uint64_t addr, void *buf, size_t len)
{
	struct image *im = ctx;

	if (++im->reads > 2000)
		abort();
	if (addr < BASE || addr - BASE > im->len || len > im->len - (addr - BASE))
		return false;
	memcpy(buf, im->bytes + (addr - BASE), len);
	return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static struct go_label labels[GO_LABELS_MAX];
	struct image im = { data + 8, len - 8, 0 };
	const struct lang_memory mem = { read_image, &im };
	uint64_t cookie;
	int n;

	if (len < 8)
		return 0;
	memcpy(&cookie, data, 8);
	n = go_labels_decode(&mem, BASE, cookie, labels);
	if (n > GO_LABELS_MAX || (n < 0 && n != -EIO && n != -ESTALE))
		abort();
	for (int i = 0; i < n; i++)
		if (!*labels[i].key || strnlen(labels[i].key, GO_LABEL_BYTES) == GO_LABEL_BYTES ||
		    strnlen(labels[i].value, GO_LABEL_BYTES) == GO_LABEL_BYTES)
			abort();
	return 0;
}
