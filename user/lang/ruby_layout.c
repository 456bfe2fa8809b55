/*
 * Layouts of Ruby, one row a minor version: offsets in bytes, printed by programs that were compiled with the headers of
 * 2.7.4, 3.1.2, 3.3.8 and 3.4.5, and tried; those of 3.0 and 3.2 are after what changed between their neighbours.
 */
#include "lang/ruby.h"

#include <errno.h>

/* In the flags of an object, RUBY_FL_USER0 and 1. */
#define USER0 (1 << 12)
#define USER1 (1 << 13)

/* Up to 3.1 a class points to what it has, with a table of variables: the name is one of these. */
#define OLD_CLASS .class_variables = 8, .singleton = USER0
/* RClass:32, behind it rb_classext_t. */
#define NEW_CLASS(bit) .class_path = 32 + 120, .class_attached = 32 + 96, .singleton = (bit)

static const struct row {
	uint32_t minor;
	struct ruby_layout layout;
} rows[] = {
	{ 0x0207,
	  { .frames = { .frame_bytes = 56, .stack_start = 152, .stack_bytes = 168 },
	    .rt = { .lines = 120, .line_bytes = 8, .tagged_line = true, OLD_CLASS } } },
	{ 0x0300,
	  { .frames = { .frame_bytes = 56 },
	    .rt = { .lines = 120, .line_bytes = 8, .tagged_line = true, OLD_CLASS },
	    .untested = true } },
	{ 0x0301,
	  { .frames = { .frame_bytes = 64 },
	    .rt = { .lines = 120, .line_bytes = 12, .tagged_line = true, OLD_CLASS } } },
	{ 0x0302,
	  { .frames = { .frame_bytes = 64 },
	    .rt = { .lines = 112, .line_bytes = 12, .length_apart = true },
	    .untested = true } },
	{ 0x0303,
	  { .frames = { .frame_bytes = 56 },
	    .rt = { .lines = 112, .line_bytes = 12, .length_apart = true, NEW_CLASS(USER0) } } },
	{ 0x0304,
	  { .frames = { .frame_bytes = 56 },
	    .rt = { .lines = 112,
		    .line_bytes = 12,
		    .length_apart = true,
		    .parent = 160,
		    NEW_CLASS(USER1) } } },
};

int ruby_layout_find(uint32_t version, struct ruby_layout *ret_layout, struct err *e)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (rows[i].minor == version >> 8) {
			*ret_layout = rows[i].layout;
			return 0;
		}
	return err_set(e, -EOPNOTSUPP,
		       "Ruby %u.%u.%u: its layout is not known, as that of 2.7 to 3.4 is",
		       version >> 16, version >> 8 & 0xff, version & 0xff);
}
