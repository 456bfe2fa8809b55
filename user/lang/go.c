#include "lang/go.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MINOR_FIRST = 18, MINOR_LAST = 23 };

/* runtime.g.labels, by minor version: from runtime2.go. */
static const uint16_t g_labels[] = { 360, 360, 360, 344, 344, 352 };

_Static_assert(sizeof(g_labels) / sizeof(g_labels[0]) == MINOR_LAST - MINOR_FIRST + 1, "one each");

uint32_t go_version_of(const char *text)
{
	unsigned major, minor, patch = 0;

	if (sscanf(text, "go%2u.%3u.%3u", &major, &minor, &patch) < 2 || major != 1 || minor > 255)
		return 0;
	return major << 16 | minor << 8 | (patch & 0xff);
}

/* .go.buildinfo: magic:14 pointer size:1 flags:1 …, at 32 the version, its length before it. */
uint32_t go_version(struct elf_file *elf)
{
	static const char magic[] = "\xff Go buildinf:";
	const struct elf_section *sec;
	uint8_t head[32 + 1 + 32];
	char text[33] = "";

	if (!elf_file_is64(elf) || elf_file_find_section(elf, ".go.buildinfo", &sec, NULL) < 0 ||
	    sec->size < sizeof(head) ||
	    elf_file_read(elf, sec->off, head, sizeof(head), NULL) < 0 ||
	    memcmp(head, magic, sizeof(magic) - 1) != 0 || !(head[15] & 2) || head[32] > 32)
		return 0;
	memcpy(text, head + 33, head[32]);
	return go_version_of(text);
}

int go_layout_find(uint32_t version, struct go_layout *ret_layout)
{
	uint32_t minor = version >> 8 & 0xff;

	if (version >> 16 != 1 || minor < MINOR_FIRST || minor > MINOR_LAST)
		return -EOPNOTSUPP;
	*ret_layout = (struct go_layout){ .tls = -8, /* cmd/link: runtime.tlsg on x86-64 */
					  .g_m = 48,
					  .m_curg = 192,
					  .g_labels = g_labels[minor - MINOR_FIRST],
					  .untested = minor != 19 };
	return 0;
}

/* --- the map (runtime/map.go: hmap, bmap) --- */

struct go_string {
	uint64_t at, len;
};

struct go_map {
	uint64_t count;
	uint8_t flags, log2_buckets;
	uint16_t n_overflow;
	uint32_t seed;
	uint64_t buckets, old_buckets;
};

struct go_bucket {
	uint8_t top[8]; /* below 5: no entry there */
	struct go_string keys[8], values[8];
	uint64_t overflow;
};

#define TOP_LEAST    5
#define LOG2_MOST    4
#define BUCKETS_MOST 64

_Static_assert(sizeof(struct go_map) == 32 && sizeof(struct go_bucket) == 272, "as Go has them");

static bool read_string(const struct lang_memory *mem, const struct go_string *s,
			char text[GO_LABEL_BYTES])
{
	size_t len = s->len < GO_LABEL_BYTES ? s->len : GO_LABEL_BYTES - 1;

	memset(text, 0, GO_LABEL_BYTES);
	return s->len < 1 << 20 && (!len || mem->read(mem->ctx, s->at, text, len));
}

static int by_key(const void *a, const void *b)
{
	return strcmp(((const struct go_label *)a)->key, ((const struct go_label *)b)->key);
}

static int take_bucket(const struct lang_memory *mem, const struct go_bucket *b,
		       struct go_label *labels, int *n)
{
	for (int i = 0; i < 8; i++) {
		if (b->top[i] < TOP_LEAST || *n >= GO_LABELS_MAX)
			continue;
		if (!read_string(mem, &b->keys[i], labels[*n].key) ||
		    !read_string(mem, &b->values[i], labels[*n].value))
			return -EIO;
		*n += *labels[*n].key != '\0';
	}
	return 0;
}

int go_labels_decode(const struct lang_memory *mem, uint64_t at, uint64_t cookie,
		     struct go_label ret_labels[GO_LABELS_MAX])
{
	struct go_label labels[GO_LABELS_MAX];
	struct go_map map, again;
	int n = 0, left = BUCKETS_MOST;
	uint64_t second;

	if (!mem->read(mem->ctx, at, &map, sizeof(map)))
		return -EIO;
	memcpy(&second, (const uint8_t *)&map + 8, sizeof(second));
	if ((second & ~0xffULL) != (cookie & ~0xffULL) || map.log2_buckets > LOG2_MOST ||
	    map.old_buckets || map.count > 1024)
		return -ESTALE;
	for (uint32_t i = 0; i < 1u << map.log2_buckets && map.count; i++) {
		uint64_t next = map.buckets + i * sizeof(struct go_bucket);

		while (next && left-- > 0) {
			struct go_bucket b;

			if (!mem->read(mem->ctx, next, &b, sizeof(b)) ||
			    take_bucket(mem, &b, labels, &n) < 0)
				return -EIO;
			next = b.overflow;
		}
	}
	/* It may have been freed meanwhile, and be another one's. */
	if (!mem->read(mem->ctx, at, &again, sizeof(again)) ||
	    memcmp(&again.seed, &map.seed, sizeof(map.seed)) != 0 || again.buckets != map.buckets)
		return -ESTALE;
	if (n)
		qsort(labels, (size_t)n, sizeof(*labels), by_key);
	memcpy(ret_labels, labels, (size_t)n * sizeof(*labels));
	return n;
}
