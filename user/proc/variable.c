#include "proc/variable.h"

#include "base/cleanup.h"
#include "base/hash.h"
#include "elf/demangle.h"
#include "elf/elf_objects.h"

#include <stdio.h>
#include <stdlib.h>
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

/* Of an image that cannot be read there are none. */
struct image {
	module_id module;
	struct elf_variables *variables;
	UT_hash_handle hh;
};

struct variable_names {
	struct proc_table *procs;
	struct image *images;
	const struct image *last;
	const struct proc *of; /* whose mappings those are */
	uint32_t n, generation;
	struct proc_mapping maps[MAPPINGS_MAX];
};

struct variable_names *variable_names_new(struct proc_table *procs)
{
	struct variable_names *v = calloc(1, sizeof(*v));

	if (v)
		v->procs = procs;
	return v;
}

void variable_names_free(struct variable_names *v)
{
	if (!v)
		return;
	for (struct image *i = v->images; i; i = i->hh.next)
		elf_variables_free(i->variables);
	hash_free(v->images);
	free(v);
}

static struct elf_variables *read_image(const struct variable_names *v, module_id module)
{
	_cleanup_(elf_file_closep) struct elf_file *elf = NULL;
	_cleanup_(closep) int fd = proc_table_open_module(v->procs, module, NULL);
	struct elf_variables *variables = NULL;

	if (fd < 0 || elf_file_open(fd, "", &elf, NULL) < 0)
		return NULL;
	return elf_variables_new(elf, &variables) < 0 ? NULL : variables;
}

static const struct image *image_of(struct variable_names *v, module_id module)
{
	struct image *image;

	if (v->last && v->last->module.ix == module.ix)
		return v->last;
	HASH_FIND(hh, v->images, &module, sizeof(module), image);
	if (!image) {
		image = hash_new(v->images, module, &module);
		if (image)
			image->variables = read_image(v, module);
	}
	v->last = image;
	return image;
}

bool variable_name(struct variable_names *v, struct proc *proc, uint64_t addr, char *name,
		   size_t cap)
{
	const struct proc_mapping *map;
	const struct image *image;
	const char *symbol;
	uint64_t off;

	if (!proc)
		return false;
	if (v->of != proc || v->generation != proc_generation(proc)) {
		v->n = proc_mappings(v->procs, proc, v->maps, MAPPINGS_MAX);
		v->n = v->n < MAPPINGS_MAX ? v->n : MAPPINGS_MAX;
		v->of = proc;
		v->generation = proc_generation(proc);
	}
	map = image_below(v->maps, v->n, addr);
	image = map ? image_of(v, map->module) : NULL;
	if (!image || !image->variables ||
	    elf_variables_at(image->variables, addr - map->bias, &symbol, &off) < 0 ||
	    strlen(symbol) >= DEMANGLE_IN_MAX)
		return false;
	write_name(symbol, off, name, cap);
	return true;
}
