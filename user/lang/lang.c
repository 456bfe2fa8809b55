#include "lang/lang.h"

#include "abi.h"
#include "elf/elf_exports.h"
#include "lang/image.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	LIBC_GETSPECIFIC,
	LIBC_SELF,
	LIBC_N_SYMBOLS,
};

static const char *const libc_symbols[LIBC_N_SYMBOLS] = {
	[LIBC_GETSPECIFIC] = "pthread_getspecific",
	[LIBC_SELF] = "pthread_self",
};

struct lang_ops {
	const char *name;  /* as users say it in --lang */
	const char *title; /* as it is shown            */
	/* What is looked up in each image for it; one with the first has the language's runtime. */
	const char *const *symbols;
	uint32_t n_symbols;
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
	[MS_LANG_PYTHON] = { "python", "Python", python_symbols, PY_N_SYMBOLS, python_image_read,
			     python_find, python_decode, NULL },
	[MS_LANG_HOTSPOT] = { "java", "Java", hotspot_symbols, HS_N_SYMBOLS, hotspot_image_read,
			      hotspot_find, NULL, hotspot_decode },
	[MS_LANG_V8] = { "javascript", "JavaScript", v8_symbols, V8_N_SYMBOLS, v8_image_read,
			 v8_find, NULL, v8_decode },
	[MS_LANG_GHC] = { "ghc", "Haskell", NULL, 0, ghc_image_read, ghc_find, NULL, NULL },
	[MS_LANG_PHP] = { "php", "PHP", php_symbols, PHP_N_SYMBOLS, php_image_read, php_find,
			  php_decode, NULL },
	[MS_LANG_PERL] = { "perl", "Perl", perl_symbols, PERL_N_SYMBOLS, perl_image_read, perl_find,
			   perl_decode, NULL },
	[MS_LANG_RUBY] = { "ruby", "Ruby", ruby_symbols, RB_N_SYMBOLS, ruby_image_read, ruby_find,
			   ruby_decode, NULL },
};

enum { SYMBOLS_MAX = 64 };

/* All that is looked up: the C library's, then of each language. */
struct symbols {
	const char *names[SYMBOLS_MAX];
	struct elf_export found[SYMBOLS_MAX];
	uint32_t n, first[MS_N_LANGS];
};

static void list_symbols(struct symbols *s)
{
	memcpy(s->names, libc_symbols, sizeof(libc_symbols));
	s->n = LIBC_N_SYMBOLS;
	for (int i = 0; i < MS_N_LANGS; i++) {
		s->first[i] = s->n;
		assert(s->n + langs[i].n_symbols <= SYMBOLS_MAX);
		for (uint32_t k = 0; k < langs[i].n_symbols; k++)
			s->names[s->n++] = langs[i].symbols[k];
	}
}

static bool has_any(const struct symbols *s)
{
	bool any = s->found[LIBC_GETSPECIFIC].vaddr;

	for (int i = 0; i < MS_N_LANGS; i++)
		any |= langs[i].n_symbols && s->found[s->first[i]].vaddr;
	return any;
}

/* Exported, as a rule. One that is missing may be in a program's table of symbols. */
static int find_symbols(struct elf_file *elf, struct symbols *s, struct err *e)
{
	const struct elf_section *interp;
	int r;

	list_symbols(s);
	for (uint32_t i = 0; i < s->n; i++) {
		r = elf_export_find(elf, s->names[i], &s->found[i], e);
		if (r < 0 && r != -ENOENT)
			return r;
	}
	/* Linked in statically. Libraries export what is in them. */
	if (has_any(s) || (elf_file_find_section(elf, ".interp", &interp, NULL) < 0 &&
			   elf_file_find_section(elf, ".dynsym", &interp, NULL) == 0))
		return 0;
	r = elf_symtab_find(elf, s->names, s->n, s->found, e);
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
	struct symbols s = { 0 };
	int r;

	r = find_symbols(elf, &s, e);
	if (r < 0)
		return r;
	image = calloc(1, sizeof(*image));
	if (!image)
		return err_set(e, -ENOMEM, "%s: out of memory for a language's runtime",
			       elf_file_name(elf));
	snprintf(image->name, sizeof(image->name), "%s", elf_file_name(elf));
	r = read_libc(elf, s.found, image, e);
	if (r < 0 && r != -ENOENT)
		return r;
	for (int i = 0; i < MS_N_LANGS && !image->lang; i++) {
		if (!langs[i].read)
			continue;
		r = langs[i].read(elf, &s.found[s.first[i]], image, e);
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

const char *lang_title(enum ms_lang lang)
{
	return lang < MS_N_LANGS && langs[lang].title ? langs[lang].title : "language";
}

const char *lang_names(void)
{
	static char names[128];
	size_t n = 0;

	for (int i = 0; i < MS_N_LANGS; i++)
		if (langs[i].name)
			n += (size_t)snprintf(names + n, sizeof(names) - n, "%s%s", n ? ", " : "",
					      langs[i].name);
	return names;
}

bool lang_is_compiled(enum ms_lang lang)
{
	return lang < MS_N_LANGS && langs[lang].find && !langs[lang].decode &&
	       !langs[lang].decode_all;
}

bool lang_maps_twice(enum ms_lang lang)
{
	return lang == MS_LANG_V8;
}

bool lang_image_is_libc(const struct lang_image *image)
{
	return image->libc;
}

bool lang_image_executes(const struct lang_image *image, uint64_t vaddr)
{
	for (uint32_t i = 0; i < image->n_ranges; i++)
		if (vaddr >= image->range[i].start && vaddr < image->range[i].end)
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

uint64_t lang_function_key(const uint64_t words[2], uint32_t *ret_line)
{
	if ((words[1] >> MS_LANG_SHIFT & 0xf) != MS_LANG_PHP || !(words[0] & MS_FRAME_ADDR_MASK))
		return 0;
	*ret_line = (uint32_t)words[1] & MS_PHP_LINE;
	return words[1] & ~(uint64_t)MS_PHP_LINE;
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
	if (r == LANG_DECODED) {
		ret_frames->n = 1;
		ret_frames->frame[0].stub =
			false; /* which only decode_all() knows: others leave it unset */
	}
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
