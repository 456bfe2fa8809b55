#include "collect/probes/allocators.h"
#include "collect/probes/sampler_site.h"
#include "proc/peek.h"

#include <errno.h>

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

/* jemalloc's under each of the names that it is built with. */
const struct sampler_control_name sampler_controls[] = {
	{ "mallctl", "MALLOC_CONF" },
	{ "je_mallctl", "JE_MALLOC_CONF" },
	{ "_rjem_mallctl", "_RJEM_MALLOC_CONF" },
	{ "_rjem_je_mallctl", "_RJEM_MALLOC_CONF" },
};

const uint32_t n_sampler_controls = sizeof(sampler_controls) / sizeof(*sampler_controls);

const char *const sampler_whys[SAMPLER_N_WHYS] = {
	[SAMPLER_WHY_NOT_LOADED] = "its functions are in no part of the file that is loaded",
	[SAMPLER_WHY_GO_OLD] = "it is of before Go 1.18, which passes arguments otherwise",
	[SAMPLER_WHY_GO_UNKNOWN] = "it is of a version of Go that memscope does not know",
	[SAMPLER_WHY_GO_SWEEPER] = "it is of a version of Go whose sweeper memscope does not know",
	[SAMPLER_WHY_UNKNOWN] = "it is of a version that memscope does not know",
	[SAMPLER_WHY_NO_RATE] = "the variable with its rate has no name in the file",
	[SAMPLER_WHY_JEMALLOC_NAMES] =
		"its inner functions have no names there: install its debug symbols (of Debian's "
		"library: libjemalloc2-dbgsym), or link a jemalloc that is not stripped",
	[SAMPLER_WHY_HOTSPOT_OLD] =
		"it is of before JDK 11, where new buffers are taken in generated code too, or of a "
		"version that memscope does not know",
	[SAMPLER_WHY_HOTSPOT_NAMES] =
		"its inner functions have no names there: install its debug symbols (of Debian's "
		"library: openjdk-17-dbg)",
};

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
