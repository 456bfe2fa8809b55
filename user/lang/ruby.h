/*
 * Ruby (MRI): what its files share. Internal to the room.
 *
 * Layouts are fixed within a minor version (teeny releases keep the ABI of extensions) and promised nowhere. There is a row
 * for each, compiled from that version's own headers (vm_core.h, iseq.h, method.h, internal/class.h).
 */
#ifndef MEMSCOPE_LANG_RUBY_H
#define MEMSCOPE_LANG_RUBY_H

#include "lang/image.h"

/* --- ruby_layout.c --- */

struct ruby_layout {
	struct ms_ruby frames;
	struct ruby_rt rt;
	bool untested;
};

/* -EOPNOTSUPP with a sentence: there is no row for `version`. */
int ruby_layout_find(uint32_t version, struct ruby_layout *ret_layout, struct err *e);

/* --- ruby_lines.c --- */

/* The line of the instruction at `at` words of the code of the iseq whose body is at `body`; 0: it has none. -EIO: the
 * table cannot be read. */
int64_t ruby_line(const struct ruby_rt *ruby, const struct lang_memory *mem, uint64_t body,
		  uint32_t at);

/* --- ruby_objects.c --- */

/*
 * A String as text: what is no UTF-8, and control characters, become \xNN. Behind what is in `ret_text` already.
 * `ret_cut`: it was longer than the room, set then only. -EIO: it cannot be read, -EBADMSG: it is none.
 */
int ruby_text(const struct ruby_rt *ruby, const struct lang_memory *mem, uint64_t string,
	      char *ret_text, size_t room, bool *ret_cut);
/* An element of an Array. -EIO, -EBADMSG: as above, or it has fewer. */
int ruby_element(const struct lang_memory *mem, uint64_t array, uint64_t i, uint64_t *ret_value);
/* The String that is the name of an ID. */
int ruby_name(const struct ruby_rt *ruby, const struct lang_memory *mem, uint64_t id,
	      uint64_t *ret_string);
/*
 * Of a method's owner: the String with the class's name, and whether the method is the class's own ("C.m" and not
 * "C#m"). -ENOENT: it has no name.
 */
int ruby_class(const struct ruby_rt *ruby, const struct lang_memory *mem, uint64_t owner,
	       uint64_t *ret_string, bool *ret_own);

/* Object's flags: the type, and whether an Array or a String has its elements elsewhere, or in itself. */
enum { RUBY_T_MASK = 0x1f, RUBY_T_CLASS = 2, RUBY_T_MODULE = 3, RUBY_T_STRING = 5, RUBY_T_ARRAY = 7 };

static inline bool ruby_is_object(uint64_t value)
{
	return value >= 4096 && value % 8 == 0;
}

#endif
