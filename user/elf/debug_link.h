/*
 * Separate debug info: the file that belongs to an image, and the file that several of those share.
 *
 * In this order: /usr/lib/debug/.build-id/xx/yyyy.debug; then what .gnu_debuglink names, next to
 * the image, in .debug/ beside it, and below /usr/lib/debug (GDB manual, "Separate Debug Files").
 * Each is tried as the target sees it and then on the host. A file is the right one when its
 * build ID is the image's; one found by debuglink whose image has none, when its CRC is the
 * link's. What is found is attacker's bytes as much as the image is.
 */
#ifndef MEMSCOPE_ELF_DEBUG_LINK_H
#define MEMSCOPE_ELF_DEBUG_LINK_H

#include "elf/elf_file.h"

/*
 * Opens the regular file `path`, below the root of a process that maps the image or, with `host`, below
 * our own: a descriptor that becomes the caller's, or -errno.
 */
typedef int (*debug_open_fn)(void *ctx, const char *path, bool host);

/*
 * May a cell that reads `image` have this file of our own root? Only what is where debug info is, or beside the image: not whatever
 * it names.
 */
bool debug_link_host_path_ok(const char *path, const char *image);

enum { DEBUG_DATA_MAX = 64 << 20 };  /* bytes of .gnu_debugdata, unpacked */

struct debug_file {
	int fd;
	struct elf_file *elf;
	bool host;
	char path[4096];
};

/* -ENOENT: none, or none that belongs to it. */
int debug_link_find(struct elf_file *elf, debug_open_fn open_path, void *ctx,
		    struct debug_file **ret_file);
void debug_file_free(struct debug_file *f);
DEFINE_CLEANUP(struct debug_file *, debug_file_freep, debug_file_free)

/*
 * `fd` (taken over) as the debug file of `elf`, if its build ID says so; `path` is for sentences.
 * -ESTALE: it belongs to another.
 */
int debug_file_take(int fd, const char *path, struct elf_file *elf, struct debug_file **ret_file);

/*
 * The shared file (.gnu_debugaltlink, made by dwz) that `elf`, opened as `path`, refers to.
 * -ENOENT: there is no such link; -ESTALE: the file is missing or another.
 */
int debug_link_alt(struct elf_file *elf, const char *path, debug_open_fn open_path, void *ctx,
		   struct debug_file **ret_file);

/*
 * The ELF file inside .gnu_debugdata: symbols of functions that are not exported. The bytes are
 * free()d after the elf_file is closed. -ENOENT: no such section; else as xz_unpack().
 */
int debug_data_open(struct elf_file *elf, uint8_t **ret_bytes, struct elf_file **ret_elf,
		    struct err *e);

#endif
