#include "elf/dwarf.h"

#include "base/bytes.h"
#include "elf/dwarf_read.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>

struct place {
	uint64_t vaddr;
	uint32_t first, n; /* of frames */
};

struct dwarf_lines {
	char *text; /* what came from the cell; strings end in NUL in place */
	struct place *places;
	uint32_t n_places, cap_places;
	struct dwarf_frame *frames;
	uint32_t n_frames, cap_frames;
	const char *cut_short;
};

bool dwarf_present(struct elf_file *elf)
{
	return dwarf_is_packed(elf) >= 0;
}

/* --- its answers --- */

static int reserve(void **list, uint32_t *cap, uint32_t want, size_t size)
{
	uint32_t n = *cap ? *cap * 2 : 1024;
	void *grown;

	if (want <= *cap)
		return 0;
	if (n < want)
		n = want;
	grown = reallocarray(*list, n, size);
	if (!grown)
		return -ENOMEM;
	*list = grown;
	*cap = n;
	return 0;
}

bool dwarf_string_at(const struct dwarf_strings *s, uint32_t number, const char **ret)
{
	if (number > s->n)
		return false;
	*ret = number ? s->at[number - 1] : NULL;
	return true;
}

/*
 * A string's bytes, shifted one down over the length before them, to make room for its NUL. A NUL
 * within it cuts it.
 */
int dwarf_strings_take(struct bytes *b, struct dwarf_strings *s)
{
	uint32_t len;
	struct bytes part;
	char *text;

	if (bytes_u32(b, &len) < 0 || bytes_take(b, len, &part) < 0)
		return -EBADMSG;
	if (reserve((void **)&s->at, &s->cap, s->n + 1, sizeof(*s->at)) < 0)
		return -ENOMEM;
	text = (char *)part.data - 1;
	memmove(text, text + 1, len);
	text[len] = '\0';
	s->at[s->n++] = text;
	return 0;
}

static int take_frame(struct bytes *b, const struct dwarf_strings *s, struct dwarf_frame *ret)
{
	uint32_t function, file;

	if (bytes_u32(b, &function) < 0 || bytes_u32(b, &file) < 0 ||
	    bytes_u32(b, &ret->line) < 0 || bytes_u32(b, &ret->start_line) < 0 ||
	    !dwarf_string_at(s, function, &ret->function) || !dwarf_string_at(s, file, &ret->file))
		return -EBADMSG;
	return 0;
}

static int take_answer(struct dwarf_lines *l, struct bytes *b, const struct dwarf_strings *s)
{
	struct place p = { .first = l->n_frames };

	if (bytes_u64(b, &p.vaddr) < 0 || bytes_u32(b, &p.n) < 0 || !p.n || p.n > DWARF_FRAMES_MAX)
		return -EBADMSG;
	if (reserve((void **)&l->frames, &l->cap_frames, l->n_frames + p.n, sizeof(*l->frames)) <
		    0 ||
	    reserve((void **)&l->places, &l->cap_places, l->n_places + 1, sizeof(*l->places)) < 0)
		return -ENOMEM;
	for (uint32_t i = 0; i < p.n; i++) {
		int r = take_frame(b, s, &l->frames[l->n_frames + i]);

		if (r < 0)
			return r;
	}
	l->n_frames += p.n;
	l->places[l->n_places++] = p;
	return 0;
}

/* 0 and `*ret_code` at its 'E'; -ENODATA when it stops before. */
static int take_all(struct dwarf_lines *l, struct bytes b, int32_t *ret_code)
{
	struct dwarf_strings s = { 0 };
	uint8_t tag;
	int r = 0;

	while (r == 0) {
		if (bytes_u8(&b, &tag) < 0) {
			r = -ENODATA;
		} else if (tag == 'S') {
			r = dwarf_strings_take(&b, &s);
		} else if (tag == 'A') {
			r = take_answer(l, &b, &s);
		} else if (tag == 'E') {
			r = bytes_u32(&b, (uint32_t *)ret_code) < 0 ? -ENODATA : 0;
			break;
		} else {
			r = -EBADMSG;
		}
	}
	free(s.at);
	return r;
}

