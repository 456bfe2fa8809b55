#include "heap/ghc/source_map.h"

#include "base/large.h"

#include <stdio.h>
#include <string.h>
#include <zstd.h>

enum {
	NODES_MAX = 1 << 16,
	LIST_MAX = 126,
	ENTRIES_MAX = 1 << 22, /* of all nodes */
	BYTES_MAX = 256 << 20, /* … and of its texts, unpacked */
	TEXTS_MAX = 8,
	TEXT_PIECE = 32,     /* bytes of a text that are read together */
	TAKEN_MAX = 1 << 17, /* entries that somebody asked for */
	OLD_LIST_BYTES = 8 * LIST_MAX,
	CHECKED = 4, /* entries by which a form is known */
};

#define MAGIC 0x4950450049504500ULL

/* What the texts of an entry are, in their order. */
enum text { TABLE, CLOSURE, TYPE, LABEL, UNIT, MODULE, FILE_NAME, SPAN, NONE };

static const struct form {
	uint8_t words; /* of a node, all that is read */
	bool apart;    /* infos are in an array of their own */
	uint8_t bytes; /* of an entry, with its info unless apart */
	uint8_t n;
	uint8_t texts[TEXTS_MAX];
	bool shared; /* the module is the node's */
} forms[] = {
	{ 9, true, 24, 6, { TABLE, CLOSURE, TYPE, LABEL, FILE_NAME, SPAN }, true },
	{ 8, true, 32, 7, { TABLE, CLOSURE, TYPE, LABEL, MODULE, FILE_NAME, SPAN }, false },
	{ 3, false, 40, 7, { TABLE, CLOSURE, TYPE, LABEL, MODULE, FILE_NAME, SPAN }, false },
	{ 3, false, 32, 6, { TABLE, CLOSURE, TYPE, LABEL, MODULE, SPAN }, false },
};

/* Words of nodes that have more than three. */
enum { NEXT, COMPRESSED, COUNT, INFOS, ENTRIES, ENTRIES_BYTES, TEXTS, TEXTS_BYTES, SHARED };

struct map {
	struct ghc *g;
	bool (*wanted)(void *ctx, uint64_t info);
	void (*fn)(void *ctx, uint64_t info, const struct ghc_source *source);
	void *ctx;
	uint32_t *taken;
};

/* One node, as its form has it. */
struct node {
	const struct form *form;
	uint64_t count, infos, entries, texts;
	uint8_t *unpacked[2]; /* entries and texts where they were compressed; NULL */
	uint64_t unpacked_bytes[2];
	uint32_t module;
};

static bool get(const struct ghc *g, uint64_t addr, void *to, size_t bytes)
{
	return g->mem.read(g->mem.ctx, addr, to, bytes);
}

/* Of entries (0) or texts (1), `off` bytes behind where they begin. */
static bool get_part(const struct ghc *g, const struct node *n, int part, uint64_t off, void *to,
		     size_t bytes)
{
	if (!n->unpacked[part])
		return get(g, (part ? n->texts : n->entries) + off, to, bytes);
	if (off > n->unpacked_bytes[part] || bytes > n->unpacked_bytes[part] - off)
		return false;
	memcpy(to, n->unpacked[part] + off, bytes);
	return true;
}

/* --- texts --- */

/* Printable, up to its NUL; what is longer than there is room for is cut. */
static bool get_text(const struct ghc *g, const struct node *n, uint64_t off,
		     char text[GHC_SOURCE_MAX])
{
	for (size_t i = 0, there = 0; i < GHC_SOURCE_MAX; i++) {
		if (i == there) {
			there += get_part(g, n, 1, off + i, text + i, TEXT_PIECE) ? TEXT_PIECE : 1;
			if (there == i + 1 && !get_part(g, n, 1, off + i, text + i, 1))
				return false;
		}
		if (!text[i])
			return true;
		if ((uint8_t)text[i] < 0x20 || text[i] == 0x7f)
			return false;
	}
	text[GHC_SOURCE_MAX - 1] = '\0';
	return true;
}

/* "src/Main.hs" and "12:5-30"; where there is one text it is both. */
static void put_position(struct ghc_source *s, const char *file, const char *span)
{
	snprintf(s->position, sizeof(s->position), "%.180s%s%.60s", file, *file && *span ? ":" : "",
		 span);
}

