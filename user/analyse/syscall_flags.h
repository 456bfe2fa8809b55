/*
 * Names of the flags and values that system calls take, as the headers of this system have them.
 */
#ifndef MEMSCOPE_ANALYSE_SYSCALL_FLAGS_H
#define MEMSCOPE_ANALYSE_SYSCALL_FLAGS_H

#include "base/strbuf.h"

#include <stdint.h>

struct flag_name {
	const char *name;
	uint64_t value;
};

struct flag_set {
	const char *name;
	uint64_t mask;       /* of the bits of a value among the flags, like O_ACCMODE; 0: none */
	const char *unknown; /* what stands behind a number that has no name: "O_???"      */
	const struct flag_name *names; /* ends with NULL; values first                      */
};

/* NULL: there is none of that name. */
const struct flag_set *flag_set_named(const char *name, uint32_t len);
/* "O_RDONLY|O_CLOEXEC"; bits without a name as one hexadecimal number behind the others. */
void flags_put(struct strbuf *b, const struct flag_set *set, uint64_t flags);
/* NULL: it has none. */
const char *flag_value_name(const struct flag_set *set, uint64_t value);
/* "SEEK_SET"; a number where it has no name. */
void flag_value_put(struct strbuf *b, const struct flag_set *set, uint64_t value);

#endif
