/* What a program or library says of where threads have their labels, read in a cell (collect/probes/places_cell.h) and checked. */
#ifndef MEMSCOPE_COLLECT_STREAM_LABEL_FILE_H
#define MEMSCOPE_COLLECT_STREAM_LABEL_FILE_H

#include "base/bytes.h"
#include "base/err.h"
#include "elf/elf_tls.h"

/* Who gives threads their blocks of thread-local variables. */
enum label_libc { LABEL_LIBC_NONE, LABEL_LIBC_GLIBC, LABEL_LIBC_MUSL };

struct label_file {
	uint32_t go_version;   /* lang/go.h; 0: it is no program of Go */
	enum label_libc libc;  /* … that it is                         */
	bool has_variable;     /* otel_thread_ctx_v1, of 8 bytes, which is at … */
	struct elf_tls tls;
};

enum label_file_ask { LABEL_FILE_GO, LABEL_FILE_THREADS }; /* the version alone, or the rest */

/*
 * Of the file `fd`, mapped as `path`; `main`: it is the program, no library. What is no ELF file says nothing. -errno with a sentence: the
 * cell ended early, took too long or lied; then nothing is said, too.
 */
int label_file_read(int fd, const char *path, enum label_file_ask ask, bool main,
		    struct label_file *ret, struct err *e);

/* A cell's answer: go_version:4 libc:1 has_variable:1 access:1 slot:8 offset:8. -EBADMSG, and nothing: it does not hold together. */
int label_file_take(struct bytes answer, struct label_file *ret);

#endif
