#include "elf/sdt.h"

#include "base/bytes.h"
#include "base/grow.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NOTE_TYPE 3

struct sdt_notes {
	uint8_t *bytes; /* of the section; strings lie in it */
	struct sdt_note *notes;
	uint32_t n, cap;
};

void sdt_notes_free(struct sdt_notes *notes)
{
	if (!notes)
		return;
	free(notes->bytes);
	free(notes->notes);
	free(notes);
}

uint32_t sdt_notes_count(const struct sdt_notes *notes)
{
	return notes->n;
}

const struct sdt_note *sdt_notes_at(const struct sdt_notes *notes, uint32_t i)
{
	return &notes->notes[i];
}

static int word(struct bytes *b, bool is64, uint64_t *ret_value)
{
	uint32_t half;
	int r;

	if (is64)
		return bytes_u64(b, ret_value);
	r = bytes_u32(b, &half);
	if (r == 0)
		*ret_value = half;
	return r;
}

static int string(struct bytes *b, const char **ret_s)
{
	struct bytes s;
	int r = bytes_cstr(b, &s);

	if (r == 0)
		*ret_s = (const char *)s.data;
	return r;
}

/* What one section's notes are read with. */
struct reader {
	struct elf_file *elf;
	const struct elf_segment *segs;
	uint32_t n_segs;
	uint64_t base; /* where .stapsdt.base is; 0: nowhere */
};

/* 0, -EBADMSG for one that does not hold together, -ENOMEM. */
static int add_note(struct sdt_notes *notes, const struct reader *rd, struct bytes desc)
{
	bool is64 = elf_file_is64(rd->elf);
	uint64_t place, base, semaphore, moved;
	struct sdt_note note = { 0 };

	if (word(&desc, is64, &place) < 0 || word(&desc, is64, &base) < 0 ||
	    word(&desc, is64, &semaphore) < 0 || string(&desc, &note.provider) < 0 ||
	    string(&desc, &note.name) < 0 || string(&desc, &note.args) < 0)
		return -EBADMSG;
	moved = rd->base && base ? rd->base - base : 0;
	if (!elf_segments_vaddr_to_off(rd->segs, rd->n_segs, place + moved, &note.off))
		return -EBADMSG;
	if (semaphore && !elf_segments_vaddr_to_off(rd->segs, rd->n_segs, semaphore + moved,
						    &note.semaphore_off))
		return -EBADMSG;
	if (!GROW(notes->notes, notes->n, notes->cap))
		return -ENOMEM;
	notes->notes[notes->n++] = note;
	return 0;
}

/* The descriptor's or name's end as the section has it: padded to 4. */
static int padded(struct bytes *b, uint32_t len, struct bytes *ret_part)
{
	uint32_t pad = -len & 3;
	int r = bytes_take(b, len, ret_part);

	if (r == 0)
		bytes_skip(b, pad < b->len ? pad : b->len);
	return r;
}

static int read_notes(struct sdt_notes *notes, const struct reader *rd, struct bytes b)
{
	while (b.len && notes->n < SDT_NOTES_MAX) {
		uint32_t name_len, desc_len, type;
		struct bytes name, desc;

		if (bytes_u32(&b, &name_len) < 0 || bytes_u32(&b, &desc_len) < 0 ||
		    bytes_u32(&b, &type) < 0 || padded(&b, name_len, &name) < 0 ||
		    padded(&b, desc_len, &desc) < 0)
			return 0; /* where the next one begins is not known */
		if (type != NOTE_TYPE || name.len != sizeof("stapsdt") ||
		    memcmp(name.data, "stapsdt", sizeof("stapsdt")) != 0)
			continue;
		if (add_note(notes, rd, desc) == -ENOMEM)
			return -ENOMEM;
	}
	return 0;
}

int sdt_notes_load(struct elf_file *elf, struct sdt_notes **ret_notes, struct err *e)
{
	_cleanup_(sdt_notes_freep) struct sdt_notes *notes = NULL;
	const struct elf_section *sec, *base;
	struct reader rd = { .elf = elf };
	struct bytes b;
	int r = elf_file_find_section(elf, ".note.stapsdt", &sec, e);

	if (r < 0)
		return r;
	notes = calloc(1, sizeof(*notes));
	if (!notes)
		return err_set(e, -ENOMEM, "out of memory");
	b.len = sec->size;
	r = elf_file_read_section(elf, sec, &notes->bytes, e);
	if (r < 0)
		return r;
	b.data = notes->bytes;
	if (elf_file_find_section(elf, ".stapsdt.base", &base, NULL) == 0)
		rd.base = base->vaddr;
	rd.segs = elf_file_segments(elf, &rd.n_segs);
	r = read_notes(notes, &rd, b);
	if (r < 0)
		return err_set(e, r, "out of memory");
	*ret_notes = TAKE_PTR(notes);
	return 0;
}

/* --- arguments -------------------------------------------------------------------------------- */

