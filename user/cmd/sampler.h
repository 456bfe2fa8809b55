/*
 * Which samplers of allocations a process has, from the files that it maps: asked before a run, to
 * know what to load, and by `doctor -p`.
 */
#ifndef MEMSCOPE_CMD_SAMPLER_H
#define MEMSCOPE_CMD_SAMPLER_H

#include <stdbool.h>
#include <sys/types.h>

struct sampler_facts {
	bool otel;        /* sites of the otel_memory contract, memscope's library or another's    */
	char where[256];  /* path of the first image that has them; ""                            */
};

/* Nothing is found in what cannot be read. */
void sampler_look(pid_t pid, struct sampler_facts *ret_facts);

#endif
