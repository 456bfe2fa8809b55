#include "lang/go.h"
#include "lang/goroutines_parts.h"

#include <elf.h>
#include <errno.h>
#include <string.h>

enum { MINOR_FIRST = 18, MINOR_LAST = 26, CODE_MAX = 16 << 10 };

/*
 * By minor version, from runtime2.go and netpoll.go. trackingSeq of 1.21 to 1.24 is the byte behind waitreason that was
 * seen to count. Each was compared with the tracebacks of a stripped program of that version: esbuild (1.18, 1.20, 1.22,
 * 1.23), lefthook (1.21, 1.24, 1.25), tsgo (1.26).
 */
static const struct goroutine_layout layouts[] = {
	{ 56, 64, 112, 120, 144, 152, 168, 176, 189, 312, 24, 32, true }, /* 1.18 */
	{ 56, 64, 112, 120, 144, 152, 168, 176, 189, 312, 24, 32, true },
	{ 56, 64, 112, 120, 144, 152, 168, 176, 189, 312, 24, 32, true },
	{ 56, 64, 112, 120, 144, 152, 168, 176, 188, 296, 32, 40, true }, /* 1.21 */
	{ 56, 64, 112, 120, 144, 152, 168, 176, 191, 296, 32, 40, true },
	{ 56, 64, 112, 120, 152, 160, 176, 184, 199, 304, 32, 40, true },
	{ 56, 64, 112, 120, 152, 160, 176, 184, 199, 304, 32, 40, true }, /* 1.24 */
	{ 56, 64, 104, 112, 144, 152, 168, 176, 191, 296, 32, 40, true },
	{ 56, 64, 104, 112, 144, 152, 168, 176, 191, 304, 32, 40, true },
};

_Static_assert(sizeof(layouts) / sizeof(layouts[0]) == MINOR_LAST - MINOR_FIRST + 1, "one each");

/* --- a file --- */

static bool in_data(const struct elf_file *elf, uint64_t vaddr)
{
	uint32_t n;
	const struct elf_segment *segs = elf_file_segments(elf, &n);

	for (uint32_t i = 0; i < n; i++)
		if (!(segs[i].flags & PF_X) && vaddr >= segs[i].vaddr &&
		    vaddr - segs[i].vaddr < segs[i].memsz)
			return true;
	return false;
}

/*
 * What a function's code refers to in data, by four bytes that make such an address as a distance from behind them:
 * instructions are not decoded, and what only looks like one is found out by what is there.
 */
static uint32_t references(struct elf_file *elf, const struct gopclntab *tab, const char *name,
			   uint64_t *out, uint32_t n)
{
	_cleanup_(freep) uint8_t *code = NULL;
	struct go_func f;
	uint64_t len;
	uint32_t ix;

	if (gopclntab_find_name(tab, name, &ix) < 0)
		return n;
	f = gopclntab_func(tab, ix);
	len = f.end - f.start < CODE_MAX ? f.end - f.start : CODE_MAX;
	code = malloc(len + 1);
	if (!code || !elf_file_read_vaddr(elf, f.start, code, len))
		return n;
	for (uint64_t i = 0; i + 4 <= len && n < REFS_MAX; i++) {
		uint64_t to;
		int32_t distance;

		memcpy(&distance, code + i, sizeof(distance));
		to = f.start + i + 4 + (uint64_t)(int64_t)distance;
		if (to % 8 == 0 && in_data(elf, to))
			out[n++] = to;
	}
	return n;
}

int go_program_read(struct elf_file *elf, const struct gopclntab *tab,
		    struct go_program **ret_program, struct err *e)
{
	_cleanup_(go_program_freep) struct go_program *p = NULL;
	uint32_t version = go_version(elf), minor = version >> 8 & 0xff, ix;

	if (!version)
		return -ENOENT;
	if (elf_file_machine(elf) != EM_X86_64)
		return err_set(e, -EOPNOTSUPP, "goroutines are read on x86-64 only");
	if (version >> 16 != 1 || minor < MINOR_FIRST || minor > MINOR_LAST)
		return err_set(e, -EOPNOTSUPP,
			       "goroutines of Go %u.%u are not read (1.%d to 1.%d are)",
			       version >> 16, minor, MINOR_FIRST, MINOR_LAST);
	p = calloc(1, sizeof(*p));
	if (!p)
		return err_set(e, -ENOMEM, "out of memory");
	p->version = version;
	p->layout = layouts[minor - MINOR_FIRST];
	if (gopclntab_find_name(tab, "runtime.main", &ix) == 0)
		p->main = gopclntab_func(tab, ix).start;
	p->n_allgs = references(elf, tab, "runtime.allgadd", p->allgs, 0);
	p->n_allgs = references(elf, tab, "runtime.forEachG", p->allgs, p->n_allgs);
	p->n_reasons = references(elf, tab, "runtime.waitReason.String", p->reasons, 0);
	p->n_reasons = references(elf, tab, "runtime.goroutineheader", p->reasons, p->n_reasons);
	if (!p->main || !p->n_allgs)
		return err_set(e, -EBADMSG, "Go's table of functions does not name its runtime");
	*ret_program = TAKE_PTR(p);
	return 0;
}