/* --- entries --- */

static uint64_t info_of(const struct ghc *g, const struct node *n, uint64_t i)
{
	uint64_t info = 0;

	if (n->form->apart)
		get(g, n->infos + 8 * i, &info, 8);
	else
		get(g, n->entries + i * n->form->bytes, &info, 8);
	return info;
}

/* `check`: are all its texts texts? */
static bool get_source(const struct ghc *g, const struct node *n, uint64_t i, bool check,
		       struct ghc_source *ret)
{
	uint32_t numbers[TEXTS_MAX] = { 0 };
	uint64_t at = i * n->form->bytes + (n->form->apart ? 0 : 8);
	char file[GHC_SOURCE_MAX] = "", span[GHC_SOURCE_MAX] = "", other[GHC_SOURCE_MAX];

	*ret = (struct ghc_source){ "", "", "" };
	if (!get_part(g, n, 0, at, numbers, 4ULL * n->form->n))
		return false;
	for (uint32_t k = 0; k < n->form->n; k++) {
		enum text what = n->form->texts[k];
		char *to = what == LABEL       ? ret->label
			   : what == MODULE    ? ret->module
			   : what == FILE_NAME ? file
			   : what == SPAN      ? span
					       : other;

		/* The newest have the type of closures as a number instead of a text; the others are not shown. */
		if (what != CLOSURE && (to != other || check) && !get_text(g, n, numbers[k], to))
			return false;
	}
	if (n->form->shared && !get_text(g, n, n->module, ret->module))
		return false;
	put_position(ret, file, span);
	return true;
}

/* --- nodes --- */

static void node_fini(struct node *n)
{
	large_free(n->unpacked[0]);
	large_free(n->unpacked[1]);
}

/* A frame of zstd at `addr`, of `bytes` unpacked. */
static uint8_t *unpack(const struct ghc *g, uint64_t addr, uint64_t bytes)
{
	uint64_t most = bytes && bytes <= BYTES_MAX ? ZSTD_compressBound(bytes) : 0, len;
	uint8_t *packed = most ? large_alloc(most, 1) : NULL, *out = NULL;
	size_t frame;

	/* How long it is says the frame itself; what is mapped behind it need not be as much as there might be. */
	for (len = 0; packed && len < most; len += 4096 - (addr + len) % 4096) {
		uint64_t part = 4096 - (addr + len) % 4096;

		if (!get(g, addr + len, packed + len, part < most - len ? part : most - len))
			break;
	}
	len = len < most ? len : most;
	frame = packed ? ZSTD_findFrameCompressedSize(packed, len) : 0;
	if (packed && !ZSTD_isError(frame))
		out = large_alloc(bytes, 1);
	if (out && ZSTD_decompress(out, bytes, packed, frame) != bytes) {
		large_free(out);
		out = NULL;
	}
	large_free(packed);
	return out;
}

static bool open_apart(const struct ghc *g, const uint64_t *words, struct node *n)
{
	uint64_t magic;

	n->count = words[COUNT];
	n->infos = words[INFOS];
	n->entries = words[ENTRIES];
	n->texts = words[TEXTS];
	n->module = (uint32_t)(words[SHARED] >> 32);
	if (words[COMPRESSED] > 1 || words[ENTRIES_BYTES] < n->count * n->form->bytes)
		return false;
	if (words[COMPRESSED]) {
		n->unpacked_bytes[0] = words[ENTRIES_BYTES];
		n->unpacked_bytes[1] = words[TEXTS_BYTES];
		n->unpacked[0] = unpack(g, n->entries, n->unpacked_bytes[0]);
		n->unpacked[1] = unpack(g, n->texts, n->unpacked_bytes[1]);
		return n->unpacked[0] && n->unpacked[1];
	}
	if (get(g, n->entries, &magic, 8) && magic == MAGIC)
		n->entries += 8;
	if (get(g, n->texts, &magic, 8) && magic == MAGIC)
		n->texts += 8;
	return true;
}

