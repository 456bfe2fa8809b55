#include "collect/probes/allocators.h"
#include "collect/probes/sampler_site.h"
#include "elf/elf_file.h"
#include "elf/elf_objects.h"
#include "elf/elf_syms.h"
#include "elf/gopclntab.h"
#include "proc/peek.h"

#include <elf.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#define HOTSPOT_EXPORT  "JVM_MonitorWait" /* libjvm exports it, whatever it was stripped of */
#define GO_DEFAULT_RATE (512 * 1024)      /* runtime.MemProfileRate, where nobody has set it */

/* clang-format off */

/* By the types of two arguments, an object's address and its thread. */
#define HOTSPOT(at, thread_type)                                                                          \
	{ "HotSpot's TLABs", "_ZN11AllocTracer27send_allocation_in_new_tlabEP5Klass" at "mm" thread_type, \
	  .also = "_ZN11AllocTracer28send_allocation_outside_tlabEP5Klass" at "m" thread_type,            \
	  .counter = true, .addr = { 2 }, .size = { 3 }, .thread = { 4 }, .also_size = { 2 }, .also_thread = { 3 } }

const struct sampler samplers[] = {
	{ "Go's runtime", "runtime.mProf_Malloc", "runtime.freeSpecial", .go = true, .args = 16,
	  .addr = { 0 }, .size = { 1 }, .free_addr = { 1 }, .header = 8, .rate = "runtime.MemProfileRate" },
	{ "Go's runtime", "runtime.mProf_Malloc", "runtime.freeSpecial", .go = true, .args = 24,
	  .addr = { 1 }, .size = { 2 }, .free_addr = { 1 }, .header = 8, .rate = "runtime.MemProfileRate" },
	{ "Go's runtime", "runtime.mProf_Malloc", "runtime.freeSpecial", .go = true, .args = 32,
	  .addr = { 1 }, .size = { 2 }, .free_addr = { 1 }, .header = 8, .rate = "runtime.MemProfileRate" },
	{ "jemalloc", "prof_malloc_sample_object", "prof_free_sampled_object", .je = true,
	  .with = "large_prof_info_set", .without = "prof_sample_free_hook_set",
	  .addr = { 4 }, .size = { 3 }, .free_addr = { 2, true, 8 }, .free_size = { 1 }, .free_time = { 2, true, 0 },
	  .by_class = true, .rate = "lg_prof_sample", .rate_log2 = true, .on = "opt_prof" },
	{ "tcmalloc", "_ZN8tcmalloc7Sampler20RecordAllocationSlowEm", .with = "HeapProfilerStart",
	  .addr = { 0, true, 16, 1 }, .size = { 1 },
	  .rate = "_ZN61FLAG__namespace_do_not_use_directly_use_DECLARE_int64_instead31FLAGS_tcmalloc_sample_parameterE",
	  .how = "TCMALLOC_SAMPLE_PARAMETER=524288 in its environment turns it on when the process is started" },
	HOTSPOT("PP12HeapWordImpl", "P10JavaThread"), /* 17 and later */
	HOTSPOT("PP12HeapWordImpl", "P6Thread"),
	HOTSPOT("P8HeapWord", "P6Thread"), /* 11 */
};

/* clang-format on */

const uint32_t n_samplers = sizeof(samplers) / sizeof(*samplers);

#if defined(__x86_64__)
#define MACHINE EM_X86_64
#else
#define MACHINE EM_AARCH64
#endif

/* --- where arguments are --- */

uint16_t samplers_reg_off(uint8_t reg)
{
#if defined(__x86_64__)
	/* rax rdx rcx rbx rsi rdi rbp rsp r8 … r15, in a struct that begins r15 r14 r13 r12 rbp rbx
	 * r11 r10 r9 r8 rax rcx rdx rsi rdi … and has rsp at 19 */
	static const uint8_t words[16] = { 10, 12, 11, 5, 13, 14, 4, 19, 9, 8, 7, 6, 3, 2, 1, 0 };

	return (uint16_t)(words[reg & 15] * 8);
#else
	return (uint16_t)(reg * 8); /* x0 … x30, sp */
#endif
}

/* The DWARF number of the register that argument `arg` is in. */
static uint8_t arg_reg(const struct sampler *s, uint8_t arg)
{
#if defined(__x86_64__)
	static const uint8_t of_c[8] = { 5, 4, 1, 2, 8, 9 };
	static const uint8_t of_go[8] = { 0, 3, 2, 5, 4, 8, 9, 10 }; /* Go's ABIInternal */

	return (s->go ? of_go : of_c)[arg & 7];
#else
	(void)s;
	return arg;
#endif
}

static struct ms_site_arg site_arg(const struct sampler *s, struct sampler_place place)
{
	return (struct ms_site_arg){
		.value = place.off,
		.reg_off = samplers_reg_off(arg_reg(s, place.arg)),
		.kind = place.in ? MS_ARG_MEMORY : MS_ARG_REG,
		.size = place.size ? place.size : 8,
	};
}

