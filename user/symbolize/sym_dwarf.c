/*
 * Inlined calls, file and line from debug info: of the image's own file, or of the one that was put
 * aside for it.
 */
#include "elf/dwarf.h"
#include "symbolize/resolver.h"

#include <errno.h>
#include <string.h>
#include <time.h>

static int64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000ll + ts.tv_nsec / 1000000;
}

int sym_image_raw_lines(const struct sym_image *img, struct elf_file *debug, struct elf_file *alt,
			int64_t max_cpu_ns, struct dwarf_raw *ret)
{
	if (img->ask_lines)
		return img->ask_lines(img, debug, alt, max_cpu_ns, ret);
	return dwarf_raw_read(elf_file_fd(debug), alt ? elf_file_fd(alt) : -1, elf_file_name(debug),
			      img->vaddrs, img->n_vaddrs, *img->dwarf_ms_left, max_cpu_ns, ret,
			      NULL);
}

static int open_dwarf(struct sym_image *img, void **ret_state, const char **ret_why)
{
	struct dwarf_budget *budget = img->opts->lines_within;
	struct elf_file *elf, *debug, *alt = NULL;
	struct dwarf_raw raw = { 0 };
	struct dwarf_lines *lines;
	bool ran_out = false;
	int64_t start_ms;
	int r = sym_image_elf(img, &elf, ret_why);

	if (r < 0)
		return r;
	if (dwarf_present(elf)) {
		debug = elf;
	} else {
		r = sym_image_debug(img, &debug, ret_why);
		if (r < 0)
			return r;
		if (!dwarf_present(debug)) {
			*ret_why = "no debug info";
			return -ENOENT;
		}
	}
	if (*img->dwarf_ms_left <= 0) {
		*ret_why = img->lines_problem = "no time was left to read its debug info";
		return -ETIMEDOUT;
	}
	if (budget && budget->cpu_ns <= 0) {
		*ret_why = "debug info was left unread, for memscope's own limit";
		img->lines_unread = budget->ran_out = true;
		return -ETIMEDOUT;
	}
	sym_image_alt(img, debug, &alt);
	start_ms = now_ms();
	r = sym_image_raw_lines(img, debug, alt, dwarf_budget_share(budget), &raw);
	if (r == 0)
		r = dwarf_lines_of(&raw, elf_file_name(debug), &lines, &ran_out, NULL);
	if (budget) {
		budget->cpu_ns -= raw.cpu_ns;
		budget->ran_out |= ran_out;
		img->lines_unread = ran_out;
	}
	*img->dwarf_ms_left -= now_ms() - start_ms;
	if (r < 0) {
		*ret_why = r == -EFBIG ? "debug info needs more memory than it may have"
				       : "debug info cannot be read";
		if (r != -ENOENT)
			img->lines_problem = *ret_why;
		return r;
	}
	img->lines_problem = dwarf_lines_cut_short(lines);
	*ret_state = lines;
	return 0;
}

static bool find(void *state, uint64_t vaddr, struct sym_answer *ret_answer)
{
	const struct dwarf_frame *frames;
	uint32_t n = dwarf_lines_find(state, vaddr, &frames), skip;

	if (!n)
		return false;
	skip = n > SYM_FRAMES_MAX ? n - SYM_FRAMES_MAX : 0;
	ret_answer->n = n - skip;
	ret_answer->sure = false;
	for (uint32_t i = skip; i < n; i++)
		ret_answer->frames[i - skip] = (struct sym_frame){
			.name = frames[i].function,
			.len = frames[i].function ? strlen(frames[i].function) : 0,
			.file = frames[i].file,
			.line = frames[i].line,
			.start_line = frames[i].start_line,
		};
	return true;
}

static const char *why_not(const void *state)
{
	const char *why = dwarf_lines_cut_short(state);

	return why ? why : "not in the debug info";
}

static void close_dwarf(void *state)
{
	dwarf_lines_free(state);
}

const struct resolver sym_dwarf = {
	.name = "dwarf",
	.kinds = RESOLVES(MODULE_ELF),
	.role = SYM_LINES,
	.open = open_dwarf,
	.find = find,
	.why_not = why_not,
	.close = close_dwarf,
};
