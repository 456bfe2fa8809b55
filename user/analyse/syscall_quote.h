/*
 * Bytes and addresses of a program in the log of its system calls, as strace writes them.
 */
#ifndef MEMSCOPE_ANALYSE_SYSCALL_QUOTE_H
#define MEMSCOPE_ANALYSE_SYSCALL_QUOTE_H

#include "base/strbuf.h"

#include <stdint.h>

/* Any bytes in quotes, printable ASCII and escapes alone; `more`: "…"... */
void quoted_put(struct strbuf *b, const char *s, uint32_t len, bool more);
/* The same without quotes. */
void escaped_put(struct strbuf *b, const char *s, uint32_t len);
/* "0x1f", "NULL". */
void hex_put(struct strbuf *b, uint64_t value);

#endif
