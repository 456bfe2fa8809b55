/*
 * Which samplers of allocations a process has, from the files that it maps: asked before a run, to
 * know what to load, and by `doctor -p`.
 */
#ifndef MEMSCOPE_RUN_SAMPLER_H
#define MEMSCOPE_RUN_SAMPLER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define SAMPLER_LIBRARY "libmemscope-alloc.so"

struct sampler_facts {
	bool otel;        /* sites of the otel_memory contract, memscope's library or another's    */
	char where[256];  /* path of the first image that has them; ""                            */
	/* One that a runtime or an allocator has of its own (collect/probes/samplers.h). */
	const char *own;  /* "Go's runtime", "jemalloc"; NULL: none                               */
	bool go;
	bool counts;      /* HotSpot: there is no rate, a sample is of what came since the last one */
	bool by_itself;   /* and what it allocates goes through no function of C: Go, Java          */
	char own_where[256];
	bool heard;       /* it is on, and can be listened to                                     */
	uint64_t rate;    /* mean bytes between samples; 0: it is off                              */
	bool rate_known;
	const char *how;  /* what turns it on, a clause; NULL: see the code                       */
	const char *why;  /* a clause: why it cannot be listened to; NULL: it can, when it is on   */
	/* jemalloc's own, which it has where it was built with an unwinder of its own choice. */
	const char *jemalloc_conf; /* the variable that sets it up; NULL: there is no jemalloc    */
	bool jemalloc_prof;        /* it is compiled in                                           */
	bool jemalloc_on;          /* that variable turned it on when the process was started     */
	char unread[256]; /* of the first file whose reading failed, a sentence; ""               */
};

/* Nothing is found in what cannot be read. */
void sampler_look(pid_t pid, struct sampler_facts *ret_facts);
/* The same of the program that `argv` would start; what a process has set otherwise is not known. */
void sampler_look_command(char *const *argv, struct sampler_facts *ret_facts);

/* What is to be done for `facts->own` to be listened to: a sentence in `buf`; "" when it is. */
void sampler_advise(const struct sampler_facts *facts, char *buf, size_t cap);

/* Where libmemscope-alloc.so is: next to the program, or where `make install` puts it. false: in
 * neither. */
bool sampler_library(char *ret_path, size_t cap);

#endif
