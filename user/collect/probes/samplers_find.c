/* In cells alone: sampler_places.c asks. */
#include "collect/probes/samplers_find.h"
#include "collect/probes/allocators.h"
#include "elf/elf_objects.h"
#include "elf/elf_syms.h"
#include "elf/gopclntab.h"

#include <elf.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#define HOTSPOT_EXPORT "JVM_MonitorWait" /* libjvm exports it, whatever it was stripped of */

#if defined(__x86_64__)
#define MACHINE EM_X86_64
#else
#define MACHINE EM_AARCH64
#endif

/* `vaddrs`: of the allocation, of the free; in the file that is loaded, which `elf` is. */
static void take(struct elf_file *elf, const struct sampler *s,
		 const uint64_t vaddrs[SAMPLER_SITES], struct sampler_found *found)
{
	const struct elf_segment *segs;
	uint32_t n;

	found->n_sites = s->free || s->also ? 2 : 1;
	segs = elf_file_segments(elf, &n);
	for (uint32_t i = 0; i < found->n_sites; i++) {
		found->sites[i].vaddr = vaddrs[i];
		if (!elf_segments_vaddr_to_off(segs, n, vaddrs[i], &found->sites[i].off)) {
			found->why = sampler_whys[SAMPLER_WHY_NOT_LOADED];
			return;
		}
	}
	found->sampler = s;
}

/* --- Go --- */

static const struct sampler *go_version(const struct gopclntab *tab, uint32_t alloc)
{
	int args = gopclntab_args(tab, alloc);

	for (uint32_t i = 0; i < n_samplers; i++)
		if (samplers[i].go && samplers[i].args == args)
			return &samplers[i];
	return NULL;
}

/* The variable is where the linker turns it off: in who never reaches runtime.MemProfile. */
static bool asks_for_profiles(const struct gopclntab *tab)
{
	static const char *const names[] = { "runtime.MemProfile", "runtime.memProfileInternal",
					     "runtime.pprof_memProfileInternal" };
	uint32_t i;

	for (size_t n = 0; n < sizeof(names) / sizeof(*names); n++)
		if (gopclntab_find_name(tab, names[n], &i) == 0)
			return true;
	return false;
}

/* Where it begins to be, and how much of it there is then. */
struct go_frame {
	uint64_t at;
	int32_t delta;
};

static int frame_is_there(void *arg, uint64_t start, uint64_t end, int32_t delta)
{
	(void)end;
	if (!delta)
		return 0;
	*(struct go_frame *)arg = (struct go_frame){ start, delta };
	return 1;
}

/* The instruction in front of `vaddr` is push %rbp, which the kernel need not single-step. */
static bool is_pushed(struct elf_file *elf, uint64_t vaddr)
{
	const struct elf_segment *segs;
	uint64_t off;
	uint8_t byte;
	uint32_t n;

	segs = elf_file_segments(elf, &n);
	return elf_file_machine(elf) == EM_X86_64 &&
	       elf_segments_vaddr_to_off(segs, n, vaddr - 1, &off) &&
	       elf_file_read(elf, off, &byte, 1, NULL) == 0 && byte == 0x55;
}

/*
 * Where the function has its frame, and its arguments still where they came. Its beginning is
 * passed twice by a call that finds too little stack: that is made larger, and begins anew. From
 * Go 1.21 on the frame is begun by a push, where a probe costs least.
 */
static uint64_t go_place(struct elf_file *elf, const struct gopclntab *tab, uint32_t i)
{
	struct go_frame frame = { gopclntab_func(tab, i).start, 0 };

	gopclntab_rows(tab, i, frame_is_there, &frame);
	return frame.delta == 8 && is_pushed(elf, frame.at) ? frame.at - 1 : frame.at;
}

