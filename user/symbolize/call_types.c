#include "symbolize/call_types.h"

#include "elf/dwarf_makes.h"
#include "symbolize/image_names.h"

#include <errno.h>
#include <string.h>

enum { MS_MAX = 20000 }; /* for the debug info of one image */

struct call {
	uint64_t vaddr;
	module_id module;
	location_id location;
};

static int compare(const void *a, const void *b)
{
	const struct call *x = a, *y = b;

	if (x->module.ix != y->module.ix)
		return x->module.ix < y->module.ix ? -1 : 1;
	return (x->vaddr > y->vaddr) - (x->vaddr < y->vaddr);
}

/* The longest piece of code there is behind a call, at most RESULT_CODE_BYTES. */
static void read_moves(struct elf_file *elf, uint64_t vaddr, struct result_moves *ret_moves)
{
	uint8_t code[RESULT_CODE_BYTES];
	size_t len = sizeof(code);

	while (len && !elf_file_read_vaddr(elf, vaddr, code, len))
		len /= 2;
	result_moves_read(code, len, vaddr, elf_file_machine(elf), ret_moves);
}

static void hand_on(const struct dwarf_types *types, const struct call *calls, uint32_t n,
		    call_type_fn fn, void *ctx)
{
	uint32_t n_types;
	const struct dwarf_type *type = dwarf_types_list(types, &n_types);

	for (uint32_t i = 0; i < n_types; i++)
		for (uint32_t low = 0, high = n; low < high;) {
			uint32_t mid = low + (high - low) / 2;
			struct call_type found = { calls[mid].location, type[i].name, type[i].bytes,
						   type[i].is_guess };

			if (calls[mid].vaddr + 1 == type[i].vaddr) {
				fn(ctx, &found);
				break;
			}
			if (calls[mid].vaddr + 1 < type[i].vaddr)
				low = mid + 1;
			else
				high = mid;
		}
}

/* Calls of one image. A cell says which files it has, and another reads their debug info. */
static int look_at(struct dict *d, const struct symbolize_opts *opts, const struct call *calls,
		   uint32_t n, call_type_fn fn, void *ctx)
{
	_cleanup_(dwarf_types_freep) struct dwarf_types *types = NULL;
	_cleanup_(elf_file_closep) struct elf_file *elf = NULL, *debug = NULL, *alt = NULL;
	_cleanup_(image_files_close) struct image_files files = { -1, -1, -1 };
	_cleanup_(freep) struct result_moves *moves = calloc(n, sizeof(*moves));
	int r = 0;

	if (!moves)
		return -ENOMEM;
	if (image_files_find(opts, d, calls[0].module, &files) < 0 ||
	    elf_file_open(files.image, "", &elf, NULL) < 0)
		return 0;
	if (files.debug >= 0)
		elf_file_open(files.debug, "", &debug, NULL);
	if (files.alt >= 0)
		elf_file_open(files.alt, "", &alt, NULL);
	for (uint32_t i = 0; i < n; i++)
		read_moves(elf, calls[i].vaddr + 1, &moves[i]);
	r = dwarf_types_read(debug ? debug : elf, alt, moves, n, MS_MAX, &types, NULL);
	if (r == 0)
		hand_on(types, calls, n, fn, ctx);
	return r == -ENOMEM ? r : 0;
}

int call_types_find(struct dict *d, const struct symbolize_opts *opts, const location_id *calls,
		    uint32_t n, call_type_fn fn, void *ctx)
{
	_cleanup_(freep) struct call *rows = calloc(n + 1ul, sizeof(*rows));
	int r = rows ? 0 : -ENOMEM;
	uint32_t n_rows = 0;

	for (uint32_t i = 0; rows && i < n; i++) {
		const struct location *loc = dict_location_get(d, calls[i]);

		if (dict_module_get(d, loc->module)->kind == MODULE_ELF)
			rows[n_rows++] = (struct call){ loc->vaddr, loc->module, calls[i] };
	}
	if (n_rows)
		qsort(rows, n_rows, sizeof(*rows), compare);
	for (uint32_t from = 0, to; r == 0 && from < n_rows; from = to) {
		for (to = from; to < n_rows && rows[to].module.ix == rows[from].module.ix; to++)
			;
		r = look_at(d, opts, &rows[from], to - from, fn, ctx);
	}
	return r;
}
