/* What `memscope doctor -p` asks of a process's files. They are others' bytes: a cell (base/file_cell.h) reads each. */
#ifndef MEMSCOPE_CMD_DOCTOR_FILES_H
#define MEMSCOPE_CMD_DOCTOR_FILES_H

#include <stdbool.h>
#include <stdint.h>

/* How many of the functions whose calls are allocations the file defines; false: no cell said so. */
bool doctor_allocation_functions(int fd, const char *name, uint32_t *ret);

enum { FP_SIZE_MIN = 48 }; /* bytes: shorter functions often need no frame, whoever compiles them */

/* Functions of some size, and how many of them have their CFA by the frame pointer somewhere. */
struct fp_count {
	uint32_t functions, with;
};

/* false: it has no unwind information, or cannot be read. */
bool doctor_frame_pointers(int fd, const char *name, struct fp_count *ret);

#endif
