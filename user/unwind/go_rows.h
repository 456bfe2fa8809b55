/*
 * Rules from Go's tables.
 *
 * Go moves its stack pointer once at a function's beginning and back at its end, and saves the
 * frame pointer where the new frame begins (since Go 1.7 on x86-64, 1.12 on arm64):
 *
 *   x86-64   CFA-8   return address          arm64   sp      return address (x30)
 *            CFA-16  the caller's rbp                sp-8    the caller's x29
 *   CFA = sp + delta + 8                     CFA = sp + delta
 */
#ifndef MEMSCOPE_UNWIND_GO_ROWS_H
#define MEMSCOPE_UNWIND_GO_ROWS_H

#include "elf/gopclntab.h"
#include "unwind/code.h"
#include "unwind/rule_ranges.h"
#include "unwind/rules.h"

/* Adds the rows of every function to `to`, whose marks must not be above them. -ENOMEM, -EFBIG. */
int go_rows(const struct gopclntab *tab, const struct rule_machine *m, struct code *code,
	    struct rule_set *rules, struct rule_ranges *to);

#endif
