#include "import/ghc_events.h"

#include <string.h>

enum {
	TAG_HEADER_BEGIN = 0x68647262, /* hdrb */
	TAG_HEADER_END = 0x68647265,   /* hdre */
	TAG_TYPES_BEGIN = 0x68657462,  /* hetb */
	TAG_TYPES_END = 0x68657465,    /* hete */
	TAG_TYPE_BEGIN = 0x65746200,   /* etb\0 */
	TAG_TYPE_END = 0x65746500,     /* ete\0 */
	TAG_DATA_BEGIN = 0x64617462,   /* datb */
	DATA_END = 0xffff,
	VARIES = UINT16_MAX,
	TEXT_MAX = 4096, /* of a description; GHC's have less than 100 bytes */
};

enum { AT_BEGIN, AT_TYPES, AT_TYPES_END, AT_EVENTS, AT_END };

static uint64_t big_endian(const uint8_t *p, unsigned n)
{
	uint64_t v = 0;

	while (n--)
		v = v << 8 | *p++;
	return v;
}

#define READER(name, type)                                                                         \
	bool name(struct bytes *b, type *ret)                                                      \
	{                                                                                          \
		if (b->len < sizeof(*ret))                                                         \
			return false;                                                              \
		*ret = (type)big_endian(b->data, sizeof(*ret));                                    \
		return bytes_skip(b, sizeof(*ret)) == 0;                                           \
	}
READER(ghc_u8, uint8_t)
READER(ghc_u16, uint16_t)
READER(ghc_u32, uint32_t)
READER(ghc_u64, uint64_t)

struct bytes ghc_string(struct bytes *b)
{
	const uint8_t *nul = memchr(b->data, 0, b->len);
	struct bytes text = { b->data, nul ? (size_t)(nul - b->data) : b->len };

	bytes_skip(b, text.len + (nul != NULL));
	return text;
}

void ghc_events_init(struct ghc_events *g, int (*event)(void *ctx, const struct ghc_event *e),
		     void *ctx)
{
	memset(g, 0, sizeof(*g));
	memset(g->size, 0xff, sizeof(g->size));
	g->event = event;
	g->ctx = ctx;
	g->block_cap = GHC_NO_CAP;
}

bool ghc_events_begun(const struct ghc_events *g)
{
	return g->state >= AT_EVENTS;
}

bool ghc_events_ended(const struct ghc_events *g)
{
	return g->state == AT_END;
}

bool ghc_events_has(const struct ghc_events *g, uint16_t number)
{
	return g->size[number] >= 0;
}

/* One declaration at the front of `b`. 0: there is more of it to come; else its length, or -EBADMSG. */
static int64_t declaration(struct ghc_events *g, struct bytes b)
{
	size_t whole = b.len;
	uint32_t tag, length, end;
	uint16_t number, size;

	if (!ghc_u32(&b, &tag) || !ghc_u16(&b, &number) || !ghc_u16(&b, &size))
		return 0;
	for (int i = 0; i < 2; i++) {
		if (!ghc_u32(&b, &length))
			return 0;
		if (length > TEXT_MAX)
			return -EBADMSG;
		if (bytes_skip(&b, length) < 0)
			return 0;
	}
	if (!ghc_u32(&b, &end))
		return 0;
	if (end != TAG_TYPE_END)
		return -EBADMSG;
	g->size[number] = size;
	return (int64_t)(whole - b.len);
}

/* As declaration(), of all that is before the events. */
static int64_t header_item(struct ghc_events *g, struct bytes b)
{
	uint32_t first, second;

	if (!ghc_u32(&b, &first))
		return 0;
	if (g->state == AT_TYPES && first == TAG_TYPE_BEGIN)
		return declaration(g, bytes_of(b.data - 4, b.len + 4));
	if (g->state == AT_TYPES && first == TAG_TYPES_END) {
		g->state = AT_TYPES_END;
		return 4;
	}
	if (!ghc_u32(&b, &second))
		return 0;
	if (g->state == AT_BEGIN && first == TAG_HEADER_BEGIN && second == TAG_TYPES_BEGIN)
		g->state = AT_TYPES;
	else if (g->state == AT_TYPES_END && first == TAG_HEADER_END && second == TAG_DATA_BEGIN)
		g->state = AT_EVENTS;
	else
		return -EBADMSG;
	return 8;
}

