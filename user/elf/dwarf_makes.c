#include "elf/dwarf_makes.h"

#include "base/bytes.h"
#include "base/grow.h"
#include "elf/dwarf.h"
#include "elf/dwarf_read.h"

#include <errno.h>
#include <string.h>

struct dwarf_types {
	char *text; /* what came from the cell */
	struct dwarf_type *rows;
	uint32_t n, room;
};

/* The question: the calls, as they are in memory. */
static void read_makes(struct bytes question, struct elf_file *elf, struct elf_file *alt, int spill,
		       int statm, int out)
{
	_cleanup_(freep) struct result_moves *calls = malloc(question.len + 1);

	(void)statm;
	if (!calls)
		return;
	memcpy(calls, question.data, question.len);
	dwarf_makes_read(elf, alt, calls, (uint32_t)(question.len / sizeof(*calls)), spill, out);
}

static void work(const struct cell_given *given)
{
	dwarf_cell_work(given, read_makes);
}

static const struct cell_kind cell = { DWARF_CELL("types of calls", work) };
CELL_KIND(cell);

static int take_type(struct dwarf_types *t, struct bytes *b, const struct dwarf_strings *s)
{
	struct dwarf_type type = { 0 };
	uint32_t name;
	uint8_t guess;

	if (bytes_u64(b, &type.vaddr) < 0 || bytes_u32(b, &name) < 0 ||
	    bytes_u64(b, &type.bytes) < 0 || bytes_u8(b, &guess) < 0 ||
	    !dwarf_string_at(s, name, &type.name) || !type.name || !type.bytes)
		return -EBADMSG;
	type.is_guess = guess != 0;
	if (!GROW(t->rows, t->n, t->room))
		return -ENOMEM;
	t->rows[t->n++] = type;
	return 0;
}

int dwarf_types_parse(char *text, size_t len, struct dwarf_types **ret_types)
{
	_cleanup_(dwarf_types_freep) struct dwarf_types *t = calloc(1, sizeof(*t));
	struct bytes b = bytes_of(text, len);
	struct dwarf_strings s = { 0 };
	uint8_t tag;
	int r = 0;

	if (!t) {
		free(text);
		return -ENOMEM;
	}
	t->text = text;
	while (r == 0 && bytes_u8(&b, &tag) == 0 && tag != 'E')
		r = tag == 'S'   ? dwarf_strings_take(&b, &s)
		    : tag == 'T' ? take_type(t, &b, &s)
				 : -EBADMSG;
	free(s.at);
	if (r == -ENOMEM)
		return r;
	*ret_types = TAKE_PTR(t);
	return 0;
}

int dwarf_types_read(struct elf_file *elf, struct elf_file *alt, const struct result_moves *calls,
		     uint32_t n, int64_t max_ms, struct dwarf_types **ret_types, struct err *e)
{
	struct dwarf_raw raw;
	int r = dwarf_file_ask(&cell, elf, alt, calls, n * sizeof(*calls), max_ms, &raw, e);

	return r < 0 ? r : dwarf_types_parse(raw.text, raw.len, ret_types);
}

const struct dwarf_type *dwarf_types_list(const struct dwarf_types *t, uint32_t *ret_n)
{
	*ret_n = t->n;
	return t->rows;
}

void dwarf_types_free(struct dwarf_types *t)
{
	if (!t)
		return;
	free(t->text);
	free(t->rows);
	free(t);
}
