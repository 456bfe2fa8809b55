/*
 * What a profile says of lines of source and of single instructions.
 *
 *   line     self: of samples that were there, total: of these and of what the line called; once a sample, however
 *            often a stack has it. An inlined function's lines are its own, wherever it was inlined
 *   place    an address in an image: self alone. A value that belongs to a site (sites.h) is at the call there, whose address is the
 *            return address less one
 *
 * Samples whose value is zero or less are left out.
 */
#ifndef MEMSCOPE_ANALYSE_LINE_COSTS_H
#define MEMSCOPE_ANALYSE_LINE_COSTS_H

#include "model/code_text.h"
#include "model/profile.h"

struct line_key {
	string_id function, file;
	module_id module;
	uint32_t line; /* 0: not known */
};

struct line_cost {
	struct line_key key;
	uint32_t start_line; /* of the function; 0: not known */
	uint32_t pid;        /* a process that ran it, as its label says; 0: not known */
	int64_t self, total;
};

struct place_cost {
	module_id module;
	uint64_t vaddr;
	location_id location; /* one of those that are there: its lines are those of all */
	int64_t self;
};

/* Lines of one function in one image: its inlined copies count with it. */
struct function_cost {
	string_id function;
	module_id module;
	int64_t self, total;
	uint32_t first, n; /* of lines */
};

struct line_costs {
	struct line_cost *lines;         /* by module, function, file and line              */
	struct place_cost *places;       /* by module and address                           */
	struct function_cost *functions; /* by self, largest first                          */
	uint32_t n_lines, n_places, n_functions;
	int64_t all;                     /* of the whole profile                            */
};

/* Value type `type` of `p`. Kernel code and what has no name is in `all` only. 0 or -ENOMEM; line_costs_fini() in either case. */
int line_costs_make(const struct profile *p, uint32_t type, struct line_costs *c);
void line_costs_fini(struct line_costs *c);

/*
 * Adds the self cost of each instruction of `code` to `self`, which has one for each. *ret_sum of them. false: `function` stands, inlined or
 * not, at none of the places in it.
 */
bool line_costs_of_code(const struct line_costs *c, const struct dict *d, const struct code_text *code, string_id function,
			int64_t *self, int64_t *ret_sum);
/* Is the function, inlined or not, one of those at this place? */
bool place_cost_is_of(const struct place_cost *p, const struct dict *d, string_id function);

/*
 * Where the value of a sample with this stack belongs: a location of it, and how many frames are between it and the
 * leaf, inlined ones included. -ENOENT: the stack is empty; -ENOMEM.
 */
int line_costs_place(const struct profile *p, uint32_t type, stack_id stack, location_id *ret_location,
		     uint32_t *ret_from_leaf);

#endif
