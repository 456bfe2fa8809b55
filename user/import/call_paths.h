/*
 * Stacks from a graph of calls: what is known is what each place of a function cost by itself, and what each call from one
 * function to another cost with everything below it (callgrind). Paths are made as gprof's readers make them: what a
 * function costs is divided among those who called it as their calls cost, wherever these came from themselves. So
 * costs of functions and of lines are exact, paths of more than one call are apportioned.
 *
 * Calls back into a function that is at work (recursion) are left out of the paths. What paths below a ten-millionth of all costs
 * would add (more, where there are more than 300,000 paths) stands below "[other callers]".
 */
#ifndef MEMSCOPE_IMPORT_CALL_PATHS_H
#define MEMSCOPE_IMPORT_CALL_PATHS_H

#include "model/profile.h"

struct call_function {
	string_id name;
	module_id module;
	labels_id labels;
	bool hidden; /* it stands for what its labels say: no frame */
};

struct call_cost {
	uint32_t function, callee; /* numbers from 0; callee: 1 + number, 0: the function's own */
	string_id file;
	uint32_t line;
	const int64_t *values; /* as many as the profile has types; not below 0 */
};

/*
 * Adds all to the profile. `functions` and `costs` are in any order; costs become sorted. 0 or -ENOMEM. Memory and time:
 * in proportion to costs and paths.
 */
int call_paths_add(struct profile *p, const struct call_function *functions, uint32_t n_functions,
		   struct call_cost *costs, uint32_t n_costs);

#endif
