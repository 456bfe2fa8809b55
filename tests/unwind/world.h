/*
 * Processes of a recording: what each had mapped when a sample was taken, and memscope's unwind tables
 * of those files, published as they are for the kernel.
 */
#ifndef MEMSCOPE_TESTS_UNWIND_WORLD_H
#define MEMSCOPE_TESTS_UNWIND_WORLD_H

#include "samples.h"

#include "base/hash.h"
#include "elf/elf_file.h"
#include "unwind/publish.h"

/* A mapped file. */
struct image {
	char *name;
	int fd;
	struct elf_file *elf;         /* NULL: it cannot be read */
	struct unwind_table *table;   /* NULL: it has none       */
	uint32_t table_ix;
	uint64_t build_ns;
	UT_hash_handle hh;
};

struct mapping {
	uint64_t start, end, bias;
	struct image *image;          /* NULL: no file */
};

struct process {
	uint32_t pid;
	struct mapping *maps;
	uint32_t n, cap;
	uint32_t gen;                 /* counts changes of `maps` */
	uint32_t published;           /* gen whose spans are in the pool */
	void *other;                  /* the other unwinder's, of gen other_gen */
	uint32_t other_gen;
	UT_hash_handle hh;
};

struct world {
	struct publish_mem mem;
	struct publish *publish;
	struct image *images;
	struct process *processes;
	void (*drop_other)(void *other);
};

int world_init(struct world *w, struct err *e);
void world_fini(struct world *w);

/* Takes in a record that is no sample. 0, -ENOMEM. */
int world_take(struct world *w, const struct perf_event_header *h);
/* NULL: never heard of. */
struct process *world_process(struct world *w, uint32_t pid);
/* What walks of this process start from. */
int world_space(struct world *w, struct process *p, struct ms_space *ret_space, struct err *e);
/* The mapping at an address; NULL: none. */
const struct mapping *process_at(const struct process *p, uint64_t addr);

#endif
