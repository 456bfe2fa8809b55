#include "elf/dwarf_out.h"

#include "base/hash.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { STRING_MAX = 1 << 16 };

struct dwarf_out_string {
	UT_hash_handle hh;
	uint32_t number;
	char text[];
};

void dwarf_out_flush(struct dwarf_out *o)
{
	size_t done = 0;

	while (done < o->len) {
		ssize_t n = write(o->fd, o->buf + done, o->len - done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			_exit(1); /* nobody listens */
		done += (size_t)n;
	}
	o->len = 0;
}

void dwarf_out_put(struct dwarf_out *o, const void *data, size_t len)
{
	const uint8_t *p = data;

	while (len) {
		size_t n = DWARF_OUT_BYTES - o->len < len ? DWARF_OUT_BYTES - o->len : len;

		memcpy(o->buf + o->len, p, n);
		o->len += n;
		p += n;
		len -= n;
		if (o->len == DWARF_OUT_BYTES)
			dwarf_out_flush(o);
	}
}

void dwarf_out_u8(struct dwarf_out *o, char tag)
{
	dwarf_out_put(o, &tag, 1);
}

void dwarf_out_u32(struct dwarf_out *o, uint32_t value)
{
	dwarf_out_put(o, &value, sizeof(value));
}

uint32_t dwarf_out_string(struct dwarf_out *o, const char *text)
{
	size_t len = text ? strnlen(text, STRING_MAX) : 0;
	struct dwarf_out_string *s;

	if (!len || len == STRING_MAX)
		return 0;
	HASH_FIND(hh, o->strings, text, len, s);
	if (s)
		return s->number;
	if (o->n_strings == o->room_strings) {
		uint32_t room = o->room_strings ? 2 * o->room_strings : 256;
		struct dwarf_out_string **more = reallocarray(o->by_number, room, sizeof(*more));

		o->short_of_memory |= !more;
		if (!more)
			return 0;
		o->by_number = more;
		o->room_strings = room;
	}
	s = malloc(sizeof(*s) + len + 1);
	if (!s) {
		o->short_of_memory = true;
		return 0;
	}
	memcpy(s->text, text, len);
	s->text[len] = '\0';
	s->number = o->n_strings + 1;
	HASH_ADD_KEYPTR(hh, o->strings, s->text, len, s);
	if (!hash_added(s)) {
		o->short_of_memory = true;
		free(s);
		return 0;
	}
	o->by_number[o->n_strings++] = s;
	dwarf_out_u8(o, 'S');
	dwarf_out_u32(o, (uint32_t)len);
	dwarf_out_put(o, s->text, len);
	return s->number;
}

const char *dwarf_out_text(const struct dwarf_out *o, uint32_t number)
{
	return o->by_number[number - 1]->text;
}

void dwarf_out_fini(struct dwarf_out *o)
{
	hash_free(o->strings);
	free(o->by_number);
}