/* Does it hold together as this form? */
static bool node_open(const struct ghc *g, uint64_t addr, const struct form *form, struct node *n)
{
	uint64_t words[9] = { 0 };
	struct ghc_source source;

	*n = (struct node){ .form = form };
	if (!get(g, addr, words, 8ULL * form->words))
		return false;
	if (form->apart) {
		if (words[COUNT] > ENTRIES_MAX || !open_apart(g, words, n))
			return false;
	} else {
		n->texts = words[1];
		n->count = words[2];
		n->entries = addr + 24;
	}
	if (!n->count || n->count > ENTRIES_MAX)
		return false;
	for (uint64_t i = 0; i < n->count && i < CHECKED; i++)
		if (!ghc_is_code(g, info_of(g, n, i)) || !get_source(g, n, i, true, &source))
			return false;
	return true;
}

static void each_entry(const struct map *m, const struct node *n)
{
	struct ghc_source source;

	for (uint64_t i = 0; i < n->count; i++) {
		uint64_t info = info_of(m->g, n, i);

		if (*m->taken < TAKEN_MAX && m->wanted(m->ctx, info) &&
		    get_source(m->g, n, i, false, &source)) {
			m->fn(m->ctx, info, &source);
			++*m->taken;
		}
	}
}

static uint64_t read_list(const struct map *m, uint64_t node, const struct form *form)
{
	uint64_t sum = 0, unpacked = 0;

	for (uint32_t i = 0; node && i < NODES_MAX && sum < ENTRIES_MAX && unpacked < BYTES_MAX;
	     i++) {
		struct node n;

		if (node_open(m->g, node, form, &n)) {
			each_entry(m, &n);
			sum += n.count;
		}
		unpacked += n.unpacked_bytes[0] + n.unpacked_bytes[1];
		node_fini(&n);
		if (!get(m->g, node, &node, 8))
			break;
	}
	return sum;
}

/* --- 9.2 --- */

/* The text that a word of an entry refers to. */
static bool get_old_text(const struct ghc *g, uint64_t addr, char text[GHC_SOURCE_MAX])
{
	const struct node n = { .texts = addr };

	return get_text(g, &n, 0, text);
}

/* false: that is no entry. */
static bool take_old_entry(const struct map *m, uint64_t at)
{
	uint64_t words[7];
	struct ghc_source s = { "", "", "" };

	if (!get(m->g, at, words, sizeof(words)) || !ghc_is_code(m->g, words[0]))
		return false;
	if (*m->taken == TAKEN_MAX || !m->wanted(m->ctx, words[0]))
		return true;
	if (!get_old_text(m->g, words[4], s.label) || !get_old_text(m->g, words[5], s.module) ||
	    !get_old_text(m->g, words[6], s.position))
		return false;
	m->fn(m->ctx, words[0], &s);
	++*m->taken;
	return true;
}

static uint64_t read_old_list(const struct map *m, uint64_t node)
{
	uint64_t sum = 0, list, entry;

	for (uint32_t i = 0; node && i < NODES_MAX; i++) {
		uint8_t count;

		if (!get(m->g, node + OLD_LIST_BYTES, &count, 1) || count > LIST_MAX)
			return sum;
		for (uint32_t k = 0; k < count; k++) {
			if (!get(m->g, node + 8ULL * k, &list, 8))
				return sum;
			for (; sum < ENTRIES_MAX && get(m->g, list, &entry, 8) && entry;
			     list += 8, sum++)
				if (!take_old_entry(m, entry))
					return sum;
		}
		if (!get(m->g, node + OLD_LIST_BYTES + 8, &node, 8))
			return sum;
	}
	return sum;
}

uint64_t ghc_source_map_read(struct ghc *g, uint64_t head, bool (*wanted)(void *ctx, uint64_t info),
			     void (*fn)(void *ctx, uint64_t info, const struct ghc_source *source),
			     void *ctx)
{
	uint32_t taken = 0;
	const struct map m = { g, wanted, fn, ctx, &taken };
	uint64_t node;

	if (!head || !get(g, head, &node, 8) || !node)
		return 0;
	for (size_t i = 0; i < sizeof(forms) / sizeof(*forms); i++) {
		struct node n;
		bool is = node_open(g, node, &forms[i], &n);

		node_fini(&n);
		if (is)
			return read_list(&m, node, &forms[i]);
	}
	return read_old_list(&m, node);
}
