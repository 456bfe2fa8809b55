/*
 * Inside snapshot/: the memory that a file has (file.h): packed in frames of 1 MiB, unpacked as they are asked for into
 * a nameless file, so that a large heap needs no anonymous memory.
 */
#ifndef MEMSCOPE_HEAP_SNAPSHOT_CONTENTS_H
#define MEMSCOPE_HEAP_SNAPSHOT_CONTENTS_H

#include "heap/snapshot/file.h"

/*
 * What --contents words keeps of the `len` bytes, in place: file.h says what that is. `mem`: whose mappings addresses are
 * looked up in.
 */
void contents_keep_words(const struct heap_memory *mem, uint8_t *bytes, size_t len);

struct contents_packer;

/* NULL: out of memory. `words`: only these are kept. */
struct contents_packer *contents_packer_new(const struct heap_memory *mem, bool words);
void contents_packer_free(struct contents_packer *p);
DEFINE_CLEANUP(struct contents_packer *, contents_packer_freep, contents_packer_free)
/* A frame of `len` <= FILE_FRAME bytes; valid until the next. -EIO: the library refuses. */
int contents_pack(struct contents_packer *p, const uint8_t *bytes, size_t len, const uint8_t **ret_frame, size_t *ret_len);

struct contents;

/*
 * `frames`: n + 1 checked places in `packed`, of which each frame but the last unpacks to FILE_FRAME bytes, `len` in all. They
 * are borrowed. -ENOMEM, or as open(2) of a file in `folder`.
 */
int contents_open(const uint8_t *packed, const uint64_t *frames, uint64_t n, uint64_t len, const char *folder,
		  struct contents **ret_contents);
void contents_close(struct contents *c);
/* Where bytes are once contents_load() has said that they are. */
uint8_t *contents_bytes(const struct contents *c);
/* false: a frame is damaged, or there is no room for it. */
bool contents_load(void *contents, uint64_t at, uint64_t len);

#endif
