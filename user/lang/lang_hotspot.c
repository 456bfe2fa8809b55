/*
 * HotSpot in an image: by the tables that it describes itself with, which every libjvm exports.
 */
#include "lang/hotspot.h"

#include <elf.h>
#include <errno.h>

const char *const hotspot_symbols[HS_N_SYMBOLS] = {
	[HS_STRUCTS] = "gHotSpotVMStructs",
	[HS_STRUCT_TYPE] = "gHotSpotVMStructEntryTypeNameOffset",
	[HS_STRUCT_FIELD] = "gHotSpotVMStructEntryFieldNameOffset",
	[HS_STRUCT_TYPE_STRING] = "gHotSpotVMStructEntryTypeStringOffset",
	[HS_STRUCT_STATIC] = "gHotSpotVMStructEntryIsStaticOffset",
	[HS_STRUCT_OFFSET] = "gHotSpotVMStructEntryOffsetOffset",
	[HS_STRUCT_ADDRESS] = "gHotSpotVMStructEntryAddressOffset",
	[HS_STRUCT_STRIDE] = "gHotSpotVMStructEntryArrayStride",
	[HS_TYPES] = "gHotSpotVMTypes",
	[HS_TYPE_NAME] = "gHotSpotVMTypeEntryTypeNameOffset",
	[HS_TYPE_SIZE] = "gHotSpotVMTypeEntrySizeOffset",
	[HS_TYPE_STRIDE] = "gHotSpotVMTypeEntryArrayStride",
};

int hotspot_image_read(struct elf_file *elf, const struct elf_export syms[HS_N_SYMBOLS],
		       struct lang_image *image, struct err *e)
{
	struct hotspot_image hs;

	(void)e;
	if (!elf_file_is64(elf))
		return -ENOENT;
	for (int i = 0; i < HS_N_SYMBOLS; i++) {
		if (!syms[i].vaddr)
			return -ENOENT;
		hs.symbol[i] = syms[i].vaddr;
	}
	image->hotspot = hs;
	return 0;
}