/* Addresses in it are the file's own word, and are read in a process's memory, which may be anything. */
int go_program_check(struct go_program *p)
{
	uint32_t minor = p->version >> 8 & 0xff;

	if (p->version >> 16 != 1 || minor < MINOR_FIRST || minor > MINOR_LAST ||
	    p->n_allgs > REFS_MAX || p->n_reasons > REFS_MAX)
		return -EBADMSG;
	p->layout = layouts[minor - MINOR_FIRST];
	p->places = NULL;
	p->n_places = p->cap_places = 0;
	return 0;
}

void go_program_free(struct go_program *p)
{
	if (!p)
		return;
	free(p->places);
	free(p);
}

uint32_t go_program_version(const struct go_program *p)
{
	return p->version;
}

bool go_program_untested(const struct go_program *p)
{
	return !p->layout.tried;
}

/* --- a process --- */

/* Goroutine 1 runs runtime.main, and nobody else's memory says so. */
static bool is_first(const struct go_program *p, uint64_t bias, const struct go_memory *mem,
		     uint64_t at)
{
	const struct goroutine_layout *l = &p->layout;
	uint8_t g[G_BYTES];
	uint64_t lo, hi;

	if (!go_read_one(mem, at, g, sizeof(g)))
		return false;
	lo = go_word(g, STACK_LO);
	hi = go_word(g, STACK_HI);
	return go_word(g, l->goid) == 1 && go_word(g, l->startpc) == p->main + bias && lo < hi;
}

/* A slice of pointers to g: at, length, capacity. */
static bool is_allgs(const struct go_program *p, uint64_t bias, const struct go_memory *mem,
		     const uint64_t slice[3])
{
	uint64_t first;

	if (!slice[0] || slice[0] % 8 || !slice[1] || slice[1] > slice[2] ||
	    slice[1] > GO_TABLE_MAX)
		return false;
	return go_read_one(mem, slice[0], &first, sizeof(first)) && is_first(p, bias, mem, first);
}

static bool read_word(const struct go_memory *mem, uint64_t at, char word[GO_REASON_BYTES])
{
	uint64_t string[2];
	char text[GO_REASON_BYTES] = "";

	if (!go_read_one(mem, at, string, sizeof(string)) || string[1] >= GO_REASON_BYTES)
		return false;
	if (string[1] && !go_read_one(mem, string[0], text, (uint32_t)string[1]))
		return false;
	for (uint64_t i = 0; i < string[1]; i++)
		if (text[i] < ' ' || text[i] > '~')
			return false;
	memcpy(word, text, sizeof(text));
	return true;
}

/* An array of strings, the first empty and the second as since Go 1.11. */
static bool read_reasons(const struct go_memory *mem, uint64_t at, struct go_process *process)
{
	char words[3][GO_REASON_BYTES];

	for (uint32_t i = 0; i < 3; i++)
		if (!read_word(mem, at + 16ul * i, words[i]))
			return false;
	if (*words[0] || strcmp(words[1], "GC assist marking") != 0 ||
	    strcmp(words[2], "IO wait") != 0)
		return false;
	while (process->n_reasons < GO_REASONS_MAX &&
	       read_word(mem, at + 16ul * process->n_reasons,
			 process->reasons[process->n_reasons])) {
		/* The first alone has no words: behind the last lies something else. */
		if (process->n_reasons && !*process->reasons[process->n_reasons])
			break;
		process->n_reasons++;
	}
	return true;
}

int go_process_find(struct go_program *p, uint64_t bias, const struct go_memory *mem,
		    struct go_process *ret_process, struct err *e)
{
	struct go_process process = { .program = p, .bias = bias };
	bool empty = false;
	uint32_t i = 0;

	for (; i < p->n_allgs; i++) {
		uint64_t slice[3];

		if (!go_read_one(mem, p->allgs[i] + bias, slice, sizeof(slice)))
			continue;
		if (is_allgs(p, bias, mem, slice))
			break;
		empty |= !slice[0] && !slice[1] && !slice[2];
	}
	if (i == p->n_allgs)
		return empty ? -EAGAIN
			     : err_set(e, -EOPNOTSUPP,
				       "its goroutines are not where Go %u.%u has them",
				       p->version >> 16, p->version >> 8 & 0xff);
	process.allgs = p->allgs[i] + bias;
	for (i = 0; i < p->n_reasons && !process.n_reasons; i++)
		read_reasons(mem, p->reasons[i] + bias, &process);
	if (!process.n_reasons)
		return err_set(e, -EOPNOTSUPP, "the words of Go %u.%u for waits were not found",
			       p->version >> 16, p->version >> 8 & 0xff);
	*ret_process = process;
	return 0;
}

bool go_process_size(const struct go_process *p, const struct go_memory *mem, uint64_t *ret_n)
{
	uint64_t slice[3];

	if (!go_read_one(mem, p->allgs, slice, sizeof(slice)) ||
	    !is_allgs(p->program, p->bias, mem, slice))
		return false;
	*ret_n = slice[1];
	return true;
}
