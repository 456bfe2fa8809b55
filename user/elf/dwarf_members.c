#include "elf/dwarf_members.h"

#include "base/bytes.h"
#include "elf/dwarf.h"
#include "elf/dwarf_read.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct dwarf_members {
	char *text; /* what came over the pipe */
	struct dwarf_layout *layouts;
	struct dwarf_slot *slots;
	struct dwarf_variable *variables;
	uint32_t n_layouts, n_variables, room_variables;
	uint64_t n_slots, room_slots;
	bool complete;
};

/* While it is read: a layout's number is that of its name; where its slots begin, since they move as they grow. */
struct parse {
	struct dwarf_members *m;
	struct bytes b;
	struct dwarf_strings s;
	uint64_t *first;
	uint32_t room;
};

/* Room for a layout of each name so far. */
static int grow(struct parse *p)
{
	uint32_t n = p->s.n + 1, room = p->room ? p->room : 256;
	struct dwarf_layout *layouts;
	uint64_t *first;

	while (room < n)
		room *= 2;
	if (room > p->room) {
		layouts = reallocarray(p->m->layouts, room, sizeof(*layouts));
		if (layouts)
			p->m->layouts = layouts;
		first = reallocarray(p->first, room, sizeof(*first));
		if (first)
			p->first = first;
		if (!layouts || !first)
			return -ENOMEM;
		memset(layouts + p->room, 0, (room - p->room) * sizeof(*layouts));
		memset(first + p->room, 0, (room - p->room) * sizeof(*first));
		p->room = room;
	}
	p->m->n_layouts = n;
	return 0;
}

static int take_slots(struct parse *p, uint32_t n, uint64_t bytes)
{
	struct dwarf_members *m = p->m;

	if (m->n_slots + n > m->room_slots) {
		uint64_t room = 2 * (m->n_slots + n) + 64;
		struct dwarf_slot *more = reallocarray(m->slots, room, sizeof(*more));

		if (!more)
			return -ENOMEM;
		m->slots = more;
		m->room_slots = room;
	}
	for (uint32_t i = 0; i < n; i++) {
		struct dwarf_slot slot = { 0 };

		if (bytes_u32(&p->b, &slot.off) < 0 || bytes_u32(&p->b, &slot.layout) < 0 ||
		    bytes_u8(&p->b, &slot.kind) < 0 || slot.off % 8 || slot.off + 8ULL > bytes ||
		    !slot.layout || slot.layout > p->s.n || slot.kind >= DWARF_SLOT_KINDS)
			return -EBADMSG;
		m->slots[m->n_slots++] = slot;
	}
	return 0;
}

static int take_layout(struct parse *p)
{
	struct dwarf_layout *layout;
	uint32_t name, head, n;
	uint64_t bytes, first = p->m->n_slots;
	int r;

	if (bytes_u32(&p->b, &name) < 0 || bytes_u64(&p->b, &bytes) < 0 ||
	    bytes_u32(&p->b, &head) < 0 || bytes_u32(&p->b, &n) < 0 || !name || name > p->s.n ||
	    head > p->s.n || head == name || !bytes || bytes > 1ULL << 40 || n > DWARF_SLOTS_MAX)
		return -EBADMSG;
	r = take_slots(p, n, bytes);
	if (r < 0)
		return r;
	layout = &p->m->layouts[name];
	layout->is_ambiguous = layout->bytes != 0;
	layout->bytes = bytes;
	layout->head = head;
	layout->n = n;
	p->first[name] = first;
	return 0;
}

static int take_variable(struct parse *p)
{
	struct dwarf_members *m = p->m;
	struct dwarf_variable v = { 0 };

	if (bytes_u64(&p->b, &v.vaddr) < 0 || bytes_u32(&p->b, &v.layout) < 0 || !v.layout ||
	    v.layout > p->s.n)
		return -EBADMSG;
	if (m->n_variables == m->room_variables) {
		uint32_t room = m->room_variables ? 2 * m->room_variables : 256;
		struct dwarf_variable *more = reallocarray(m->variables, room, sizeof(*more));

		if (!more)
			return -ENOMEM;
		m->variables = more;
		m->room_variables = room;
	}
	m->variables[m->n_variables++] = v;
	return 0;
}

static int take(struct parse *p, uint8_t tag)
{
	int r;

	switch (tag) {
	case 'S':
		r = p->s.n < DWARF_LAYOUTS_MAX ? dwarf_strings_take(&p->b, &p->s) : -EBADMSG;
		return r == 0 ? grow(p) : r;
	case 'L':
		return take_layout(p);
	case 'V':
		return take_variable(p);
	default:
		return -EBADMSG;
	}
}

static void name_all(struct parse *p)
{
	for (uint32_t i = 1; i < p->m->n_layouts; i++) {
		struct dwarf_layout *layout = &p->m->layouts[i];

		if (!dwarf_string_at(&p->s, i, &layout->name) || !layout->name)
			layout->name = "";
		layout->slots = layout->n ? p->m->slots + p->first[i] : NULL;
	}
}

int dwarf_members_parse(char *text, size_t len, struct dwarf_members **ret_members)
{
	_cleanup_(dwarf_members_freep) struct dwarf_members *m = calloc(1, sizeof(*m));
	struct parse p = { .m = m, .b = bytes_of(text, len) };
	int32_t code = -1;
	uint8_t tag = 0;
	int r = 0;

	if (!m) {
		free(text);
		return -ENOMEM;
	}
	m->text = text;
	while (r == 0 && bytes_u8(&p.b, &tag) == 0 && tag != 'E')
		r = take(&p, tag);
	m->complete = r == 0 && tag == 'E' && bytes_u32(&p.b, (uint32_t *)&code) == 0 && code == 0;
	if (r != -ENOMEM)
		name_all(&p);
	free(p.s.at);
	free(p.first);
	if (r == -ENOMEM)
		return r;
	*ret_members = TAKE_PTR(m);
	return 0;
}

static void read_members(struct bytes question, struct elf_file *elf, struct elf_file *alt,
			 int spill, int statm, int out)
{
	(void)question;
	(void)statm;
	dwarf_members_write(elf, alt, spill, out);
}

static void work(const struct cell_given *given)
{
	dwarf_cell_work(given, read_members);
}

static const struct cell_kind cell = { DWARF_CELL("types", work) };
CELL_KIND(cell);

int dwarf_members_read(struct elf_file *elf, struct elf_file *alt, int64_t max_ms,
		       struct dwarf_members **ret_members, struct err *e)
{
	struct dwarf_raw raw;
	int r = dwarf_file_ask(&cell, elf, alt, "", 0, max_ms, &raw, e);

	return r < 0 ? r : dwarf_members_parse(raw.text, raw.len, ret_members);
}

const struct dwarf_layout *dwarf_members_layouts(const struct dwarf_members *m, uint32_t *ret_n)
{
	*ret_n = m->n_layouts;
	return m->layouts;
}

const struct dwarf_variable *dwarf_members_variables(const struct dwarf_members *m, uint32_t *ret_n)
{
	*ret_n = m->n_variables;
	return m->variables;
}

bool dwarf_members_complete(const struct dwarf_members *m)
{
	return m->complete;
}

void dwarf_members_free(struct dwarf_members *m)
{
	if (!m)
		return;
	free(m->text);
	free(m->layouts);
	free(m->slots);
	free(m->variables);
	free(m);
}
