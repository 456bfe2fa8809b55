/*
 * Perl in an image: by what it exports for its extensions, in a program as in libperl. Stripping leaves that.
 */
#include "lang/perl.h"

#include "lang/image.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

const char *const perl_symbols[PERL_N_SYMBOLS] = {
	[PERL_RUNOPS] = "Perl_runops_standard",
	[PERL_RUNOPS_DEBUG] = "Perl_runops_debug",
	[PERL_RUN] = "perl_run",
	[PERL_ENTERSUB] = "Perl_pp_entersub",
	[PERL_ENTERTRY] = "Perl_pp_entertry",
	[PERL_ENTEREVAL] = "Perl_pp_entereval",
	[PERL_OPS] = "PL_ppaddr",
	[PERL_THREAD_KEY] = "PL_thr_key",
	[PERL_INTERPRETER] = "PL_curinterp",
	[PERL_OP] = "PL_op",
	[PERL_CURCOP] = "PL_curcop",
	[PERL_STACKINFO] = "PL_curstackinfo",
	[PERL_REVISION] = "PL_revision",
	[PERL_VERSION] = "PL_version",
	[PERL_SUBVERSION] = "PL_subversion",
};

static bool read_byte(struct elf_file *elf, uint64_t vaddr, uint8_t *ret_byte)
{
	return vaddr && elf_file_read_vaddr(elf, vaddr, ret_byte, 1);
}

/* Functions of ops are exported up to 5.36. Later the table of all has them, in which each has its number. 0: not known. */
static uint64_t function_of(struct elf_file *elf, const struct elf_export *syms,
			    enum perl_symbol which, uint32_t version)
{
	static const uint16_t numbers[][3] = { { 184, 347, 345 },
					       { 187, 350, 348 } }; /* opnames.h */
	uint32_t minor = version >> 8 & 0xff;

	if (syms[which].vaddr || !syms[PERL_OPS].vaddr || minor > 40)
		return syms[which].vaddr;
	return perl_pointer_at(elf, syms[PERL_OPS].vaddr +
					    8 * numbers[minor >= 38][which - PERL_ENTERSUB]);
}

int perl_image_read(struct elf_file *elf, const struct elf_export syms[PERL_N_SYMBOLS],
		    struct lang_image *image, struct err *e)
{
	struct perl_image perl = {
		.thread_key = syms[PERL_THREAD_KEY].vaddr,
		.interpreter = syms[PERL_INTERPRETER].vaddr,
		.op = syms[PERL_OP].vaddr,
		.curcop = syms[PERL_CURCOP].vaddr,
		.stackinfo = syms[PERL_STACKINFO].vaddr,
	};
	uint64_t entertry, entereval;
	uint8_t part[3];
	int r;

	if (!syms[PERL_RUNOPS].vaddr || !elf_file_is64(elf))
		return -ENOENT;
	for (int i = 0; i < 3; i++) {
		if (!read_byte(elf, syms[PERL_REVISION + i].vaddr, &part[i]))
			return err_set(e, -EOPNOTSUPP, "%s: has Perl, but its version is not known",
				       elf_file_name(elf));
		perl.version = perl.version << 8 | part[i];
	}
	r = lang_ranges(elf, &syms[PERL_RUNOPS], image, e);
	if (r < 0)
		return r;
	lang_range_add(&syms[PERL_RUNOPS_DEBUG], image);
	perl_main_find(elf, &syms[PERL_RUN], &perl.main);
	perl.entersub = function_of(elf, syms, PERL_ENTERSUB, perl.version);
	entertry = function_of(elf, syms, PERL_ENTERTRY, perl.version);
	entereval = function_of(elf, syms, PERL_ENTEREVAL, perl.version);
	perl_catch_find(elf, entertry, entereval, &perl.catch);
	image->perl = perl;
	return 0;
}