static void find_go(struct elf_file *elf, struct sampler_found *found)
{
	_cleanup_(gopclntab_freep) struct gopclntab *tab = NULL;
	struct elf_object rate;
	const struct sampler *s;
	uint32_t alloc, freed;

	if (gopclntab_open(elf, &tab, NULL) < 0 ||
	    gopclntab_find_name(tab, "runtime.mProf_Malloc", &alloc) < 0)
		return;
	found->kind = "Go's runtime";
	s = go_version(tab, alloc);
	if (!s) {
		found->why = gopclntab_args(tab, alloc) == -EOPNOTSUPP
				     ? sampler_whys[SAMPLER_WHY_GO_OLD]
				     : sampler_whys[SAMPLER_WHY_GO_UNKNOWN];
		return;
	}
	if (gopclntab_find_name(tab, s->free, &freed) < 0) {
		found->why = sampler_whys[SAMPLER_WHY_GO_SWEEPER];
		return;
	}
	found->rate = SAMPLER_GO_RATE;
	found->linked_off = !asks_for_profiles(tab);
	if (elf_object_find(elf, (const char *[]){ s->rate, NULL }, &rate) == 0 && rate.size == 8)
		found->rate_vaddr = rate.vaddr;
	take(elf, s, (const uint64_t[]){ go_place(elf, tab, alloc), go_place(elf, tab, freed) },
	     found);
}

/* --- functions of C --- */

/* A name of the table with one of the prefixes. */
static const char *with_prefix(const char *prefix, const char *name, char buf[NAME_MAX])
{
	snprintf(buf, NAME_MAX, "%s%s", prefix, name);
	return buf;
}

/* `symbol` ends with NUL or '@'. */
static bool is_name(const char *symbol, const char *name)
{
	size_t len = strlen(name);

	return strncmp(symbol, name, len) == 0 && (!symbol[len] || symbol[len] == '@');
}

static bool is_function_of_one(const char *symbol, const char *prefix)
{
	for (uint32_t i = 0; i < n_samplers; i++) {
		const struct sampler *s = &samplers[i];

		if (s->go || (!s->je && *prefix))
			continue;
		if ((is_name(symbol, s->alloc) || (s->free && is_name(symbol, s->free)) ||
		     (s->also && is_name(symbol, s->also)) ||
		     (s->with && is_name(symbol, s->with)) ||
		     (s->without && is_name(symbol, s->without))))
			return true;
	}
	return is_name(symbol, "mallctl") || is_name(symbol, HOTSPOT_EXPORT);
}

static bool is_of_interest(const char *symbol)
{
	for (const char *const *prefix = allocator_prefixes; *prefix; prefix++) {
		size_t len = strlen(*prefix);

		if (strncmp(symbol, *prefix, len) == 0 && is_function_of_one(symbol + len, *prefix))
			return true;
	}
	return false;
}

static bool has(struct elf_syms *syms, const char *prefix, const char *name)
{
	char buf[NAME_MAX];

	return elf_syms_find_name(syms, with_prefix(prefix, name, buf), NULL, 0) > 0;
}

/* A variable of the file that `names_of` has the symbols of; 0: none. */
static uint64_t variable(struct elf_file *names_of, const char *prefix, const char *name,
			 uint64_t size)
{
	struct elf_object o;
	char buf[NAME_MAX];

	if (elf_object_find(names_of, (const char *[]){ with_prefix(prefix, name, buf), NULL },
			    &o) < 0 ||
	    o.size != size)
		return 0;
	return o.vaddr;
}

static bool find_version(struct elf_file *elf, struct elf_file *names_of, struct elf_syms *syms,
			 const char *prefix, struct sampler_found *found)
{
	for (uint32_t i = 0; i < n_samplers; i++) {
		const struct sampler *s = &samplers[i];
		struct elf_sym alloc, second = { 0 };
		const char *other = s->free ? s->free : s->also;
		char buf[NAME_MAX];

		if (s->go || (!s->je && *prefix) ||
		    elf_syms_find_name(syms, with_prefix(prefix, s->alloc, buf), &alloc, 1) < 1 ||
		    (other &&
		     elf_syms_find_name(syms, with_prefix(prefix, other, buf), &second, 1) < 1))
			continue;
		if (!s->je && s->with &&
		    !has(syms, prefix, s->with)) /* another library, with no sampler */
			continue;
		found->kind = s->name;
		found->why = sampler_whys[SAMPLER_WHY_UNKNOWN];
		if ((s->with && !has(syms, prefix, s->with)) ||
		    (s->without && has(syms, prefix, s->without)))
			continue;
		found->rate_vaddr = s->rate ? variable(names_of, prefix, s->rate, 8) : 0;
		found->on_vaddr = s->on ? variable(names_of, prefix, s->on, 1) : 0;
		if (s->rate && !found->rate_vaddr) {
			found->why = sampler_whys[SAMPLER_WHY_NO_RATE];
			continue;
		}
		found->why = NULL;
		take(elf, s, (const uint64_t[]){ alloc.vaddr, second.vaddr }, found);
		return true;
	}
	return false;
}

