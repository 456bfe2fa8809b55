/*
 * What the reader of debug info writes into its pipe (dwarf_read.h has the form). Who cannot write ends:
 * then nobody listens.
 */
#ifndef MEMSCOPE_ELF_DWARF_OUT_H
#define MEMSCOPE_ELF_DWARF_OUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { DWARF_OUT_BYTES = 64 << 10 };

/* Zeroed but for `fd`: nothing was written yet. */
struct dwarf_out {
	int fd;
	bool short_of_memory; /* something was left out */
	uint32_t n_strings, room_strings;
	struct dwarf_out_string *strings, **by_number;
	size_t len;
	uint8_t buf[DWARF_OUT_BYTES];
};

void dwarf_out_put(struct dwarf_out *o, const void *data, size_t len);
void dwarf_out_u8(struct dwarf_out *o, char tag);
void dwarf_out_u32(struct dwarf_out *o, uint32_t value);
/*
 * The number of a string, written when it is met first: not between the parts of another record. 0
 * for NULL, for an empty one, and for what is too long for a name or a path.
 */
uint32_t dwarf_out_string(struct dwarf_out *o, const char *text);
/* The string of a number, which is not 0; it lives until the end. */
const char *dwarf_out_text(const struct dwarf_out *o, uint32_t number);
void dwarf_out_flush(struct dwarf_out *o);
void dwarf_out_fini(struct dwarf_out *o);

#endif
