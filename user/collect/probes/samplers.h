/*
 * Table: samplers of allocations that are built into runtimes and allocators, by the functions in
 * which they record a sample and learn of its free. A probe there is on the sampled path alone.
 *
 * A function is found only by its name: in the file's symbols, in those of its debug file, in Go's
 * own table. Where its arguments are follows from the calling convention: C's, or that of Go from
 * 1.18 on, whose table gives their size. Entry probes only: a return probe would break Go, whose
 * stacks move, and functions that throw.
 *
 * Go (runtime/mprof.go, runtime/mheap.go): mProf_Malloc(p, size), with more arguments in front and
 *   behind from 1.23 on; freeSpecial(special, p, size), called by the sweeper for what is attached to a
 *   dead object, for few objects more than its sample: one with a finalizer counts as freed when that is
 *   queued. `p` is then the object's beginning, before the 8-byte header that larger objects with
 *   pointers have from 1.22 on. The linker disables the sampler in a program that never asks
 *   for a heap profile (runtime.disableMemoryProfiling); GODEBUG=memprofilerate does not change that.
 * jemalloc 5.3 (src/prof.c): prof_malloc_sample_object(tsd, ptr, size, usize, tctx);
 *   prof_free_sampled_object(tsd, usize, info), info = { alloc_time, tctx, size }: it has no address,
 *   but a tctx is one stack of one thread. Probabilities follow the usable size, `usize`.
 * tcmalloc of gperftools (src/sampler.cc; not the minimal library):
 * Sampler::RecordAllocationSlow(size),
 *   a method, called when a sample is due, and by each thread once before it has drawn its first
 *   distance (initialized_ is false then). `size` is that of the size class, which probabilities follow.
 *   The sampled path never has the address, so frees are not reported. The first thread draws its
 *   first distance before the environment is read: nothing of its first 16 MiB is sampled.
 * HotSpot 11 and later (share/gc/shared/memAllocator.cpp, allocTracer.cpp): objects come out of a buffer of their thread
 *   (TLAB), without a call. AllocTracer::send_allocation_in_new_tlab(klass, object, bytes of the new buffer, bytes of the
 *   object, thread) is called for the object that did not fit any more, whatever collector there is and whether anything is
 *   recorded or not; send_allocation_outside_tlab(klass, object, bytes, thread) for one that is allocated without a buffer,
 *   because it is large or because too much of the buffer would be left. An object is the one that does not fit with a
 *   probability that grows with its size, so the bytes since the thread's last sample are the weight: samples.h. Where objects die is
 *   in no call. Up to JDK 10 code of C1 takes new buffers by itself.
 */
#ifndef MEMSCOPE_COLLECT_PROBES_SAMPLERS_H
#define MEMSCOPE_COLLECT_PROBES_SAMPLERS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* An argument, counted from 0; with `in`, the value `off` bytes into what it points to. */
struct sampler_place {
	uint8_t arg;
	bool in;
	uint16_t off;
	uint8_t size; /* bytes of it; 0: 8 */
};

struct sampler {
	const char *name;        /* as output says it                                         */
	const char *alloc, *free; /* `free` NULL: frees are not reported; then `addr` is a condition:
				   * if it is 0, this is no sample                             */
	bool go;                 /* found in Go's table, arguments as Go passes them           */
	bool je;                 /* names with the prefixes of jemalloc                        */
	uint16_t args;           /* bytes of the arguments of `alloc`, as Go's table has them   */
	const char *with, *without; /* functions that this version has, and lacks; NULL: any    */
	struct sampler_place addr, size;                  /* of `alloc`                       */
	struct sampler_place free_addr, free_size, free_time;
	bool by_class;           /* a free has no address, but a class of blocks               */
	uint8_t header;          /* a free's address may be so many bytes lower                */
	const char *rate;        /* variable of 8 bytes: mean bytes between samples             */
	bool rate_log2;          /* it has the logarithm of that                               */
	const char *on;          /* variable of a byte: it is on; NULL: by the rate             */
	const char *how;         /* what turns it on, a clause; NULL: see sampler_advise()      */
	/* HotSpot: each thread counts its bytes, a sample is of what came since its last one; it is always on. */
	bool counter;            /* `addr` is the size of the new buffer                       */
	const char *also;        /* … where an object is sampled without a new buffer          */
	struct sampler_place thread, also_size, also_thread;
};

extern const struct sampler samplers[]; /* the source of a record is the index + 1 */
extern const uint32_t n_samplers;

/* Why a sampler that a file has cannot be probed: a clause each. */
enum sampler_why {
	SAMPLER_WHY_NOT_LOADED,
	SAMPLER_WHY_GO_OLD,
	SAMPLER_WHY_GO_UNKNOWN,
	SAMPLER_WHY_GO_SWEEPER,
	SAMPLER_WHY_UNKNOWN,
	SAMPLER_WHY_NO_RATE,
	SAMPLER_WHY_JEMALLOC_NAMES,
	SAMPLER_WHY_HOTSPOT_OLD,
	SAMPLER_WHY_HOTSPOT_NAMES,
	SAMPLER_N_WHYS,
};
extern const char *const sampler_whys[SAMPLER_N_WHYS];

/* jemalloc's control function, and the variable in its environment that sets it up. */
struct sampler_control_name {
	const char *function, *variable;
};
extern const struct sampler_control_name sampler_controls[];
extern const uint32_t n_sampler_controls;

#define SAMPLER_SITES   2
#define SAMPLER_GO_RATE (512 * 1024) /* runtime.MemProfileRate, where nobody has set it */

/* What a file contains. */
struct sampler_found {
	const struct sampler *sampler; /* NULL: none that can be probed                        */
	const char *kind; /* "Go's runtime", "jemalloc": whose it would be; NULL: none           */
	const char *why;  /* of sampler_whys: why `kind` cannot be probed; NULL: it can         */
	struct {
		uint64_t vaddr;
		uint64_t off;          /* in the file */
	} sites[SAMPLER_SITES];        /* of the allocation, of the free (sampler_site.h)      */
	uint32_t n_sites;
	uint64_t rate_vaddr;      /* 0: not known, `rate` is assumed                           */
	uint64_t on_vaddr;        /* 0: there is none, or it is not known                      */
	uint64_t rate;
	bool linked_off;          /* nothing in the program turns it on                        */
	struct {
		uint16_t allocated, start, top; /* of a Thread with a counter: the caller's to fill in */
	} counter;
};

/*
 * The rate at which process `pid` runs it: mean bytes between samples, 0: it is off. `bias`:
 * address less vaddr of the file. -errno: its memory cannot be read.
 */
int samplers_rate(const struct sampler_found *found, pid_t pid, uint64_t bias, uint64_t *ret_rate);

/* Where the register with a DWARF number is in struct pt_regs. */
uint16_t samplers_reg_off(uint8_t reg);

#endif