static int compare_places(const void *pa, const void *pb)
{
	const struct place *a = pa, *b = pb;

	if (a->vaddr != b->vaddr)
		return a->vaddr < b->vaddr ? -1 : 1;
	return a->first < b->first ? -1 : 1;
}

static const char too_long[] = "debug info takes too long to read";

static const char *const cuts[N_DWARF_CUTS] = {
	[DWARF_TOO_LONG] = too_long,
	[DWARF_NO_MEMORY] = "out of memory for debug info",
	[DWARF_TOO_MUCH] = "debug info has too much to say",
	[DWARF_UNREADABLE] = "debug info cannot be read",
};

static bool ended_by(int32_t status, int signal)
{
	return status != -1 && WIFSIGNALED(status) && WTERMSIG(status) == signal;
}

static const char *why_ended(int32_t status)
{
	return ended_by(status, SIGXCPU) || ended_by(status, SIGPROF) || ended_by(status, SIGKILL)
		       ? too_long
		       : "debug info is damaged";
}

int dwarf_answers_parse(char *text, size_t len, struct dwarf_lines **ret_lines, int32_t *ret_code)
{
	_cleanup_(dwarf_lines_freep) struct dwarf_lines *l = calloc(1, sizeof(*l));
	int r;

	if (!l) {
		free(text);
		return -ENOMEM;
	}
	l->text = text;
	*ret_code = 0;
	r = take_all(l, bytes_of(text, len), ret_code);
	if (r == -ENOMEM)
		return r;
	if (r < 0)
		l->cut_short = "debug info is damaged";
	if (l->n_places)
		qsort(l->places, l->n_places, sizeof(*l->places), compare_places);
	*ret_lines = TAKE_PTR(l);
	return 0;
}

static const char too_much_memory[] = "debug info needs more memory than it may have";

/* The sentence for a reader that answered nothing at all. */
static int nothing(const char *name, const char *cut_short, int32_t code, struct err *e)
{
	if (code == -EFBIG)
		return err_set(e, code, "%s: %s", name, too_much_memory);
	if (code == -ETIMEDOUT)
		return err_set(e, code, "%s: %s", name, too_long);
	if (cut_short)
		return err_set(e, -EBADMSG, "%s: %s", name, cut_short);
	return err_set(e, -ENOENT, "%s: debug info says nothing about these addresses", name);
}

/* --- asking --- */

/* The question: CPU time that it may take (0: any), and the addresses. */
static void read_lines(struct bytes question, struct elf_file *elf, struct elf_file *alt, int spill,
		       int statm, int out)
{
	_cleanup_(freep) uint64_t *vaddrs = malloc(question.len + 1);
	struct itimerval t = { 0 };
	uint64_t max_ns, us;

	if (!vaddrs || bytes_u64(&question, &max_ns) < 0)
		return;
	memcpy(vaddrs, question.data, question.len);
	/* The reader looks at the time between one piece and the next; what does not come to its end is killed. */
	us = 2 * max_ns / 1000 + 1;
	t.it_value = (struct timeval){ .tv_sec = (time_t)(us / 1000000),
				       .tv_usec = (suseconds_t)(us % 1000000) };
	if (max_ns)
		setitimer(ITIMER_PROF, &t, NULL);
	dwarf_read(elf, alt, vaddrs, (uint32_t)(question.len / sizeof(*vaddrs)), (int64_t)max_ns,
		   spill, statm, out);
}

static void work(const struct cell_given *given)
{
	dwarf_cell_work(given, read_lines);
}

static const struct cell_kind cell = { DWARF_CELL("debug info", work) };
CELL_KIND(cell);

static char *question_of(const uint64_t *vaddrs, uint32_t n, int64_t max_cpu_ns, size_t *ret_len)
{
	uint64_t *q = calloc(n + 1ul, sizeof(*q));

	if (!q)
		return NULL;
	q[0] = (uint64_t)max_cpu_ns;
	memcpy(q + 1, vaddrs, n * sizeof(*vaddrs));
	*ret_len = (n + 1ul) * sizeof(*q);
	return (char *)q;
}