static void begin_block(struct ghc_events *g, const struct ghc_event *e, uint64_t begin)
{
	struct bytes b = e->payload;
	uint32_t size;
	uint64_t end_ns;
	uint16_t cap;

	if (!ghc_u32(&b, &size) || !ghc_u64(&b, &end_ns) || !ghc_u16(&b, &cap))
		return;
	g->block_end = begin + size;
	g->block_cap = cap;
}

/* Its size is not known: the rest of its block is passed over. */
static int64_t undeclared(struct ghc_events *g, uint16_t number)
{
	if (!g->skipped)
		g->first_skipped = g->offset;
	g->unknown = number;
	if (g->block_end <= g->offset)
		return -EBADMSG;
	g->skip = g->block_end - g->offset;
	g->skipped += g->skip;
	return 0;
}

static int64_t event_item(struct ghc_events *g, struct bytes b, int *ret_stop)
{
	struct ghc_event e = { .cap = GHC_NO_CAP };
	size_t whole = b.len;
	uint16_t length;
	int32_t size;

	if (!ghc_u16(&b, &e.number))
		return 0;
	if (e.number == DATA_END) {
		g->state = AT_END;
		return 2;
	}
	size = g->size[e.number];
	if (size < 0)
		return undeclared(g, e.number);
	if (!ghc_u64(&b, &e.ns))
		return 0;
	if (size == VARIES) {
		if (!ghc_u16(&b, &length))
			return 0;
		size = length;
	}
	if (bytes_take(&b, (size_t)size, &e.payload) < 0)
		return 0;
	if (g->block_end && g->offset >= g->block_end) {
		g->block_end = 0;
		g->block_cap = GHC_NO_CAP;
	}
	if (e.number == GHC_BLOCK_MARKER)
		begin_block(g, &e, g->offset);
	e.cap = g->block_cap;
	g->n_events++;
	if (e.ns > g->last_ns)
		g->last_ns = e.ns;
	*ret_stop = g->event(g->ctx, &e);
	return (int64_t)(whole - b.len);
}

/* As many whole items as there are in `b`; *ret_used: their bytes. */
static int parse(struct ghc_events *g, struct bytes b, size_t *ret_used)
{
	size_t whole = b.len;
	int stop = 0;

	while (stop == 0 && b.len && g->state != AT_END) {
		uint64_t skip = g->skip < b.len ? g->skip : b.len;
		int64_t n = (int64_t)skip;

		g->skip -= skip;
		if (!n)
			n = g->state < AT_EVENTS ? header_item(g, b) : event_item(g, b, &stop);
		if (n < 0)
			return (int)n;
		if (!n && !g->skip)
			break;
		bytes_skip(&b, (size_t)n);
		g->offset += (uint64_t)n;
	}
	*ret_used = g->state == AT_END ? whole : whole - b.len;
	return stop;
}

int ghc_events_feed(struct ghc_events *g, struct bytes piece)
{
	size_t used = 0, before, more;
	int r;

	while (g->n_carry && piece.len) {
		before = g->n_carry;
		more = sizeof(g->carry) - before < piece.len ? sizeof(g->carry) - before
							     : piece.len;
		memcpy(g->carry + before, piece.data, more);
		r = parse(g, bytes_of(g->carry, before + more), &used);
		if (r != 0)
			return r;
		if (used >= before) {
			/* The rest is all of this piece. */
			bytes_skip(&piece, used - before);
			g->n_carry = 0;
			break;
		}
		g->n_carry = before + more - used;
		memmove(g->carry, g->carry + used, g->n_carry);
		bytes_skip(&piece, more);
	}
	if (g->n_carry)
		return 0;
	r = parse(g, piece, &used);
	if (r != 0)
		return r;
	bytes_skip(&piece, used);
	if (piece.len > sizeof(g->carry))
		return -EBADMSG;
	if (piece.len)
		memcpy(g->carry, piece.data, piece.len);
	g->n_carry = piece.len;
	return 0;
}
