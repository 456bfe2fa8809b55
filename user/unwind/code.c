#include "unwind/code.h"

#include <elf.h>
#include <errno.h>
#include <string.h>

enum { PADDING_MAX = 63 };

struct pattern {
	uint16_t machine;
	uint8_t len, step; /* step: of the instructions */
	uint8_t bytes[9];
};

static const struct pattern sigreturns[] = {
	/* mov $15,%rax (musl, glibc, Go); syscall */
	{ EM_X86_64, 9, 1, { 0x48, 0xc7, 0xc0, 0x0f, 0x00, 0x00, 0x00, 0x0f, 0x05 } },
	/* mov $15,%eax; syscall */
	{ EM_X86_64, 7, 1, { 0xb8, 0x0f, 0x00, 0x00, 0x00, 0x0f, 0x05 } },
	/* mov x8, #139; svc #0 */
	{ EM_AARCH64, 8, 4, { 0x68, 0x11, 0x80, 0xd2, 0x01, 0x00, 0x00, 0xd4 } },
};

static int compare_ranges(const void *pa, const void *pb)
{
	const struct code_range *a = pa, *b = pb;

	return (a->start > b->start) - (a->start < b->start);
}

/* Sorted and joined; returns how many there are then. */
static uint32_t join(struct code_range *ranges, uint32_t n)
{
	uint32_t kept = 0;

	qsort(ranges, n, sizeof(*ranges), compare_ranges);
	for (uint32_t i = 0; i < n; i++) {
		struct code_range *last = kept ? &ranges[kept - 1] : NULL;

		if (last && ranges[i].start <= last->end) {
			if (ranges[i].end > last->end)
				last->end = ranges[i].end;
			continue;
		}
		ranges[kept++] = ranges[i];
	}
	return kept;
}

/* Some linkers put read-only data into the executable segment: sections know better. */
static void find_text(struct code *code, struct elf_file *elf)
{
	const struct elf_section *secs;
	uint32_t n_secs, n = 0;

	if (elf_file_sections(elf, &secs, &n_secs, NULL) < 0)
		n_secs = 0;
	for (uint32_t i = 1; i < n_secs && n < CODE_RANGES_MAX; i++)
		for (uint32_t k = 0; k < code->n_segments; k++)
			if ((secs[i].flags & SHF_EXECINSTR) && secs[i].size &&
			    secs[i].vaddr >= code->segments[k].start &&
			    secs[i].vaddr < code->segments[k].end &&
			    secs[i].size <= code->segments[k].end - secs[i].vaddr) {
				code->text[n++] =
					(struct code_range){ secs[i].vaddr,
							     secs[i].vaddr + secs[i].size };
				break;
			}
	code->n_text = join(code->text, n);
	if (!n) {
		memcpy(code->text, code->segments, sizeof(code->text));
		code->n_text = code->n_segments;
	}
}

int code_init(struct code *code, struct elf_file *elf, struct err *e)
{
	uint32_t n_segs, n = 0;
	const struct elf_segment *segs = elf_file_segments(elf, &n_segs);

	code->elf = elf;
	code->window_len = 0;
	for (uint32_t i = 0; i < n_segs && n < CODE_RANGES_MAX; i++)
		if (segs[i].flags & PF_X)
			code->segments[n++] =
				(struct code_range){ segs[i].vaddr, segs[i].vaddr + segs[i].memsz };
	if (!n)
		return err_set(e, -ENOENT, "%s: no executable segment", elf_file_name(elf));
	code->n_segments = join(code->segments, n);
	find_text(code, elf);
	return 0;
}

/* Fills the window from `vaddr` on, up to the end of the segment's bytes. */
static void fill(struct code *code, uint64_t vaddr)
{
	uint32_t n;
	const struct elf_segment *segs = elf_file_segments(code->elf, &n);

	code->window_at = vaddr;
	code->window_len = 0;
	for (uint32_t i = 0; i < n; i++) {
		uint64_t in = vaddr - segs[i].vaddr, len;

		if (!(segs[i].flags & PF_X) || vaddr < segs[i].vaddr || in >= segs[i].filesz)
			continue;
		len = segs[i].filesz - in;
		if (len > CODE_WINDOW_BYTES)
			len = CODE_WINDOW_BYTES;
		if (elf_file_read(code->elf, segs[i].off + in, code->window, len, NULL) == 0)
			code->window_len = len;
		return;
	}
}

