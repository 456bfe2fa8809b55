/*
 * Contexts of processes and threads as anyone may have published them: memory that begins with a header, and a record. What is read
 * ends, and texts end in their room.
 *
 *   memory …      at BASE; the header's payload is where it says; the record is the same bytes
 */
#include "lang/otel.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BASE 0x7f0000010000ULL

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

struct image {
	const uint8_t *bytes;
	size_t len;
	int reads;
};

static bool read_image(void *ctx, uint64_t addr, void *buf, size_t len)
{
	struct image *im = ctx;

	if (++im->reads > 3 || len > OTEL_PAYLOAD_MAX)
		abort();
	if (addr < BASE || addr - BASE > im->len || len > im->len - (addr - BASE))
		return false;
	memcpy(buf, im->bytes + (addr - BASE), len);
	return true;
}

static void check_process(const struct otel_process *p)
{
	if (p->n_keys > OTEL_KEYS_MAX || strnlen(p->schema_name, OTEL_KEY_BYTES) == OTEL_KEY_BYTES)
		abort();
	for (uint32_t i = 0; i < p->n_keys; i++)
		if (strnlen(p->keys[i], OTEL_KEY_BYTES) == OTEL_KEY_BYTES)
			abort();
}

static void check_record(const struct otel_record *r)
{
	if (r->n > OTEL_LABELS_MAX)
		abort();
	for (uint32_t i = 0; i < r->n; i++) {
		if (strnlen(r->labels[i].text, OTEL_TEXT_BYTES) == OTEL_TEXT_BYTES ||
		    r->labels[i].key > OTEL_SPAN)
			abort();
		for (uint32_t k = 0; k < i; k++)
			if (r->labels[k].key == r->labels[i].key)
				abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static struct otel_process process;
	static struct otel_record record;
	struct image im = { data, len, 0 };
	const struct lang_memory mem = { read_image, &im };

	if (otel_process_read(&mem, BASE, 0, &process) == 0)
		check_process(&process);
	if (otel_payload_decode(data, len, &process) == 0)
		check_process(&process);
	if (otel_record_decode(data, len, &record) == 0)
		check_record(&record);
	return 0;
}