/* The thread's counter, and what it has used of its buffer. */
static void counter_site(const struct sampler_found *found, uint32_t i, struct ms_site *ret_site)
{
	const struct sampler *s = found->sampler;
	uint8_t thread = (i ? s->also_thread : s->thread).arg;
	struct ms_site_arg none = { .value = 1, .kind = MS_ARG_CONST, .size = 8 };

	*ret_site = (struct ms_site){ .source = (uint8_t)(s - samplers + 1),
				      .weigh = MS_WEIGH_COUNTER };
	ret_site->args[0] = i ? none : site_arg(s, s->addr);
	ret_site->args[1] = site_arg(s, i ? s->also_size : s->size);
	ret_site->args[2] =
		site_arg(s, (struct sampler_place){ thread, true, found->counter.allocated, 8 });
	ret_site->args[3] =
		site_arg(s, (struct sampler_place){ thread, true, found->counter.top, 8 });
	ret_site->args[4] =
		site_arg(s, (struct sampler_place){ thread, true, found->counter.start, 8 });
}

enum ms_sample_what sampler_site(const struct sampler_found *found, uint32_t i,
				 struct ms_site *ret_site)
{
	const struct sampler *s = found->sampler;
	struct ms_site_arg rate = { .value = found->rate, .kind = MS_ARG_CONST, .size = 8 };

	if (s->counter) {
		counter_site(found, i, ret_site);
		return MS_SAMPLE_UNTRACKED;
	}
	*ret_site = (struct ms_site){ .source = (uint8_t)(s - samplers + 1),
				      .weigh = s->rate_log2 ? MS_WEIGH_RATE_LOG2 : MS_WEIGH_RATE,
				      .by_class = s->by_class };
	if (i > 0) {
		ret_site->args[0] = site_arg(s, s->free_addr);
		ret_site->args[1] = site_arg(s, s->free_size);
		ret_site->args[2] = site_arg(s, s->free_time);
		return MS_SAMPLE_FREE;
	}
	if (found->rate_vaddr) {
		rate.kind = MS_ARG_CODE;
		rate.value = found->rate_vaddr - found->sites[0].vaddr;
	} else {
		ret_site->weigh = MS_WEIGH_RATE;
	}
	ret_site->args[0] = site_arg(s, s->addr);
	ret_site->args[1] = site_arg(s, s->size);
	ret_site->args[2] = rate;
	return s->free ? MS_SAMPLE_ALLOC : MS_SAMPLE_UNTRACKED;
}

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
			found->why = "its functions are in no part of the file that is loaded";
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
				     ? "it is of before Go 1.18, which passes arguments otherwise"
				     : "it is of a version of Go that memscope does not know";
		return;
	}
	if (gopclntab_find_name(tab, s->free, &freed) < 0) {
		found->why = "it is of a version of Go whose sweeper memscope does not know";
		return;
	}
	found->rate = GO_DEFAULT_RATE;
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
		found->why = "it is of a version that memscope does not know";
		if ((s->with && !has(syms, prefix, s->with)) ||
		    (s->without && has(syms, prefix, s->without)))
			continue;
		found->rate_vaddr = s->rate ? variable(names_of, prefix, s->rate, 8) : 0;
		found->on_vaddr = s->on ? variable(names_of, prefix, s->on, 1) : 0;
		if (s->rate && !found->rate_vaddr) {
			found->why = "the variable with its rate has no name in the file";
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
		found->why =
			"its inner functions have no names there: install its debug symbols (of Debian's "
			"library: libjemalloc2-dbgsym), or link a jemalloc that is not stripped";
	else if (elf_file_find_section(elf, ".symtab", &symtab, NULL) == 0)
		found->why =
			"it is of before JDK 11, where new buffers are taken in generated code too, or of a "
			"version that memscope does not know";
	else
		found->why =
			"its inner functions have no names there: install its debug symbols (of Debian's "
			"library: openjdk-17-dbg)";
}

void samplers_find(const struct alloc_image *im, struct sampler_found *ret_found)
{
	_cleanup_(elf_file_closep) struct elf_file *elf = NULL;
	_cleanup_(elf_syms_freep) struct elf_syms *syms = NULL;

	memset(ret_found, 0, sizeof(*ret_found));
	if (elf_file_open(im->fd, im->path, &elf, NULL) < 0 || !elf_file_is64(elf) ||
	    elf_file_machine(elf) != MACHINE)
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

/* --- in a process --- */

int samplers_rate(const struct sampler_found *found, pid_t pid, uint64_t bias, uint64_t *ret_rate)
{
	uint64_t rate = found->linked_off ? 0 : found->rate;
	uint8_t on = 1;
	int r = 0;

	if (found->on_vaddr)
		r = peek(pid, bias + found->on_vaddr, &on, sizeof(on)) ? 0 : -EIO;
	if (r == 0 && found->rate_vaddr)
		r = peek(pid, bias + found->rate_vaddr, &rate, sizeof(rate)) ? 0 : -EIO;
	if (r < 0)
		return r;
	if (found->rate_vaddr && found->sampler->rate_log2)
		rate = rate < 63 ? 1ULL << rate : 0;
	*ret_rate = on && rate <= INT64_MAX ? rate : 0;
	return 0;
}
