/* An image of a hostile file: header, segments, sections, build ID, symbols, demangled names. */
#include "elf/demangle.h"
#include "elf/elf_exports.h"
#include "elf/elf_file.h"
#include "elf/elf_objects.h"
#include "elf/elf_plt.h"
#include "elf/elf_syms.h"
#include "elf/elf_tls.h"
#include "symbolize/probe_functions.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void walk_sections(struct elf_file *elf)
{
	const struct elf_section *secs;
	uint32_t n;

	if (elf_file_sections(elf, &secs, &n, NULL) < 0)
		return;
	for (uint32_t i = 0; i < n && i < 64; i++) {
		_cleanup_(freep) uint8_t *bytes = NULL;

		if (elf_file_read_section(elf, &secs[i], &bytes, NULL) == 0 &&
		    bytes[secs[i].size] != 0)
			abort();
	}
}

/* What the tables say about each symbol must agree with itself. */
static bool any_name(const char *name)
{
	return *name != 'x';
}

/* Around a few addresses, and of some names. */
static void walk_some_symbols(struct elf_file *elf)
{
	static const uint64_t vaddrs[] = { 0, 0x1000, 0x1040, 0x401000, UINT64_MAX };
	_cleanup_(elf_syms_freep) struct elf_syms *at = NULL, *some = NULL;
	struct elf_sym sym;

	if (elf_syms_load_at(elf, vaddrs, 5, &at, NULL) == 0)
		for (int i = 0; i < 5; i++)
			elf_syms_find(at, vaddrs[i], &sym);
	elf_syms_load_some(elf, any_name, &some, NULL);
}

static void walk_symbols(struct elf_syms *syms)
{
	char out[DEMANGLE_OUT_MAX];

	for (uint32_t i = 0; i < elf_syms_count(syms); i++) {
		struct elf_sym sym = elf_syms_at(syms, i), at;

		if (!sym.name_len || !sym.size || sym.vaddr + sym.size < sym.vaddr)
			abort();
		if (elf_syms_find(syms, sym.vaddr, &at) < 0 || at.vaddr > sym.vaddr)
			abort();
		if (i < 256)
			demangle(sym.name, sym.name_len, out);
	}
}

/* Single names: exported, thread-local, in .symtab; and all variables by address. */
static void look_up(struct elf_file *elf)
{
	static const char *const names[] = { "main", "f1", "otel_thread_ctx_v1" };
	_cleanup_(elf_variables_freep) struct elf_variables *variables = NULL;
	_cleanup_(strbuf_free) struct strbuf b = { 0 };
	struct elf_export syms[3], sym;
	struct elf_tls tls;
	const char *name;
	uint64_t off;

	for (int i = 0; i < 3; i++) {
		if (elf_export_find(elf, names[i], &sym, NULL) == 0 && !sym.vaddr)
			abort();
		elf_export_find_tls(elf, names[i], &sym, NULL);
		for (int is_main = 0; is_main < 2; is_main++)
			if (elf_tls_find(elf, names[i], is_main, &tls, NULL) == 0 &&
			    tls.access > ELF_TLS_DESC)
				abort();
	}
	elf_symtab_find(elf, names, 3, syms, NULL);
	if (elf_variables_put(elf, &b) < 0)
		return;
	if (elf_variables_take(bytes_of(b.s, b.len), &variables) < 0)
		abort();
	for (uint64_t vaddr = 0; vaddr < 0x5000; vaddr += 0x40)
		elf_variables_at(variables, vaddr, &name, &off);
}

/* Functions that probes are in. */
static void look_for_probes(struct elf_file *elf)
{
	struct probe_function found[PROBE_FUNCTIONS_MAX];
	_cleanup_(cfi_freep) struct cfi *cfi = NULL;
	uint32_t n;

	if (cfi_open(elf, CFI_EH_FRAME, &cfi, NULL) < 0)
		return;
	n = probe_functions_find(elf, cfi, found);
	if (n > PROBE_FUNCTIONS_MAX)
		abort();
	for (uint32_t i = 0; i < n; i++)
		if (found[i].fde >= cfi_n_fdes(cfi) || !*found[i].name)
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_(elf_file_closep) struct elf_file *elf = NULL;
	_cleanup_(elf_syms_freep) struct elf_syms *syms = NULL;
	_cleanup_(elf_plt_freep) struct elf_plt *plt = NULL;
	const struct elf_segment *segs;
	struct elf_sym found[4];
	struct elf_object object;
	uint64_t vaddr;
	uint32_t n;

	if (elf_file_open_memory(data, size, "input", &elf, NULL) < 0)
		return 0;
	segs = elf_file_segments(elf, &n);
	elf_segments_off_to_vaddr(segs, n, size / 2, &vaddr);
	walk_sections(elf);
	if (elf_plt_load(elf, &plt, NULL) == 0 && elf_plt_find(plt, size) &&
	    !*elf_plt_find(plt, size))
		abort();
	elf_object_find(elf, (const char *[]){ "main", "rate", NULL }, &object);
	look_up(elf);
	look_for_probes(elf);
	walk_some_symbols(elf);
	if (elf_syms_load(elf, &syms, NULL) < 0)
		return 0;
	walk_symbols(syms);
	elf_syms_find_name(syms, "main", found, 4);
	return 0;
}
