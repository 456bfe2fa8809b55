/*
 * The copy of a process's memory, for tests that have no process: in place of the program's own functions. Who includes
 * this has BASE, LEN, bytes[] (what is there), `mem` and `thread`.
 */
#ifndef MEMSCOPE_TESTS_FAKE_COPY_H
#define MEMSCOPE_TESTS_FAKE_COPY_H

const uint8_t *copy_bytes(struct copy *c, uint64_t addr, uint64_t *ret_len)
{
	(void)c;
	*ret_len = addr >= BASE && addr < BASE + LEN ? BASE + LEN - addr : 0;
	return *ret_len ? bytes + (addr - BASE) : NULL;
}

const struct heap_memory *copy_memory(const struct copy *c)
{
	(void)c;
	return &mem;
}

const struct stopped_thread *copy_threads(const struct copy *c, uint32_t *ret_n)
{
	(void)c;
	*ret_n = 1;
	return &thread;
}

#endif