/* By DWARF number (System V ABI, AMD64, figure 3.36): 8, 4, 2 and 1 bytes of it. */
static const char *const x86_names[16][4] = {
	{ "rax", "eax", "ax", "al" },      { "rdx", "edx", "dx", "dl" },
	{ "rcx", "ecx", "cx", "cl" },      { "rbx", "ebx", "bx", "bl" },
	{ "rsi", "esi", "si", "sil" },     { "rdi", "edi", "di", "dil" },
	{ "rbp", "ebp", "bp", "bpl" },     { "rsp", "esp", "sp", "spl" },
	{ "r8", "r8d", "r8w", "r8b" },     { "r9", "r9d", "r9w", "r9b" },
	{ "r10", "r10d", "r10w", "r10b" }, { "r11", "r11d", "r11w", "r11b" },
	{ "r12", "r12d", "r12w", "r12b" }, { "r13", "r13d", "r13w", "r13b" },
	{ "r14", "r14d", "r14w", "r14b" }, { "r15", "r15d", "r15w", "r15b" },
};

static bool is_end(char c)
{
	return c == '\0' || c == ' ';
}

static size_t name_length(const char *s)
{
	size_t n = 0;

	while ((s[n] >= 'a' && s[n] <= 'z') || (s[n] >= '0' && s[n] <= '9'))
		n++;
	return n;
}

static bool x86_register(const char **s, uint8_t *ret_reg)
{
	const char *name = *s + 1;
	size_t len;

	if (**s != '%')
		return false;
	len = name_length(name);
	for (uint8_t i = 0; i < 16; i++)
		for (int j = 0; j < 4; j++)
			if (strlen(x86_names[i][j]) == len &&
			    memcmp(x86_names[i][j], name, len) == 0) {
				*ret_reg = i;
				*s = name + len;
				return true;
			}
	return false;
}

static bool arm64_register(const char **s, uint8_t *ret_reg)
{
	size_t len = name_length(*s);
	unsigned long n;
	char *end;

	if (len == 2 && memcmp(*s, "sp", 2) == 0) {
		*ret_reg = 31;
		*s += 2;
		return true;
	}
	if (len < 2 || len > 3 || (**s != 'x' && **s != 'w') || (*s)[1] < '0' || (*s)[1] > '9')
		return false;
	n = strtoul(*s + 1, &end, 10);
	if (n > 30 || end != *s + len)
		return false;
	*ret_reg = (uint8_t)n;
	*s = end;
	return true;
}

static bool number(const char **s, int64_t *ret_value)
{
	const char *digits = *s + (**s == '-' || **s == '+');
	char *end;

	if (*digits < '0' || *digits > '9')
		return false;
	errno = 0;
	*ret_value = strtoll(*s, &end, 0);
	if (errno == ERANGE) {
		errno = 0;
		*ret_value = (int64_t)strtoull(*s, &end, 0);
	}
	if (errno == ERANGE)
		return false;
	*s = end;
	return true;
}

/* %reg, $value, offset(%reg) */
static bool x86_operand(const char **s, struct sdt_arg *arg)
{
	if (**s == '$') {
		(*s)++;
		arg->kind = SDT_ARG_CONST;
		return number(s, &arg->value);
	}
	if (**s == '%') {
		arg->kind = SDT_ARG_REG;
		return x86_register(s, &arg->reg);
	}
	arg->kind = SDT_ARG_MEMORY;
	if (**s != '(' && !number(s, &arg->value))
		return false;
	if (*(*s)++ != '(' || !x86_register(s, &arg->reg))
		return false;
	return *(*s)++ == ')';
}

/* x0, [x0], [x0, 8], value */
static bool arm64_operand(const char **s, struct sdt_arg *arg)
{
	if (**s != '[') {
		arg->kind = SDT_ARG_CONST;
		if (number(s, &arg->value))
			return true;
		arg->kind = SDT_ARG_REG;
		return arm64_register(s, &arg->reg);
	}
	(*s)++;
	arg->kind = SDT_ARG_MEMORY;
	if (!arm64_register(s, &arg->reg))
		return false;
	if (**s == ',') {
		(*s)++;
		while (**s == ' ' || **s == '#')
			(*s)++;
		if (!number(s, &arg->value))
			return false;
	}
	return *(*s)++ == ']';
}

/* Past this argument and the blanks behind it; a bracket may hold one. */
static const char *skip_argument(const char *s)
{
	bool inside = false;

	for (; *s && (inside || *s != ' '); s++)
		inside = *s == '[' || (inside && *s != ']');
	while (*s == ' ')
		s++;
	return s;
}

int sdt_arg_parse(uint16_t machine, const char *args, uint32_t ix, struct sdt_arg *ret_arg)
{
	struct sdt_arg arg = { 0 };
	const char *s = args;
	int64_t size;
	bool ok;

	while (*s == ' ')
		s++;
	while (ix-- && *s)
		s = skip_argument(s);
	if (!*s)
		return -ENOENT;
	if (!number(&s, &size) || *s++ != '@')
		return -EOPNOTSUPP;
	arg.is_signed = size < 0;
	size = size < 0 ? -size : size;
	if (size != 1 && size != 2 && size != 4 && size != 8)
		return -EOPNOTSUPP;
	arg.size = (uint8_t)size;
	ok = machine == EM_X86_64    ? x86_operand(&s, &arg)
	     : machine == EM_AARCH64 ? arm64_operand(&s, &arg)
				     : false;
	if (!ok || !is_end(*s))
		return -EOPNOTSUPP;
	*ret_arg = arg;
	return 0;
}
