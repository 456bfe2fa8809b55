/*
 * The names of the addresses that are asked for in one image: by the resolvers (resolver.h), one role after the other.
 *
 * The kernel's and our own vDSO's are read here. Files are others' bytes, and so are the names in them: a cell reads them
 * (base/cells.h), one for each image, and has no file but those that are handed to it:
 *
 *   memscope                                     the cell
 *     question: addresses, the image ─────────▶   image_names_here()
 *     ◀───── "open …/xx.debug", "ask the servers"
 *     a descriptor, if it may ───────────────▶
 *     ◀───── "lines of this file, and that": another cell's work (elf/dwarf.h)
 *     what that one said ────────────────────▶
 *     ◀───── the answer: lines by address       its end
 *
 * A cell that ends early, or says what cannot be, costs this image its names.
 */
#ifndef MEMSCOPE_SYMBOLIZE_IMAGE_NAMES_H
#define MEMSCOPE_SYMBOLIZE_IMAGE_NAMES_H

#include "base/bytes.h"
#include "symbolize/sym_image.h"

struct image_question {
	struct dict *d;
	module_id module;
	const struct symbolize_opts *opts;
	const uint64_t *vaddrs; /* ascending, each once */
	uint32_t n;
	struct debuginfod *servers; /* NULL: none are asked           */
	int64_t *dwarf_ms_left;     /* for the debug info of all images */
	/* In a cell: who does what it may not (sym_image.h); else NULL. */
	sym_lines_fn ask_lines;
	sym_server_fn ask_server;
};

enum found { FOUND_NAME, FOUND_RANGE, FOUND_NOTHING };

/* One address: at least one line, innermost first, of the question's dict; good during the call. */
struct image_place {
	uint32_t ix; /* which address */
	enum found found;
	bool unread; /* debug info that may know more was left unread */
	const struct line *lines;
	uint32_t n_lines;
};
typedef void (*image_place_fn)(void *ctx, const struct image_place *p);

/* Few words, static or the dict's. */
struct image_end {
	const char *why_unnamed;   /* of what has no name                                      */
	const char *lines_problem; /* why lines may be missing although there are some; or NULL */
};

/* Each address once, ascending. -ENOMEM. */
int image_names_here(const struct image_question *q, image_place_fn fn, void *ctx, struct image_end *ret);
/* The same by a cell. Addresses that it says nothing of have made-up names. */
int image_names_in_cell(const struct image_question *q, image_place_fn fn, void *ctx, struct image_end *ret);

/*
 * What a cell answered, `data` (sym_cell.c has its form): every number in it is checked. Returns how many addresses had their turn; fewer
 * than all of them where it does not add up.
 */
uint32_t image_names_take(const struct image_question *q, struct bytes data, image_place_fn fn, void *ctx, struct image_end *ret);

/* The files that an image's names are in, as a cell finds them: descriptors, -1: there is none. */
struct image_files {
	int image, debug, alt;
};
/* Of a module that is a file. -errno: it is not there, is another than was mapped, or cannot be read. */
int image_files_find(const struct symbolize_opts *opts, struct dict *d, module_id m, struct image_files *ret);
void image_files_close(struct image_files *f);

/* What a place without a name is shown as: "basename+0xvaddr", "[anon]", "[unknown]". */
string_id image_made_up_name(struct dict *d, const struct module *m, uint64_t vaddr);

#endif
