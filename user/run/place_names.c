#include "run/place_names.h"

#include <string.h>

/* Names that were made up have none for the linker. */
static bool is_range(const struct dict *d, const struct line *outermost)
{
	return *dict_str(d, outermost->system_name) == '\0';
}

static bool may_be_kept(const struct dict *d, const struct location *l)
{
	enum module_kind kind = dict_module_get(d, l->module)->kind;

	if (!l->named || !l->n_lines || l->n_lines > PLACE_LINES_MAX ||
	    (kind != MODULE_ELF && kind != MODULE_KERNEL))
		return false;
	/* `[image+0xstart]`, with a bracket: of the function around it. */
	return !is_range(d, &l->lines[l->n_lines - 1]) ||
	       (kind == MODULE_ELF && *dict_str(d, l->lines[l->n_lines - 1].function) == '[');
}

static void add_u32(struct strbuf *out, uint32_t n)
{
	strbuf_add(out, &n, sizeof(n));
}

static void add_text(const struct dict *d, string_id id, struct strbuf *out)
{
	const char *text = dict_str(d, id);

	strbuf_add(out, text, strlen(text) + 1);
}

void place_names_add(const struct dict *d, const bool *fresh, struct strbuf *out)
{
	uint32_t n = dict_location_count(d);

	for (uint32_t i = 1; i <= n && out->len < PLACE_NAMES_BYTES; i++) {
		const struct location *l = dict_location_get(d, (location_id){ i });

		if (!fresh[i] || !may_be_kept(d, l))
			continue;
		add_u32(out, i);
		add_u32(out, l->n_lines);
		add_u32(out, l->lines_unread);
		for (uint32_t k = 0; k < l->n_lines; k++) {
			add_u32(out, l->lines[k].line);
			add_u32(out, l->lines[k].start_line);
			add_text(d, l->lines[k].function, out);
			add_text(d, l->lines[k].system_name, out);
			add_text(d, l->lines[k].file, out);
		}
	}
}

static bool take_u32(struct bytes *from, uint32_t *ret_n)
{
	if (from->len < sizeof(*ret_n))
		return false;
	memcpy(ret_n, from->data, sizeof(*ret_n));
	from->data += sizeof(*ret_n);
	from->len -= sizeof(*ret_n);
	return true;
}

/* `d` NULL: what is passed over. */
static bool take_text(struct dict *d, struct bytes *from, string_id *ret_id)
{
	const uint8_t *end = from->len ? memchr(from->data, 0, from->len) : NULL;

	if (!end)
		return false;
	*ret_id = d ? dict_string(d, (const char *)from->data) : (string_id){ 0 };
	from->len -= (size_t)(end + 1 - from->data);
	from->data = end + 1;
	return true;
}

static bool take_line(struct dict *d, struct bytes *from, struct line *ret_line)
{
	return take_u32(from, &ret_line->line) && take_u32(from, &ret_line->start_line) &&
	       take_text(d, from, &ret_line->function) &&
	       take_text(d, from, &ret_line->system_name) && take_text(d, from, &ret_line->file);
}

static void take_place(struct dict *d, location_id at, const struct line *lines, uint32_t n,
		       bool unread, struct place_names_taken *taken)
{
	taken->read += dict_location_get(d, at)->named;
	if (unread) {
		dict_location_name_unread(d, at, lines, n);
		taken->unread++;
		return;
	}
	dict_location_name(d, at, lines, n);
	taken->ranges += is_range(d, &lines[n - 1]);
	taken->named++;
}

struct place_names_taken place_names_take(struct dict *d, struct bytes names, uint32_t max)
{
	struct place_names_taken taken = { 0 };
	struct line lines[PLACE_LINES_MAX];
	uint32_t at, n, unread;

	while (take_u32(&names, &at) && take_u32(&names, &n) && take_u32(&names, &unread) && at &&
	       at <= dict_location_count(d) && n && n <= PLACE_LINES_MAX && unread <= 1) {
		const struct location *l = dict_location_get(d, (location_id){ at });
		bool room = taken.named - taken.read + taken.unread < max;
		/* Or another child has named it; or there are too many. */
		bool wanted = l->named ? l->lines_unread && !unread : room;
		uint32_t k = 0;

		while (k < n && take_line(wanted ? d : NULL, &names, &lines[k]))
			k++;
		if (k < n || dict_oom(d))
			break;
		if (wanted)
			take_place(d, (location_id){ at }, lines, n, unread, &taken);
	}
	return taken;
}
