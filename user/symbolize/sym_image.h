/*
 * One image while its locations are named: its files, opened when the first resolver wants them
 * and shared by all, and the addresses that will be asked for.
 */
#ifndef MEMSCOPE_SYMBOLIZE_SYM_IMAGE_H
#define MEMSCOPE_SYMBOLIZE_SYM_IMAGE_H

#include "elf/debug_link.h"
#include "symbolize/debuginfod.h"
#include "symbolize/symbolize.h"

struct sym_image;
struct dwarf_raw;

/* Where this process may not: asks for the lines of the file `debug`, with `alt` (NULL: none), as dwarf_raw_read(). */
typedef int (*sym_lines_fn)(const struct sym_image *img, struct elf_file *debug, struct elf_file *alt, int64_t max_cpu_ns,
			    struct dwarf_raw *ret);
/* … and for the file that a server has of this build ID: a descriptor, or -errno. */
typedef int (*sym_server_fn)(const struct sym_image *img, const char *build_id);

struct sym_image {
	const struct symbolize_opts *opts;
	const struct dict *d;
	module_id module;
	const uint64_t *vaddrs;   /* that will be asked for, ascending */
	uint32_t n_vaddrs;
	struct debuginfod *servers; /* borrowed; NULL: none are asked         */
	sym_lines_fn ask_lines;     /* NULL: a cell is asked from here         */
	sym_server_fn ask_server;   /* NULL: `servers` are                      */
	int64_t *dwarf_ms_left;     /* for the debug info of all images       */
	const char *lines_problem;  /* out: why inlined calls and lines may be missing, although there
	                             * is debug info; NULL                    */
	bool lines_unread;          /* out: some of it is left unread, for the budget of debug info */
	const char *jitdump_problem; /* why an existing one names nothing; NULL */

	int fd;                   /* of elf                                 */
	int state;                /* 0: not opened yet; 1: open; or -errno  */
	const char *why;
	struct elf_file *elf;

	bool sought_debug;
	struct debug_file *debug; /* NULL: none                             */
	struct debug_file *alt;
};

void sym_image_init(struct sym_image *img, const struct symbolize_opts *opts, const struct dict *d,
		    module_id m);
void sym_image_fini(struct sym_image *img);

/*
 * The image's file, if it is the one whose build ID the module has; borrowed. -errno and a few
 * static words.
 */
int sym_image_elf(struct sym_image *img, struct elf_file **ret_elf, const char **ret_why);

/* The file with its separate debug info; borrowed. -ENOENT: none. */
int sym_image_debug(struct sym_image *img, struct elf_file **ret_elf, const char **ret_why);
/* What `elf`, its own file or the one above, shares with others (dwz); borrowed. */
int sym_image_alt(struct sym_image *img, struct elf_file *elf, struct elf_file **ret_alt);

/*
 * The lines of img's addresses, as they came (dwarf.h), from whoever may read debug info: in `dwarf_ms_left`, which the caller counts down,
 * and `max_cpu_ns` (0: any).
 */
int sym_image_raw_lines(const struct sym_image *img, struct elf_file *debug, struct elf_file *alt, int64_t max_cpu_ns,
			struct dwarf_raw *ret);

/* As the target sees it. */
static inline const char *sym_image_path(const struct sym_image *img)
{
	return dict_str(img->d, dict_module_get(img->d, img->module)->path);
}

/* The words for an error of elf/. */
const char *sym_image_why(int code);

#endif
