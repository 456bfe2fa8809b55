#include "proc/variable.h"

#include "base/cleanup.h"
#include "elf/demangle.h"
#include "elf/elf_objects.h"

#include <stdio.h>
#include <string.h>

#define MAPPINGS_MAX 1024

/*
 * The mapping of code nearest below an address: variables of an image are mapped behind its code, and before the next
 * image. NULL: there is none.
 */
static const struct proc_mapping *image_below(const struct proc_mapping *maps, uint32_t n,
					      uint64_t addr)
{
	const struct proc_mapping *found = NULL;

	for (uint32_t i = 0; i < n && maps[i].addr <= addr; i++)
		if (maps[i].kind == MODULE_ELF && maps[i].readable)
			found = &maps[i];
	return found;
}

static void write_name(const char *symbol, uint64_t off, char *name, size_t cap)
{
	char plain[DEMANGLE_OUT_MAX];

	if (!demangle(symbol, strlen(symbol), plain))
		snprintf(plain, sizeof(plain), "%s", symbol);
	if (off)
		snprintf(name, cap, "%.200s+0x%llx", plain, (unsigned long long)off);
	else
		snprintf(name, cap, "%.200s", plain);
}

bool proc_variable_name(struct proc_table *procs, struct proc *proc, uint64_t addr, char *name,
			size_t cap, module_id *ret_image)
{
	_cleanup_(elf_file_closep) struct elf_file *elf = NULL;
	struct proc_mapping maps[MAPPINGS_MAX];
	const struct proc_mapping *image;
	_cleanup_(closep) int fd = -1;
	char symbol[DEMANGLE_IN_MAX];
	uint64_t off;
	uint32_t n;

	n = proc ? proc_mappings(procs, proc, maps, MAPPINGS_MAX) : 0;
	image = image_below(maps, n < MAPPINGS_MAX ? n : MAPPINGS_MAX, addr);
	if (!image)
		return false;
	if (ret_image)
		*ret_image = image->module;
	fd = proc_table_open_module(procs, image->module, NULL);
	if (fd < 0 || elf_file_open(fd, "", &elf, NULL) < 0 ||
	    elf_object_at(elf, addr - image->bias, symbol, sizeof(symbol), &off) < 0)
		return false;
	write_name(symbol, off, name, cap);
	return true;
}
