#include "import/valgrind_place.h"

#include "import/scan.h"

static string_id text_of(struct dict *d, struct bytes b)
{
	return dict_string_n(d, (const char *)b.data, b.len);
}

/* What is between the last `before` and `after` at the end is cut off `b`. */
static bool cut_end(struct bytes *b, const char *before, const char *after, struct bytes *ret_part)
{
	size_t n = strlen(before), end = strlen(after), i;

	if (b->len < n + end || memcmp(b->data + b->len - end, after, end) != 0)
		return false;
	for (i = b->len - end; i >= n; i--)
		if (memcmp(b->data + i - n, before, n) == 0)
			break;
	if (i <= n)
		return false;
	*ret_part = bytes_of(b->data + i, b->len - end - i);
	b->len = i - n;
	return true;
}

/* "t.cpp:9", or without a line */
static void set_source(struct dict *d, struct bytes source, struct line *line)
{
	size_t colon = source.len;
	struct bytes number;
	int64_t n;

	while (colon && source.data[colon - 1] != ':')
		colon--;
	number = bytes_of(source.data + colon, source.len - colon);
	if (colon > 1 && scan_number(&number, &n) && !number.len && n >= 0 && n <= UINT32_MAX) {
		line->line = (uint32_t)n;
		source.len = colon - 1;
	}
	line->file = text_of(d, source);
}

struct valgrind_place valgrind_place(struct dict *d, struct bytes text)
{
	struct valgrind_place place = { 0 };
	struct module module = { .kind = MODULE_ELF };
	struct bytes rest = text, part;

	if (text.len > 2 && memcmp(text.data, "0x", 2) == 0 && scan_hex(&rest, &place.addr) &&
	    scan_text(&rest, ":"))
		text = scan_trim(rest);
	if (cut_end(&text, " (in ", ")", &part)) {
		module.path = text_of(d, part);
		place.module = dict_module(d, &module);
	} else if (cut_end(&text, " (", ")", &part)) {
		set_source(d, part, &place.line);
	}
	place.line.function = text.len ? text_of(d, text) : dict_string(d, "[unknown]");
	return place;
}

stack_id valgrind_stack(struct dict *d, const struct valgrind_place *const *places, uint32_t n,
			struct line *lines, location_id *frames)
{
	uint32_t n_frames = 0, n_lines = 0;

	for (uint32_t i = 0; i < n; i++) {
		lines[n_lines++] = places[i]->line;
		if (i + 1 < n && places[i]->addr && places[i + 1]->addr == places[i]->addr)
			continue;
		frames[n_frames++] =
			dict_location_lines(d, places[i]->module, places[i]->addr, lines, n_lines);
		n_lines = 0;
	}
	return dict_stack(d, frames, n_frames);
}
