#include "proc/variable.h"

#include "base/file_cell.h"
#include "base/hash.h"
#include "elf/elf_objects.h"

#include <stdio.h>
#include <stdlib.h>

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

static void write_name(const char *variable, uint64_t off, char *name, size_t cap)
{
	if (off)
		snprintf(name, cap, "%s+0x%llx", variable, (unsigned long long)off);
	else
		snprintf(name, cap, "%s", variable);
}

/* --- files, which are others' bytes: a cell reads each --- */

enum { SECONDS_MAX = 20, CPU_S = 15 };

static int read_variables(void *ctx, const struct file_in_cell *f, struct strbuf *answer)
{
	_cleanup_(elf_file_closep) struct elf_file *elf = NULL;
	int r = elf_file_open(f->fd, f->name, &elf, NULL);

	(void)ctx;
	return r < 0 ? r : elf_variables_put(elf, answer);
}

static void work(const struct cell_given *given)
{
	file_cell_work(given, read_variables, NULL);
}

static const struct cell_kind cell = {
	.name = "variables",
	.work = work,
	.data_bytes = 1 << 30,
	.cpu_s = CPU_S,
	.files = 8,
};
CELL_KIND(cell);

static struct elf_variables *variables_of(int fd)
{
	static struct cell_patience patience;
	static const struct file_cell c = { .kind = &cell,
					    .what = "its variables",
					    .answer_max = ELF_VARIABLES_BYTES_MAX,
					    .seconds = SECONDS_MAX,
					    .patience = &patience };
	_cleanup_(talk_fini) struct talk t = { .fds = { -1, -1, -1 } };
	struct elf_variables *variables = NULL;

	if (file_cell_ask(&c, fd, "", NULL, &t, NULL) == 0)
		elf_variables_take(talk_bytes(&t), &variables);
	return variables;
}

/* --- images --- */

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
	_cleanup_(closep) int fd = proc_table_open_module(v->procs, module, NULL);

	return fd < 0 ? NULL : variables_of(fd);
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
	const char *variable;
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
	    elf_variables_at(image->variables, addr - map->bias, &variable, &off) < 0)
		return false;
	write_name(variable, off, name, cap);
	return true;
}