const uint8_t *code_at(struct code *code, uint64_t vaddr, size_t len)
{
	uint64_t in = vaddr - code->window_at;

	if (vaddr < code->window_at || in > code->window_len || len > code->window_len - in) {
		fill(code, vaddr);
		in = 0;
	}
	return len <= code->window_len ? code->window + in : NULL;
}

/* Length of a nop or trap; 0: another instruction. */
static size_t padding_x86(const uint8_t *p, size_t len)
{
	size_t n = 0, operands;

	if (p[0] == 0x00 || p[0] == 0xcc || p[0] == 0x90)
		return 1;
	/* data16 and cs prefixes, then `nop` or `nopw/nopl` with a memory operand */
	while (n < len && (p[n] == 0x66 || p[n] == 0x2e))
		n++;
	if (n < len && p[n] == 0x90)
		return n + 1;
	if (n + 3 > len || p[n] != 0x0f || p[n + 1] != 0x1f)
		return 0;
	/* ModRM: bare, with SIB, disp8 or disp32 */
	operands = (p[n + 2] & 7) == 4;
	operands += p[n + 2] >> 6 == 1 ? 1 : p[n + 2] >> 6 == 2 ? 4 : 0;
	return n + 3 + operands <= len ? n + 3 + operands : 0;
}

static size_t padding_a64(const uint8_t *p, size_t len)
{
	uint32_t insn;

	if (len < 4)
		return p[0] == 0 ? 1 : 0;
	memcpy(&insn, p, sizeof(insn));
	/* nop; udf #0 */
	return insn == 0xd503201f || insn == 0 ? 4 : 0;
}

bool code_is_padding(struct code *code, uint64_t start, uint64_t end)
{
	bool x86 = elf_file_machine(code->elf) == EM_X86_64;
	const uint8_t *p;
	size_t len = end - start;

	if (end - start > PADDING_MAX)
		return false;
	p = code_at(code, start, len);
	while (p && len) {
		size_t n = x86 ? padding_x86(p, len) : padding_a64(p, len);

		if (!n)
			return false;
		p += n;
		len -= n;
	}
	return p != NULL;
}

static const struct pattern *match(uint16_t machine, const uint8_t *p, size_t len, uint64_t vaddr)
{
	for (size_t i = 0; i < sizeof(sigreturns) / sizeof(sigreturns[0]); i++) {
		const struct pattern *s = &sigreturns[i];

		if (s->machine == machine && len >= s->len && vaddr % s->step == 0 &&
		    !memcmp(p, s->bytes, s->len))
			return s;
	}
	return NULL;
}

bool code_sigreturn_ends_at(struct code *code, uint64_t vaddr)
{
	uint16_t machine = elf_file_machine(code->elf);

	for (size_t i = 0; i < sizeof(sigreturns) / sizeof(sigreturns[0]); i++) {
		const struct pattern *s = &sigreturns[i];
		const uint8_t *p = s->machine == machine && vaddr >= s->len
					   ? code_at(code, vaddr - s->len, s->len)
					   : NULL;

		if (p && vaddr % s->step == 0 && !memcmp(p, s->bytes, s->len))
			return true;
	}
	return false;
}

/* Every pattern ends in the same rare bytes: the number is found by its first byte. */
bool code_find_sigreturn(struct code *code, uint64_t start, uint64_t end, uint64_t *ret_vaddr,
			 uint32_t *ret_len)
{
	uint16_t machine = elf_file_machine(code->elf);

	while (start < end) {
		size_t want = end - start < CODE_WINDOW_BYTES ? end - start : CODE_WINDOW_BYTES;
		const uint8_t *p = code_at(code, start, 1);
		size_t have, i = 0;

		if (!p)
			return false;
		if (want > code->window_len - (size_t)(p - code->window)) {
			fill(code, start);
			p = code->window;
		}
		have = code->window_len - (size_t)(p - code->window);
		if (have > want)
			have = want;
		for (; i < have; i++) {
			const struct pattern *s;

			if (p[i] != 0x48 && p[i] != 0xb8 && p[i] != 0x68)
				continue;
			s = match(machine, p + i, have - i, start + i);
			if (s) {
				*ret_vaddr = start + i;
				*ret_len = s->len;
				return true;
			}
		}
		/* What the window's end may have cut in two is read again. */
		if (have <= sizeof(sigreturns[0].bytes))
			return false;
		start += have == end - start ? have : have - sizeof(sigreturns[0].bytes);
	}
	return false;
}
