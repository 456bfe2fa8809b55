/* What an object is to its container, and what its bytes say: cells of answers. */
#include "base/strbuf.h"
#include "base/units.h"
#include "cmd/heap/view.h"

#include <errno.h>
#include <string.h>

enum { VALUE_WORDS = 6, VALUE_LETTERS = 60 };

/* --- use --- */

static void put_live(const struct collection *c, uint64_t bytes, struct strbuf *out)
{
	if (c->kind == COLLECTION_VECTOR)
		strbuf_printf(out, "%s of %s words in use", unit_count((int64_t)c->elements).s,
			      unit_count((int64_t)(bytes / 8)).s);
	else
		strbuf_printf(out, "of a %s of %s", collection_name(c),
			      unit_count((int64_t)c->elements).s);
}

void heap_put_use(const struct heap_view *v, uint32_t node)
{
	const struct collection *c = collection_of_node(&v->s->collections, node);
	_cleanup_(strbuf_free) struct strbuf out = { 0 };
	uint32_t len;

	if (collection_text(&v->s->collections, node, &len))
		strbuf_printf(&out, "%s bytes of text", unit_count(len).s);
	else if (c)
		put_live(c, snapshot_bytes(v->s, node), &out);
	answer_text(v->out, out.s ? out.s : "");
}

/* --- sites --- */

void heap_put_site(const struct heap_view *v, uint32_t node)
{
	char name[SITE_NAME_MAX] = "";

	if (v->s->sites)
		sites_name(v->s->sites, sites_of(v->s->sites, node), name);
	answer_text(v->out, name);
}

int heap_no_sites(const struct heap_view *v, struct err *e)
{
	return err_set(
		e, -ENODATA,
		v->s->stored
			? "this snapshot does not know who allocated what: one that is taken with --trace SEC does"
			: "who allocated what is known of the time in which that is traced: --trace SEC");
}

/* --- values --- */

/* Printable text from the first byte on, or behind a head of at most 17 bytes (redis). */
static uint32_t text_from(const uint8_t *bytes, uint64_t n, uint64_t *ret_len)
{
	for (uint32_t from = 0; from < 18 && from < n; from++) {
		uint64_t i = from;

		while (i < n && (bytes[i] >= 0x20 || bytes[i] == '\n' || bytes[i] == '\t') &&
		       bytes[i] != 0x7f)
			i++;
		if (i - from >= 4 && (i == n || !bytes[i])) {
			*ret_len = i - from;
			return from;
		}
	}
	*ret_len = 0;
	return 0;
}

static void put_words(const uint8_t *bytes, uint64_t n, struct strbuf *out)
{
	for (uint64_t i = 0; i + 8 <= n && i < 8 * VALUE_WORDS; i += 8) {
		uint64_t word;

		memcpy(&word, bytes + i, 8);
		strbuf_printf(out, "%s0x%llx", i ? " " : "", (unsigned long long)word);
	}
	if (n > 8 * VALUE_WORDS)
		strbuf_puts(out, " …");
}

void heap_put_value(const struct heap_view *v, uint32_t node)
{
	const struct heap_memory *mem = copy_memory(v->s->copy);
	_cleanup_(strbuf_free) struct strbuf out = { 0 };
	uint8_t bytes[256];
	uint64_t n = snapshot_bytes(v->s, node), len;
	uint32_t from;

	n = n < sizeof(bytes) ? n : sizeof(bytes);
	if (mem->read(mem->ctx, v->s->blocks.rows[node].addr, bytes, n)) {
		from = text_from(bytes, n, &len);
		if (len && v->args->contents == FILE_CONTENTS_ALL) {
			strbuf_putc(&out, '"');
			strbuf_add_clean(&out, (const char *)bytes + from,
					 len < VALUE_LETTERS ? len : VALUE_LETTERS);
			strbuf_puts(&out, len > VALUE_LETTERS ? "…" : "\"");
		} else if (!len) {
			put_words(bytes, n, &out);
		}
	}
	answer_text(v->out, out.s ? out.s : "");
}
