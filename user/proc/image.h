/*
 * The files (and pseudo-files: [vdso], //anon) that processes map, each once.
 *
 * An image is known by path, device and inode as the kernel reported them, and becomes a module of
 * the dict when it is first asked for. Its program headers are read once, at the first address that
 * is resolved in it, while the process that maps it most likely still lives; the descriptor is
 * kept, up to a share of our own limit, which also keeps the inode number from being reused.
 */
#ifndef MEMSCOPE_PROC_IMAGE_H
#define MEMSCOPE_PROC_IMAGE_H

#include "base/err.h"
#include "base/hash.h"
#include "elf/elf_file.h"
#include "model/dict.h"
#include "proc/namespace.h"

#include <stdbool.h>
#include <sys/types.h>

enum { IMAGES_MAX = 1 << 18 };

enum image_state {
	IMAGE_UNREAD,
	IMAGE_READ,        /* segments are known                                           */
	IMAGE_UNREADABLE,  /* vaddrs of this module are file offsets, from the first one on */
};

/* The owner of memory without a file, and its number; see jit_files.h. */
struct jit_owner {
	bool known;
	uid_t uid;
	pid_t ns_pid;
};

struct image {
	UT_hash_handle hh;
	enum module_kind kind;
	enum image_state state;
	bool hung;                   /* unreadable, as who serves it did not answer */
	module_id module;            /* 0 until image_module()  */
	struct elf_segment *segs;
	uint32_t n_segs;
	int fd;                      /* kept open, or -1        */
	int root;                    /* of that pid, or -1      */
	int beside;                  /* image_seen_from(); -1   */
	pid_t pid;                   /* that mapped it last …   */
	uint64_t addr, len;          /* … and where             */
	struct jit_owner jit;        /* MODULE_ANON only        */
	/* The identity, hashed as one run of bytes. */
	uint64_t dev, ino;
	char path[];
};

/*
 * Is asked for another live process that maps `img` when the one in img->pid will not do: the
 * n-th (0, 1, …), 0 when there are no more.
 */
typedef pid_t (*image_mapper_fn)(void *ctx, const struct image *img, uint32_t n);

struct images {
	struct dict *d;
	struct ns_roots *roots;      /* borrowed */
	image_mapper_fn mapper;
	void *ctx;
	struct image *by_identity;
	struct image **by_module;    /* index: module_id.ix */
	uint32_t n, n_by_module;
	uint32_t fds, fds_max;
};

void images_init(struct images *set, struct dict *d, struct ns_roots *roots, image_mapper_fn mapper,
		 void *ctx);
void images_fini(struct images *set);

/* Is a mapping of this name memory without a file? */
bool image_is_anon(const char *path);
/*
 * The image of a mapping. Executable memory without a file is an image of its process. NULL: out of
 * memory, or IMAGES_MAX reached.
 */
struct image *images_get(struct images *set, pid_t pid, uint64_t addr, const char *path, uint64_t dev,
			 uint64_t ino);

/*
 * Who maps it has this root (an index of ns_roots). What is looked for beside the file, its debug info, is looked for below the
 * root of those who map it: below our own where any of them has that, and nowhere (NS_NO_ROOT) where there are several.
 * Else a container, or a user who makes a mount namespace, would name the functions of a file that all map.
 */
void image_seen_from(struct images *set, struct image *img, int root);

module_id image_module(struct images *set, struct image *img);
/* NULL for a module that did not come from here. */
struct image *images_find(const struct images *set, module_id m);

/* File offset → vaddr. Reads the program headers when they have not been. */
uint64_t image_vaddr(struct images *set, struct image *img, uint64_t off);

/*
 * What to take from an address of the executable mapping [addr, addr + len), of file offset `off`, to
 * get the vaddr. Not that of its first byte: a mapping begins with the whole page, and where two
 * segments share one that may be the other's.
 */
uint64_t image_bias(struct images *set, struct image *img, uint64_t addr, uint64_t len, uint64_t off);

/* As proc_table_open_module(). */
int image_open(struct images *set, struct image *img, struct err *e);
/*
 * The same, also of a file whose segments could not be read: one that is mapped and is no ELF image,
 * like a jitdump, which nobody needs segments of.
 */
int image_open_any(struct images *set, struct image *img, struct err *e);

#endif
