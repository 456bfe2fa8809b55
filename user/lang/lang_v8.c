/*
 * V8 in an image: node, or what embeds it, by the version and the constants that it exports.
 */
#include "lang/v8.h"

#include <elf.h>
#include <errno.h>
#include <stdio.h>

const char *const v8_symbols[V8_N_SYMBOLS] = {
	[V8_MAJOR] = "_ZN2v88internal7Version6major_E",
	[V8_MINOR] = "_ZN2v88internal7Version6minor_E",
	[V8_BUILD] = "_ZN2v88internal7Version6build_E",
	[V8_TAGGED] = "v8dbg_TaggedSize",
	[V8_SMI] = "v8dbg_SmiValueShift",
};

static bool read_number(struct elf_file *elf, const struct elf_export *sym, int32_t *ret_number)
{
	return sym->vaddr && elf_file_read_vaddr(elf, sym->vaddr, ret_number, sizeof(*ret_number));
}

int v8_image_read(struct elf_file *elf, const struct elf_export *syms, struct lang_image *image,
		  struct err *e)
{
	struct v8_image v8 = { 0 };
	int32_t major, minor, build, tagged = 8;
	int r;

	if (!elf_file_is64(elf) || elf_file_machine(elf) != EM_X86_64 ||
	    !read_number(elf, &syms[V8_MAJOR], &major) ||
	    !read_number(elf, &syms[V8_MINOR], &minor) ||
	    !read_number(elf, &syms[V8_BUILD], &build))
		return -ENOENT;
	if (major < 1 || major > 99 || minor < 0 || minor > 99 || build < 0 || build > 9999)
		return -ENOENT;
	v8.version = (uint32_t)major << 16 | (uint32_t)minor;
	v8.build = (uint32_t)build;
	/* Chromium's pointers are 4 bytes. */
	v8.is_opaque = (syms[V8_TAGGED].vaddr &&
			(!read_number(elf, &syms[V8_TAGGED], &tagged) || tagged != 8)) ||
		       !syms[V8_SMI].vaddr;
	r = v8.is_opaque ? 0 : v8_layout_read(elf, v8.version, &v8, e);
	if (r < 0)
		return r;
	image->v8 = v8;
	return 0;
}

int v8_find(const struct lang_mapped *runtime, const struct lang_mapped *libc,
	    const struct lang_memory *mem, struct lang_runtime *ret_runtime, struct err *e)
{
	const struct v8_image *v8 = &runtime->image->v8;
	struct lang_runtime rt = { .lang = MS_LANG_V8, .version = v8->version << 8 };

	(void)libc;
	(void)mem;
	snprintf(rt.name, sizeof(rt.name), "V8 %u.%u.%u", v8->version >> 16 & 0xff,
		 v8->version & 0xff, v8->build % 10000);
	if (v8->is_opaque)
		return err_set(
			e, -EOPNOTSUPP,
			"%s: has %s: its pointers are compressed, or it does not describe its objects",
			runtime->image->name, rt.name);
	rt.untested = v8->untested;
	rt.v8 = v8->rt;
	rt.row.lang = MS_LANG_V8;
	rt.row.v8 = (struct ms_v8){
		.map_type = v8->rt.map_type,
		.function_first = v8->rt.type_function,
		.function_last = v8->rt.type_function_last,
		.bytecode_type = v8->rt.type_bytecodes,
		.function_shared = v8->rt.function_shared,
		.shared_numbers = v8->rt.shared_numbers,
		.mark_regexp = (uint16_t)(2 * v8->rt.frame_regexp),
		.mark_exit = (uint16_t)(2 * v8->rt.frame_exit),
	};
	*ret_runtime = rt;
	return 0;
}
