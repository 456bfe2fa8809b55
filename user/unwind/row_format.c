#include "unwind/row_format.h"
#include "base/hash.h"
#include "unwind/row_cache.h"

#include <errno.h>
#include <string.h>

static const char magic[8] = "msrows\r\n";

/* Written and read by one machine: native byte order. */
struct header {
	char magic[8];
	uint32_t version, header_bytes;
	struct row_digest digest;
	uint64_t checksum; /* of all that follows this field */
	uint64_t first_page;
	uint32_t n_pages, n_rows, n_rules, rule_bytes;
	uint32_t kind, machine;
	struct unwind_counts counts;
};

enum { CHECKED_FROM = offsetof(struct header, first_page) };

_Static_assert(sizeof(struct header) % 8 == 0, "the numbers behind it are aligned");

static uint64_t total_bytes(const struct header *h)
{
	return sizeof(*h) + 4 * ((uint64_t)h->n_pages + 1 + h->n_rows) +
	       (uint64_t)h->n_rules * h->rule_bytes;
}

int row_format_write(const struct unwind_table *table, const struct row_digest *digest,
		     uint8_t **ret_data, size_t *ret_len)
{
	size_t dir_bytes = 4 * ((size_t)table->n_pages + 1), rows_bytes = 4 * (size_t)table->n_rows;
	struct header h;
	uint64_t len;
	uint8_t *data;

	memset(&h, 0, sizeof(h)); /* padding is part of the checksum */
	memcpy(h.magic, magic, sizeof(magic));
	h.version = ROW_CACHE_VERSION;
	h.header_bytes = sizeof(h);
	h.digest = *digest;
	h.first_page = table->first_page;
	h.n_pages = table->n_pages;
	h.n_rows = table->n_rows;
	h.n_rules = table->n_rules;
	h.rule_bytes = sizeof(struct ms_rule);
	h.kind = table->kind;
	h.machine = table->machine;
	h.counts = table->counts;
	len = total_bytes(&h);
	if (len > ROW_FORMAT_BYTES_MAX)
		return -EFBIG;
	data = malloc(len);
	if (!data)
		return -ENOMEM;
	memcpy(data, &h, sizeof(h));
	memcpy(data + sizeof(h), table->dir, dir_bytes);
	memcpy(data + sizeof(h) + dir_bytes, table->rows, rows_bytes);
	memcpy(data + sizeof(h) + dir_bytes + rows_bytes, table->rules,
	       h.n_rules * sizeof(struct ms_rule));
	h.checksum = content_hash(data + CHECKED_FROM, len - CHECKED_FROM);
	memcpy(data, &h, sizeof(h));
	*ret_data = data;
	*ret_len = len;
	return 0;
}

/* --- the walker trusts a table, so each number of it is checked here --- */

static bool header_ok(const struct header *h, size_t len, const struct row_digest *digest)
{
	return !memcmp(h->magic, magic, sizeof(magic)) && h->version == ROW_CACHE_VERSION &&
	       h->header_bytes == sizeof(*h) && h->rule_bytes == sizeof(struct ms_rule) &&
	       h->kind <= UNWIND_GUESS && rule_machine((uint16_t)h->machine) &&
	       h->machine <= UINT16_MAX && h->n_pages >= 1 && h->n_pages <= UNWIND_PAGES_MAX &&
	       h->first_page < UINT64_MAX >> MS_ROW_PAGE_SHIFT &&
	       h->n_pages <= (UINT64_MAX >> MS_ROW_PAGE_SHIFT) - h->first_page && h->n_rows >= 1 &&
	       h->n_rules >= MS_RULE_FIRST && h->n_rules <= MS_ROW_RULE_MASK + 1 &&
	       total_bytes(h) == len && (!digest || !memcmp(&h->digest, digest, sizeof(*digest)));
}

static bool rules_ok(const struct unwind_table *t)
{
	static const uint8_t fixed[MS_RULE_FIRST] = { MS_RULE_NONE, MS_RULE_END, MS_RULE_FP,
						      MS_RULE_BAD };
	uint16_t saved = (uint16_t)((1u << rule_machine(t->machine)->n_saved) - 1);

	for (uint32_t i = 0; i < t->n_rules; i++) {
		const struct ms_rule *r = &t->rules[i];

		if (r->kind >= MS_N_RULE_KINDS || r->reg >= MS_N_REGS || r->ra_reg >= MS_N_REGS ||
		    r->base_reg >= MS_N_REGS || (r->flags & ~(MS_RULE_RA_REG | MS_RULE_RA_BASE)) ||
		    r->pad || (r->from_reg & ~saved) || (r->lost & ~saved) ||
		    (r->from_reg & r->lost))
			return false;
		if (i < MS_RULE_FIRST && r->kind != fixed[i])
			return false;
	}
	return true;
}

static bool rows_ok(const struct unwind_table *t)
{
	/* The first row is at the first byte: every address has one. */
	if (t->dir[0] != 0 || t->dir[t->n_pages] != t->n_rows ||
	    t->rows[0] >> MS_ROW_RULE_BITS != 0 || t->dir[1] < 1)
		return false;
	for (uint32_t p = 0; p < t->n_pages; p++) {
		if (t->dir[p] > t->dir[p + 1] || t->dir[p + 1] > t->n_rows)
			return false;
		for (uint32_t i = t->dir[p]; i < t->dir[p + 1]; i++) {
			if ((t->rows[i] & MS_ROW_RULE_MASK) >= t->n_rules)
				return false;
			if (i > t->dir[p] &&
			    t->rows[i] >> MS_ROW_RULE_BITS <= t->rows[i - 1] >> MS_ROW_RULE_BITS)
				return false;
		}
	}
	return true;
}

static void *copy(const uint8_t **from, size_t bytes)
{
	void *to = malloc(bytes);

	if (to)
		memcpy(to, *from, bytes);
	*from += bytes;
	return to;
}

int row_format_read(const uint8_t *data, size_t len, const struct row_digest *digest,
		    struct unwind_table **ret_table)
{
	_cleanup_(unwind_table_freep) struct unwind_table *t = NULL;
	const uint8_t *from = data + sizeof(struct header);
	struct header h;

	if (len < sizeof(h) || len > ROW_FORMAT_BYTES_MAX)
		return -EBADMSG;
	memcpy(&h, data, sizeof(h));
	if (!header_ok(&h, len, digest) ||
	    h.checksum != content_hash(data + CHECKED_FROM, len - CHECKED_FROM))
		return -EBADMSG;
	t = calloc(1, sizeof(*t));
	if (!t)
		return -ENOMEM;
	t->kind = h.kind;
	t->machine = (uint16_t)h.machine;
	t->first_page = h.first_page;
	t->n_pages = h.n_pages;
	t->n_rows = h.n_rows;
	t->n_rules = h.n_rules;
	t->counts = h.counts;
	t->dir = copy(&from, 4 * ((size_t)t->n_pages + 1));
	t->rows = copy(&from, 4 * (size_t)t->n_rows);
	t->rules = copy(&from, t->n_rules * sizeof(struct ms_rule));
	if (!t->dir || !t->rows || !t->rules)
		return -ENOMEM;
	if (!rules_ok(t) || !rows_ok(t))
		return -EBADMSG;
	*ret_table = TAKE_PTR(t);
	return 0;
}
