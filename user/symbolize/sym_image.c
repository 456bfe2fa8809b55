#include "symbolize/sym_image.h"

#include <errno.h>
#include <string.h>

void sym_image_init(struct sym_image *img, const struct symbolize_opts *opts, const struct dict *d,
		    module_id m)
{
	*img = (struct sym_image){ .opts = opts, .d = d, .module = m, .fd = -1 };
}

void sym_image_fini(struct sym_image *img)
{
	debug_file_free(img->debug);
	debug_file_free(img->alt);
	elf_file_close(img->elf);
	closep(&img->fd);
}

const char *sym_image_why(int code)
{
	switch (code) {
	case -ENOENT:
		return "file is gone";
	case -ESTALE:
		return "file changed";
	case -EACCES:
	case -EPERM:
		return "not permitted to read the file";
	case -ENOEXEC:
		return "not an ELF file";
	case -EBADMSG:
	case -ENODATA:
		return "file is damaged";
	case -EFBIG:
		return "symbol table is too large";
	case -EOPNOTSUPP:
		return "symbol table is compressed";
	case -ENOMEM:
		return "out of memory";
	case -ETIMEDOUT:
		return "file system does not answer";
	case -EMFILE:
	case -ENFILE:
		return "too many open files";
	default:
		return "file cannot be read";
	}
}

static int open_elf(struct sym_image *img)
{
	const struct module *mod = dict_module_get(img->d, img->module);
	const char *build_id = dict_str(img->d, mod->build_id);
	int r;

	r = img->fd = img->opts->open_module
			      ? img->opts->open_module(img->opts->ctx, img->module, NULL)
			      : -ENOENT;
	if (r >= 0)
		r = elf_file_open(img->fd, dict_str(img->d, mod->path), &img->elf, NULL);
	/* Whoever opened it by path may have found its successor. */
	if (r >= 0 && build_id[0] && strcmp(build_id, elf_file_build_id(img->elf)) != 0)
		r = -ESTALE;
	return r < 0 ? r : 1;
}

int sym_image_elf(struct sym_image *img, struct elf_file **ret_elf, const char **ret_why)
{
	if (!img->state)
		img->state = open_elf(img);
	if (img->state < 0) {
		*ret_why = sym_image_why(img->state);
		return img->state;
	}
	*ret_elf = img->elf;
	return 0;
}

static int open_path(void *ctx, const char *path, bool host)
{
	const struct sym_image *img = ctx;
	const struct symbolize_opts *o = img->opts;

	return o->open_debug ? o->open_debug(o->ctx, img->module, path, host) : -ENOENT;
}

static void ask_servers(struct sym_image *img, struct elf_file *elf)
{
	const char *build_id = elf_file_build_id(elf);
	int fd = -ENOENT;

	if (build_id[0] && img->ask_server)
		fd = img->ask_server(img, build_id);
	else if (build_id[0] && img->servers)
		fd = debuginfod_open(img->servers, build_id);
	if (fd >= 0)
		debug_file_take(fd, sym_image_path(img), elf, &img->debug);
}

int sym_image_debug(struct sym_image *img, struct elf_file **ret_elf, const char **ret_why)
{
	struct elf_file *elf;
	int r = sym_image_elf(img, &elf, ret_why);

	if (r < 0)
		return r;
	if (!img->sought_debug) {
		img->sought_debug = true;
		if (debug_link_find(elf, open_path, img, &img->debug) < 0)
			ask_servers(img, elf);
	}
	if (!img->debug) {
		*ret_why = "no debug file";
		return -ENOENT;
	}
	*ret_elf = img->debug->elf;
	return 0;
}

int sym_image_alt(struct sym_image *img, struct elf_file *elf, struct elf_file **ret_alt)
{
	const char *path = img->debug ? img->debug->path : sym_image_path(img);
	int r = 0;

	if (!img->alt)
		r = debug_link_alt(elf, path, open_path, img, &img->alt);
	if (r == 0)
		*ret_alt = img->alt->elf;
	return r;
}
