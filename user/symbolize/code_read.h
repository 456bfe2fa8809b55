/*
 * The functions of an image that have certain addresses in them: their instructions, with the lines that each was compiled
 * from. The image's file is read only if it is the one whose build ID the profile has (sym_image.h). Files are others' bytes: a cell
 * reads them, as it does for names (image_names.h), and what it says is checked.
 *
 * A function is the symbol at an address, of the file or of what was put aside for it; without one, the range that the unwind
 * information has there.
 */
#ifndef MEMSCOPE_SYMBOLIZE_CODE_READ_H
#define MEMSCOPE_SYMBOLIZE_CODE_READ_H

#include "elf/disassembler.h"
#include "model/code_text.h"
#include "symbolize/image_names.h"

enum {
	CODE_FUNCTIONS_MAX = 64, /* of one image in one call                                  */
	CODE_ORIGINS_MAX = 64,   /* of one instruction: what is deeper is cut at the function's end */
};

/* An address, and what the profile calls the function that was compiled there (never an inlined one). */
struct code_wanted {
	uint64_t vaddr;
	const char *name;
};

struct code_answer {
	struct code_text functions[CODE_FUNCTIONS_MAX]; /* by address */
	uint32_t n;
	const char *problem;  /* why some or all are missing, static words or the dict's; NULL */
	bool is_read;         /* its file was there, and is the one that the profile has */
	bool by_build_id;     /* the file's build ID is that of the profile, so that it is the same file */
	int64_t mtime_s;      /* of the file; 0: not read */
	uint32_t owner;       /* user ID of the file's owner */
};

/*
 * `wanted`: ascending by address. The debug info takes `max_ms` at most. 0 or -ENOMEM; code_answer_fini() in either case: what
 * cannot be read is left out.
 */
int code_read(struct dict *d, const struct symbolize_opts *files, module_id m, const struct code_wanted *wanted, uint32_t n,
	      enum disassembly_syntax syntax, int64_t max_ms, struct code_answer *ret);
/* The same in this process, but for what fstat(2) says of the file. `wanted` has the addresses of the question. */
int code_read_here(const struct image_question *q, const struct code_wanted *wanted, enum disassembly_syntax syntax, struct code_answer *ret);
/* A cell's answer (code_cell.c has its form): every number in it is checked. -EBADMSG: it does not add up; -ENOMEM. */
int code_take(const struct image_question *q, const struct code_wanted *wanted, struct bytes data, struct code_answer *ret);
void code_answer_fini(struct code_answer *answer);

#endif
