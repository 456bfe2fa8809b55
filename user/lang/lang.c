#include "lang/lang.h"

#include "elf/elf_exports.h"
#include "lang/image.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What a C library has, then what languages have. */
enum {
	LIBC_GETSPECIFIC,
	LIBC_SELF,
	LIBC_N_SYMBOLS,
	PYTHON_SYMBOLS = LIBC_N_SYMBOLS,
	HOTSPOT_SYMBOLS = PYTHON_SYMBOLS + PY_N_SYMBOLS,
	N_SYMBOLS = HOTSPOT_SYMBOLS + HS_N_SYMBOLS,
};

struct lang_ops {
	const char *name;
	uint32_t symbols; /* of `syms`: its own begin here */
	/* -ENOENT: there is no runtime of this language in the image. */
	int (*read)(struct elf_file *elf, const struct elf_export *syms, struct lang_image *image,
		    struct err *e);
	int (*find)(const struct lang_mapped *runtime, const struct lang_mapped *libc,
		    const struct lang_memory *mem, struct lang_runtime *ret_runtime, struct err *e);
	enum lang_decoded (*decode)(const struct lang_runtime *runtime,
				    const struct lang_memory *mem, const uint64_t words[2],
				    struct lang_frame *ret_frame);
	/* Where functions are inlined, instead. */
	enum lang_decoded (*decode_all)(const struct lang_runtime *runtime,
					const struct lang_memory *mem, const uint64_t words[2],
					struct lang_frames *ret_frames);
};

static const struct lang_ops langs[MS_N_LANGS] = {
	[MS_LANG_PYTHON] = { "python", PYTHON_SYMBOLS, python_image_read, python_find,
			     python_decode, NULL },
	[MS_LANG_HOTSPOT] = { "java", HOTSPOT_SYMBOLS, hotspot_image_read, hotspot_find, NULL,
			      hotspot_decode },
	[MS_LANG_GHC] = { "ghc", LIBC_N_SYMBOLS, ghc_image_read, ghc_find, NULL, NULL },
};

/* Exported, as a rule. One that is missing may be in a program's table of symbols. */
static int find_symbols(struct elf_file *elf, const char *const names[N_SYMBOLS],
			struct elf_export syms[N_SYMBOLS], struct err *e)
{
	const struct elf_section *interp;
	bool libc, python, hotspot;
	int r;

	for (int i = 0; i < N_SYMBOLS; i++) {
		r = elf_export_find(elf, names[i], &syms[i], e);
		if (r < 0 && r != -ENOENT)
			return r;
	}
	libc = syms[LIBC_GETSPECIFIC].vaddr;
	python = syms[PYTHON_SYMBOLS + PY_EVAL].vaddr;
	hotspot = syms[HOTSPOT_SYMBOLS + HS_STRUCTS].vaddr;
	/* Linked in statically. Libraries export what is in them. */
	if (libc || python || hotspot ||
	    (elf_file_find_section(elf, ".interp", &interp, NULL) < 0 &&
	     elf_file_find_section(elf, ".dynsym", &interp, NULL) == 0))
		return 0;
	r = elf_symtab_find(elf, names, N_SYMBOLS, syms, e);
	return r == -ENOENT ? 0 : r;
}

static bool is_function(const struct elf_export *sym)
{
	return sym->vaddr != 0;
}

static int read_libc(struct elf_file *elf, const struct elf_export syms[LIBC_N_SYMBOLS],
		     struct lang_image *image, struct err *e)
{
	const struct elf_export *get = &syms[LIBC_GETSPECIFIC], *self = &syms[LIBC_SELF];
	int r;

	if (!is_function(get))
		return -ENOENT;
	r = accessor_load(elf, get->vaddr, get->size, &image->getspecific, e);
	if (r == 0 && is_function(self))
		r = accessor_load(elf, self->vaddr, self->size, &image->self, e);
	image->libc = r == 0;
	return r;
}

