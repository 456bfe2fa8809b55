/*
 * An entry of a spool, which another process may have left there damaged: its checksum is made right first, where the first byte is odd,
 * or nothing but that would be looked at. What is taken out lies in the file; what was put in as a body comes out as that.
 */
#include "base/spool.h"

#include "base/hash.h"
#include "scratch_folder.h"

#include <errno.h>
#include <string.h>

#define NAME "00000000000000000001-0000000000000001.entry"

enum { HASH_AT = 8, TITLE_AT = 16, HEAD = 20 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void hold(const struct spool *s, const uint8_t *data, size_t size)
{
	struct spool_entry entry = { .fd = -1 };
	struct err e = { 0 };
	const uint8_t *file;
	int r;

	scratch_write(NAME, data, size);
	r = spool_hold(s, NAME, &entry, &e);
	if ((r < 0) != (e.msg[0] != '\0') || (r < 0 && r != -EBADMSG))
		abort();
	if (r == 0) {
		file = entry.data;
		if (entry.body.data < file + HEAD ||
		    entry.body.data + entry.body.len != file + size ||
		    strnlen(entry.title, sizeof(entry.title)) == sizeof(entry.title) ||
		    (entry.body.len &&
		     memcmp(entry.body.data, data + size - entry.body.len, entry.body.len) != 0))
			abort();
	}
	spool_let_go(&entry);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct spool_use use;
	const struct spool s = { scratch_folder(), 1 << 20, &use };
	uint8_t *copy = malloc(size + HEAD);
	struct spool_names names;
	uint32_t title_len;
	uint64_t hash;

	if (size) {
		memcpy(copy, data + 1, size - 1);
		if (data[0] & 1 && size - 1 >= HEAD) {
			memcpy(copy, "MSSPOOL1", 8);
			hash = content_hash(copy + TITLE_AT, size - 1 - TITLE_AT);
			memcpy(copy + HASH_AT, &hash, sizeof(hash));
		}
		hold(&s, copy, size - 1);
	}
	/* As an entry of its own, with a title of up to 255 bytes. */
	memcpy(copy, "MSSPOOL1", 8);
	title_len = size && data[0] < size ? data[0] : 0;
	memcpy(copy + TITLE_AT, &title_len, sizeof(title_len));
	if (size)
		memcpy(copy + HEAD, data, size);
	hash = content_hash(copy + TITLE_AT, size + HEAD - TITLE_AT);
	memcpy(copy + HASH_AT, &hash, sizeof(hash));
	hold(&s, copy, size + HEAD);
	free(copy);
	if (spool_list(&s, &names, NULL) < 0 || names.n != 1 || strcmp(names.names[0], NAME) != 0)
		abort();
	spool_names_fini(&names);
	return 0;
}
