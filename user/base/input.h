/*
 * A stream of bytes from memory or from a descriptor, decompressed (gzip and zstd, recognised by their first bytes),
 * for files that are larger than the memory their readers may use. It buffers one piece of some 64 KiB, or the
 * longest line (INPUT_LINE_MAX).
 *
 * A fault (damaged or truncated compression, a failed read, a line that is too long) ends it like the end of the file;
 * bytes before it are valid. input_fault() says which fault it was.
 */
#ifndef MEMSCOPE_BASE_INPUT_H
#define MEMSCOPE_BASE_INPUT_H

#include "base/bytes.h"
#include "base/cleanup.h"

struct input;

enum { INPUT_LINE_MAX = 16 << 20 };

/* `data` and `fd` are borrowed. NULL: out of memory. */
struct input *input_of_bytes(struct bytes data);
struct input *input_of_fd(int fd);
void input_free(struct input *in);
DEFINE_CLEANUP(struct input *, input_freep, input_free)

/* The first `n` bytes of what is still to come, which stay there; fewer where it ends before. */
struct bytes input_peek(struct input *in, size_t n);
/* The next line without its newline (and a CR before it), good until the next call. False: there is none. */
bool input_line(struct input *in, struct bytes *ret_line);
/* The next piece, of any length, good until the next call. False: there is none. */
bool input_piece(struct input *in, struct bytes *ret_piece);

/* How many lines were taken: the number of the last one, from 1. */
uint64_t input_n_lines(const struct input *in);
/* Bytes taken, unpacked. */
uint64_t input_offset(const struct input *in);
/* Did the last line end in a newline? Where none did, the file may have been cut within it. */
bool input_line_whole(const struct input *in);
bool input_is_packed(const struct input *in);
/* Bytes read of the file as it is, packed or not. */
uint64_t input_read_bytes(const struct input *in);

/*
 * 0: none so far. -EBADMSG: the packing is damaged or cut; -EFBIG: a line is too long; -ENOMEM; else of read(). The
 * sentence's middle, as in "damaged gzip data after 1234 bytes", goes to `ret_what` (may be NULL).
 */
int input_fault(const struct input *in, const char **ret_what);

#endif