static bool find_c(struct elf_file *elf, struct elf_file *names_of, struct elf_syms *syms,
		   struct sampler_found *found)
{
	for (const char *const *prefix = allocator_prefixes; *prefix; prefix++)
		if (find_version(elf, names_of, syms, *prefix, found))
			return true;
	return false;
}

/* Only its sampler takes stacks, so only with it does a library of jemalloc import an unwinder. */
static bool imports_unwinder(struct elf_file *elf)
{
	static const char *const names[] = { "_Unwind_Backtrace", "unw_backtrace" };
	_cleanup_(freep) uint8_t *bytes = NULL;
	const struct elf_section *sec;

	if (elf_file_find_section(elf, ".dynstr", &sec, NULL) < 0 ||
	    elf_file_read_section(elf, sec, &bytes, NULL) < 0)
		return false;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (memmem(bytes, sec->size, names[i], strlen(names[i]) + 1))
			return true;
	return false;
}

static bool is_jemalloc(struct elf_syms *syms)
{
	for (const char *const *prefix = allocator_prefixes; *prefix; prefix++)
		if (has(syms, *prefix, "mallctl"))
			return true;
	return false;
}

/* Stripped: by its debug file. */
static void find_by_debug(const struct alloc_image *im, struct elf_file *elf, bool is_hotspot,
			  struct sampler_found *found)
{
	const struct elf_section *symtab;
	_cleanup_(debug_file_freep) struct debug_file *debug = NULL;
	_cleanup_(elf_syms_freep) struct elf_syms *syms = NULL;

	if (im->open_debug && debug_link_find(elf, im->open_debug, im->ctx, &debug) == 0 &&
	    elf_syms_load_some(debug->elf, is_of_interest, &syms, NULL) == 0 &&
	    find_c(elf, debug->elf, syms, found))
		return;
	if (found->why)
		return;
	found->kind = is_hotspot ? "HotSpot's TLABs" : "jemalloc";
	if (!is_hotspot)
		found->why = sampler_whys[SAMPLER_WHY_JEMALLOC_NAMES];
	else if (elf_file_find_section(elf, ".symtab", &symtab, NULL) == 0)
		found->why = sampler_whys[SAMPLER_WHY_HOTSPOT_OLD];
	else
		found->why = sampler_whys[SAMPLER_WHY_HOTSPOT_NAMES];
}

void samplers_find(const struct alloc_image *im, struct elf_file *elf,
		   struct sampler_found *ret_found)
{
	_cleanup_(elf_syms_freep) struct elf_syms *syms = NULL;

	memset(ret_found, 0, sizeof(*ret_found));
	if (!elf_file_is64(elf) || elf_file_machine(elf) != MACHINE)
		return;
	if (elf_is_go(elf))
		find_go(elf, ret_found);
	if (ret_found->kind || elf_syms_load_some(elf, is_of_interest, &syms, NULL) < 0)
		return;
	if (find_c(elf, elf, syms, ret_found) || ret_found->why)
		return;
	if (has(syms, "", HOTSPOT_EXPORT))
		find_by_debug(im, elf, true, ret_found);
	else if (is_jemalloc(syms) && imports_unwinder(elf))
		find_by_debug(im, elf, false, ret_found);
}

/* --- whether it may have one of its own --- */

static bool is_control(const char *name)
{
	for (uint32_t i = 0; i < n_sampler_controls; i++)
		if (is_name(name, sampler_controls[i].function))
			return true;
	return false;
}

void samplers_find_control(struct elf_file *elf, struct sampler_control *ret_control)
{
	_cleanup_(elf_syms_freep) struct elf_syms *syms = NULL;

	*ret_control = (struct sampler_control){ 0 };
	if (elf_syms_load_some(elf, is_control, &syms, NULL) < 0)
		return;
	for (uint32_t i = 0; i < n_sampler_controls && !ret_control->variable; i++)
		if (has(syms, "", sampler_controls[i].function))
			ret_control->variable = sampler_controls[i].variable;
	ret_control->has_sampler = ret_control->variable && imports_unwinder(elf);
}
