/*
 * CPython in an image: by what it exports, or has in its table of symbols. A shared libpython, an interpreter
 * that is linked statically, and a program that embeds one look the same.
 */
#include "lang/python.h"

#include "lang/image.h"

#include <ctype.h>
#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

const char *const python_symbols[PY_N_SYMBOLS] = {
	[PY_EVAL] = "_PyEval_EvalFrameDefault",
	[PY_TSTATE] = "PyGILState_GetThisThreadState",
	[PY_RUNTIME] = "_PyRuntime",
	[PY_VERSION] = "Py_Version",
	[PY_GET_VERSION] = "Py_GetVersion",
	[PY_CODE_TYPE] = "PyCode_Type",
};

/* --- its version --- */

/* "3.10.13", "3.9.0rc1", "3.8.2+": 0x030a0d … 0: that is none. */
uint32_t python_version_of(const char *text)
{
	uint32_t part[3] = { 0 };
	const char *p = text;

	for (int i = 0; i < 3; i++) {
		int digits = 0;

		for (; isdigit((unsigned char)*p) && digits < 3; p++, digits++)
			part[i] = part[i] * 10 + (uint32_t)(*p - '0');
		if (!digits || (i < 2 && *p++ != '.'))
			return 0;
	}
	if (part[0] != 3 || part[1] > 99 || part[2] > 99 || (*p && !strchr("abrc+", *p)))
		return 0;
	return part[0] << 16 | part[1] << 8 | part[2];
}

struct version_search {
	struct elf_file *elf;
	uint32_t version;
	bool many;
};

/* Py_GetVersion() puts it into a text, of which this may be the first part. */
static void take_version(void *ctx, const struct place *value)
{
	struct version_search *s = ctx;
	char text[16] = "";
	uint32_t version;

	if ((value->base != PLACE_IMAGE && value->base != PLACE_NUMBER) || value->reads ||
	    !elf_file_read_vaddr(s->elf, (uint64_t)value->off[0], text, sizeof(text) - 1))
		return;
	version = python_version_of(text);
	if (!version)
		return;
	s->many |= s->version && s->version != version;
	s->version = version;
}

static uint32_t version_in_code(struct elf_file *elf, const struct elf_export *function)
{
	struct version_search s = { .elf = elf };
	struct accessor code;

	if (!function->vaddr ||
	    accessor_load(elf, function->vaddr, function->size, &code, NULL) < 0)
		return 0;
	accessor_follow(&code, 0, &(struct accessor_fn){ .makes = take_version, .ctx = &s });
	return s.many ? 0 : s.version;
}

static uint32_t read_version(struct elf_file *elf, const struct elf_export syms[PY_N_SYMBOLS])
{
	uint64_t hex = 0;

	if (syms[PY_VERSION].vaddr && syms[PY_VERSION].type == STT_OBJECT &&
	    elf_file_read_vaddr(elf, syms[PY_VERSION].vaddr, &hex, sizeof(hex)) && hex >> 24 == 3)
		return (uint32_t)(hex >> 8);
	return version_in_code(elf, &syms[PY_GET_VERSION]);
}

int python_image_read(struct elf_file *elf, const struct elf_export syms[PY_N_SYMBOLS],
		      struct lang_image *image, struct err *e)
{
	struct python_image py = { 0 };
	int r;

	if (!syms[PY_EVAL].vaddr || !syms[PY_TSTATE].vaddr || !elf_file_is64(elf))
		return -ENOENT;
	py.version = read_version(elf, syms);
	py.runtime = syms[PY_RUNTIME].vaddr;
	py.runtime_size = syms[PY_RUNTIME].size;
	py.code_type = syms[PY_CODE_TYPE].vaddr;
	r = accessor_load(elf, syms[PY_TSTATE].vaddr, syms[PY_TSTATE].size, &py.tstate, e);
	if (r < 0)
		return r;
	r = lang_ranges(elf, &syms[PY_EVAL], image, e);
	if (r < 0)
		return r;
	image->python = py;
	return 0;
}