int lang_image_read(struct elf_file *elf, struct lang_image **ret_image, struct err *e)
{
	_cleanup_(lang_image_freep) struct lang_image *image = NULL;
	struct elf_export syms[N_SYMBOLS] = { 0 };
	const char *names[N_SYMBOLS];
	int r;

	names[LIBC_GETSPECIFIC] = "pthread_getspecific";
	names[LIBC_SELF] = "pthread_self";
	memcpy(&names[PYTHON_SYMBOLS], python_symbols, sizeof(python_symbols));
	memcpy(&names[HOTSPOT_SYMBOLS], hotspot_symbols, sizeof(hotspot_symbols));
	r = find_symbols(elf, names, syms, e);
	if (r < 0)
		return r;
	image = calloc(1, sizeof(*image));
	if (!image)
		return err_set(e, -ENOMEM, "%s: out of memory for a language's runtime",
			       elf_file_name(elf));
	snprintf(image->name, sizeof(image->name), "%s", elf_file_name(elf));
	r = read_libc(elf, syms, image, e);
	if (r < 0 && r != -ENOENT)
		return r;
	for (int i = 0; i < MS_N_LANGS && !image->lang; i++) {
		if (!langs[i].read)
			continue;
		r = langs[i].read(elf, &syms[langs[i].symbols], image, e);
		if (r == 0)
			image->lang = (enum ms_lang)i;
		else if (r != -ENOENT)
			return r;
	}
	if (!image->lang && !image->libc)
		return -ENOENT;
	*ret_image = TAKE_PTR(image);
	return 0;
}

void lang_image_free(struct lang_image *image)
{
	free(image);
}

enum ms_lang lang_image_lang(const struct lang_image *image)
{
	return image->lang;
}

enum ms_lang lang_named(const char *name, size_t len)
{
	for (int i = 0; i < MS_N_LANGS; i++)
		if (langs[i].name && strlen(langs[i].name) == len &&
		    !strncmp(langs[i].name, name, len))
			return (enum ms_lang)i;
	return MS_LANG_NONE;
}

bool lang_is_compiled(enum ms_lang lang)
{
	return lang < MS_N_LANGS && langs[lang].find && !langs[lang].decode &&
	       !langs[lang].decode_all;
}

bool lang_image_is_libc(const struct lang_image *image)
{
	return image->libc;
}

bool lang_image_executes(const struct lang_image *image, uint64_t vaddr)
{
	for (uint32_t i = 0; i < image->python.n_ranges; i++)
		if (vaddr >= image->python.range[i].start && vaddr < image->python.range[i].end)
			return true;
	return false;
}

int lang_runtime_find(const struct lang_mapped *runtime, const struct lang_mapped *libc,
		      const struct lang_memory *mem, struct lang_runtime *ret_runtime,
		      struct err *e)
{
	enum ms_lang lang = runtime->image->lang;

	if (lang >= MS_N_LANGS || !langs[lang].find)
		return err_set(e, -EOPNOTSUPP, "%s: has no runtime of a language",
			       runtime->image->name);
	return langs[lang].find(runtime, libc, mem, ret_runtime, e);
}

enum lang_decoded lang_decode_all(const struct lang_runtime *runtime, const struct lang_memory *mem,
				  const uint64_t words[2], struct lang_frames *ret_frames)
{
	const struct lang_ops *ops = runtime->lang < MS_N_LANGS ? &langs[runtime->lang] : NULL;
	enum lang_decoded r = LANG_DAMAGED;

	/* The words may be of another language than the process has now. */
	if (!ops || (words[1] >> MS_LANG_SHIFT & 0xf) != runtime->lang)
		return LANG_DAMAGED;
	if (ops->decode_all)
		return ops->decode_all(runtime, mem, words, ret_frames);
	if (ops->decode)
		r = ops->decode(runtime, mem, words, &ret_frames->frame[0]);
	if (r == LANG_DECODED)
		ret_frames->n = 1;
	return r;
}

enum lang_decoded lang_decode(const struct lang_runtime *runtime, const struct lang_memory *mem,
			      const uint64_t words[2], struct lang_frame *ret_frame)
{
	static struct lang_frames all;
	enum lang_decoded r = lang_decode_all(runtime, mem, words, &all);

	if (r == LANG_DECODED)
		*ret_frame = all.frame[0];
	return r;
}