int dwarf_raw_read(int elf, int alt, const char *name, const uint64_t *vaddrs, uint32_t n,
		   int64_t max_ms, int64_t max_cpu_ns, struct dwarf_raw *ret, struct err *e)
{
	size_t len;
	_cleanup_(freep) char *question = question_of(vaddrs, n, max_cpu_ns, &len);

	if (!question)
		return err_set(e, -ENOMEM, "%s: out of memory for debug info", name);
	return dwarf_cell_ask(&cell, elf, alt, name, question, len, max_ms, ret, e);
}

int dwarf_lines_of(struct dwarf_raw *raw, const char *name, struct dwarf_lines **ret_lines,
		   bool *ret_ran_out, struct err *e)
{
	_cleanup_(dwarf_lines_freep) struct dwarf_lines *l = NULL;
	int32_t code = 0;
	int r;

	r = dwarf_answers_parse(TAKE_PTR(raw->text), raw->len, &l, &code);
	if (r < 0)
		return err_set(e, r, "%s: out of memory for debug info", name);
	if (raw->cut)
		l->cut_short = raw->cut < N_DWARF_CUTS ? cuts[raw->cut] : cuts[DWARF_UNREADABLE];
	else if (l->cut_short)
		l->cut_short = why_ended(raw->status);
	else if (code == -EFBIG)
		l->cut_short = too_much_memory;
	else if (code == -ETIMEDOUT)
		l->cut_short = too_long;
	*ret_ran_out = code == -ETIMEDOUT || ended_by(raw->status, SIGPROF);
	if (!l->n_places)
		return nothing(name, l->cut_short, code, e);
	*ret_lines = TAKE_PTR(l);
	return 0;
}

int64_t dwarf_budget_share(const struct dwarf_budget *budget)
{
	return !budget ? 0 : budget->cpu_ns > 1 ? budget->cpu_ns / 2 : 1;
}

int dwarf_lines_read(struct elf_file *elf, struct elf_file *alt, const uint64_t *vaddrs, uint32_t n,
		     int64_t max_ms, struct dwarf_lines **ret_lines, struct err *e)
{
	return dwarf_lines_read_within(elf, alt, vaddrs, n, max_ms, NULL, ret_lines, e);
}

int dwarf_lines_read_within(struct elf_file *elf, struct elf_file *alt, const uint64_t *vaddrs,
			    uint32_t n, int64_t max_ms, struct dwarf_budget *budget,
			    struct dwarf_lines **ret_lines, struct err *e)
{
	size_t len;
	_cleanup_(freep) char *question = question_of(vaddrs, n, dwarf_budget_share(budget), &len);
	struct dwarf_raw raw = { 0 };
	bool ran_out = false;
	int r = question ? dwarf_file_ask(&cell, elf, alt, question, len, max_ms, &raw, e)
			 : -ENOMEM;

	if (r == 0)
		r = dwarf_lines_of(&raw, elf_file_name(elf), ret_lines, &ran_out, e);
	if (budget) {
		budget->cpu_ns -= raw.cpu_ns;
		budget->ran_out |= ran_out;
	}
	return r;
}

void dwarf_lines_free(struct dwarf_lines *l)
{
	if (!l)
		return;
	free(l->text);
	free(l->places);
	free(l->frames);
	free(l);
}

uint32_t dwarf_lines_find(const struct dwarf_lines *l, uint64_t vaddr,
			  const struct dwarf_frame **ret_frames)
{
	uint32_t lo = 0, hi = l->n_places;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (l->places[mid].vaddr < vaddr)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (lo == l->n_places || l->places[lo].vaddr != vaddr)
		return 0;
	*ret_frames = &l->frames[l->places[lo].first];
	return l->places[lo].n;
}

const char *dwarf_lines_cut_short(const struct dwarf_lines *l)
{
	return l->cut_short;
}
