/*
 * Of the kernel's type information, 5 MB with 150,000 types, what our programs refer to, some 100 KB. libbpf reads the
 * whole once for each of its objects, and looks each type up by reading all names: that was a tenth of the CPU time of a
 * start, and 16 MB. It is found out once a boot (base/boot_file.h) and build.
 *
 * All types with a name that the programs' own type information has, those that kernel_types.c asks for, and all
 * tracepoints (btf_trace_NAME); with what they consist of. Pointers point to nothing, but those of tracepoints: no
 * relocation looks behind one. Ids differ from the kernel's.
 */
#ifndef MEMSCOPE_COLLECT_SESSION_KERNEL_SUBSET_H
#define MEMSCOPE_COLLECT_SESSION_KERNEL_SUBSET_H

#include <stdint.h>

struct btf;

struct kernel_subset {
	struct btf *btf;
	int fd;
	char path[32]; /* of the same as a file, while it is open; "": there is none */
};

/* The types that `programs` refer to, of `kernel`. NULL: out of memory. */
struct btf *kernel_subset_of(const struct btf *kernel, const struct btf *programs);

/* What is kept of this boot for programs with the digest `of`. -ENOENT and others: nothing. */
int kernel_subset_kept(uint64_t of, struct kernel_subset *ret_subset);
/* Makes and keeps it. */
int kernel_subset_make(uint64_t of, const struct btf *kernel, const struct btf *programs,
		       struct kernel_subset *ret_subset);
/* Also of one that is zero. */
void kernel_subset_close(struct kernel_subset *subset);

#endif
