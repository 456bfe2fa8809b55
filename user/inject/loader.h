/*
 * The code that loads the library, for memory that memscope has a process map. Position-independent;
 * x86-64, and empty elsewhere. Both parts are given the address of a struct agent_block.
 */
#ifndef MEMSCOPE_INJECT_LOADER_H
#define MEMSCOPE_INJECT_LOADER_H

#include <stddef.h>
#include <stdint.h>

struct loader {
	const uint8_t *code;
	size_t bytes;
	size_t create; /* offset of a function (block, pthread_create, what the thread is to run) */
	size_t thread; /* offset of what it is to run: loads the library, and becomes its agent  */
};

void loader_get(struct loader *ret_loader);

#endif
