/*
 * The mappings that a heap dump ends with, a copy of /proc/PID/maps, and the way from an address of
 * the process to a place in a file.
 *
 * A dump knows files by path alone. Their program headers, which lead from file offset to the
 * file's own addresses, and their build IDs come from the files as they are now, through
 * import_opts.open_image; where there is none, places are file offsets and get no names. A file
 * that was deleted or replaced while it was mapped ("(deleted)") is not opened: what is at its path
 * is another one.
 */
#ifndef MEMSCOPE_IMPORT_MAPPED_H
#define MEMSCOPE_IMPORT_MAPPED_H

#include "base/cleanup.h"
#include "elf/elf_file.h"
#include "import/readers.h"

enum { MAPPED_MAX = 1 << 18 };

struct mapped_image {
	char *path;
	bool deleted;
	uint64_t ino;
	bool looked, changed;
	struct elf_segment *segs;
	uint32_t n_segs;
	string_id build_id;
};

struct mapping {
	uint64_t start, end, file_off;
	uint32_t image;    /* index + 1; 0: memory without a file */
	module_id module;  /* once an address in it was asked for  */
};

struct mapped {
	struct dict *d;
	const struct import_opts *opts;
	struct mapping *maps;
	uint32_t n, cap;
	struct mapped_image *images;
	uint32_t n_images, cap_images;
	uint32_t changed;  /* files whose inode is another one now */
};

/* `text`: the lines after MAPPED_LIBRARIES:, those that do not parse are passed over. 0 or -ENOMEM. */
int mapped_read(struct mapped *m, struct bytes text);
void mapped_fini(struct mapped *m);

/* The place of an address; without a mapping, one of no module. 0 only when out of memory. */
location_id mapped_location(struct mapped *m, uint64_t addr);

#endif
