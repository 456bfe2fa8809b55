/*
 * Rules of one table: DWARF's rules (elf/cfi.h) in the walker's form (rows.h), each stored once.
 */
#ifndef MEMSCOPE_UNWIND_RULES_H
#define MEMSCOPE_UNWIND_RULES_H

#include "elf/cfi.h"
#include "walk/rows.h"

#include <stdbool.h>

/* Why CFI became MS_RULE_BAD. */
enum rule_why {
	RULE_OK,
	RULE_NO_CFA,      /* the CFI gives no rule for the CFA                               */
	RULE_EXPRESSION,  /* an expression of a form that the walker has none for            */
	RULE_PROGRAM,     /* damaged or unknown instructions                                 */
	RULE_SP,          /* the caller's stack pointer is not the CFA (longjmp, setcontext)  */
	RULE_RANGE,       /* an offset is too far away                                       */
	RULE_RETURN,      /* the return address is nowhere, or where the walker cannot look  */
	RULE_TOO_MANY,    /* of different rules                                              */
	N_RULE_WHY,
};

/* What a table is made for. */
struct rule_machine {
	uint16_t machine;       /* EM_…                                                   */
	uint8_t sp, n_saved;
	const uint8_t *saved;   /* DWARF numbers in the order of ms_rule.save             */
	int32_t sigcontext;     /* of a signal's frame without usable CFI: bytes from sp  */
};
/* NULL: a machine whose stacks are not walked. */
const struct rule_machine *rule_machine(uint16_t machine);

/* The walker's rule for `rules`, which are of function `fde`. Sets kind MS_RULE_BAD when not RULE_OK. */
enum rule_why rule_of_cfi(const struct rule_machine *m, const struct cfi_fde *fde,
			  const struct cfi_rules *rules, struct ms_rule *ret_rule);

/* A signal's frame where there is no CFI: registers at the usual place above sp. */
struct ms_rule rule_of_signal(const struct rule_machine *m);

/* --- sets --- */

struct rule_set {
	struct ms_rule *rules;  /* the fixed ones of rows.h first */
	uint32_t n, cap;
	uint32_t *slots;        /* open addressing: number + 1    */
	uint32_t n_slots;
};

/* -ENOMEM. */
int rule_set_init(struct rule_set *set);
void rule_set_fini(struct rule_set *set);
/* The rule's number. -ENOMEM, -EFBIG: numbers do not fit a row. */
int rule_set_add(struct rule_set *set, const struct ms_rule *rule, uint32_t *ret_ix);

#endif
