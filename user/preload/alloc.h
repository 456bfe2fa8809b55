/*
 * The sampler as agent.c sees it, when the library is put into a process that runs.
 */
#ifndef MEMSCOPE_PRELOAD_ALLOC_H
#define MEMSCOPE_PRELOAD_ALLOC_H

#include <stdbool.h>

/*
 * Has `find` look for the functions that the program calls now, for ours to hand calls on to; samples every `bytes`
 * on average. 0, also when that was done before: then the rate is what it was, since each thread's
 * next sample point has been drawn with it. -EEXIST: the library was preloaded (with `every`, that is fine).
 */
int alloc_inject(double bytes, bool every, void *(*find)(const char *name));
/* With `every`, calls are recorded (exact.h), and none is a sample; until this. */
void alloc_exact_end(void);
double alloc_rate(void);

/* No block is a sample any more. For a time when no calls come. */
void alloc_forget(void);

/* Who forks waits until the other is called. false: somebody is just forking. */
bool alloc_no_fork(void);
void alloc_may_fork(void);

struct alloc_function {
	const char *name;
	void *ours;
	void *real;     /* NULL: there is none that ours is to stand for */
	bool gives_back;
};
/* The i-th of them; false: there are no more. */
bool alloc_function_at(unsigned i, struct alloc_function *ret_f);

#endif
