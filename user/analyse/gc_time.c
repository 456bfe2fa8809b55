#include "analyse/gc_time.h"

#include <errno.h>
#include <string.h>

static const char *const names[N_GC_RUNTIMES] = {
	[GC_HOTSPOT] = "HotSpot", [GC_V8] = "V8",     [GC_GO] = "Go",   [GC_CPYTHON] = "CPython",
	[GC_GHC] = "GHC",         [GC_RUBY] = "Ruby", [GC_PHP] = "PHP",
};

/* Beginnings of functions below which all is garbage collection. */
static const struct collector {
	const char *name;
	enum gc_runtime runtime;
} collectors[] = {
	{ "GangWorker::loop", GC_HOTSPOT },
	{ "WorkerThread::run", GC_HOTSPOT },
	{ "ConcurrentGCThread::run", GC_HOTSPOT },
	{ "VM_G1CollectForAllocation::doit", GC_HOTSPOT },
	{ "VM_G1CollectFull::doit", GC_HOTSPOT },
	{ "VM_CollectForAllocation::doit", GC_HOTSPOT },
	{ "VM_GenCollectForAllocation::doit", GC_HOTSPOT },
	{ "VM_ParallelGCFailedAllocation::doit", GC_HOTSPOT },
	{ "G1CollectedHeap::do_collection_pause", GC_HOTSPOT },
	{ "DefNewGeneration::collect", GC_HOTSPOT },
	{ "GenMarkSweep::", GC_HOTSPOT },
	{ "SerialHeap::do_collection", GC_HOTSPOT },
	{ "GenCollectedHeap::do_collection", GC_HOTSPOT },
	{ "v8::internal::Heap::CollectGarbage", GC_V8 },
	{ "v8::internal::Heap::PerformGarbageCollection", GC_V8 },
	{ "v8::internal::ScavengerCollector::", GC_V8 },
	{ "v8::internal::MarkCompactCollector::", GC_V8 },
	{ "v8::internal::ConcurrentMarking::", GC_V8 },
	{ "v8::internal::Sweeper::", GC_V8 },
	{ "v8::internal::MemoryAllocator::Unmapper::", GC_V8 },
	{ "v8::internal::IncrementalMarking", GC_V8 },
	{ "runtime.gcBgMarkWorker", GC_GO },
	{ "runtime.gcAssistAlloc", GC_GO },
	{ "runtime.gcDrain", GC_GO },
	{ "runtime.gcStart", GC_GO },
	{ "runtime.gcMarkDone", GC_GO },
	{ "runtime.bgsweep", GC_GO },
	{ "runtime.bgscavenge", GC_GO },
	{ "gc_collect_main", GC_CPYTHON },
	{ "gc_collect_generations", GC_CPYTHON },
	{ "gc_collect_with_callback", GC_CPYTHON },
	{ "_PyGC_Collect", GC_CPYTHON },
	{ "PyGC_Collect", GC_CPYTHON },
	{ "GarbageCollect", GC_GHC },
	{ "scavenge_loop", GC_GHC },
	{ "gcWorkerThread", GC_GHC },
	{ "garbage_collect", GC_RUBY },
	{ "gc_marks", GC_RUBY },
	{ "gc_sweep", GC_RUBY },
	{ "gc_start", GC_RUBY },
	{ "zend_gc_collect_cycles", GC_PHP },
};

/* The same of compilers: threads of HotSpot's, V8's TurboFan, Maglev and Sparkplug; not what makes bytecode of a source. */
static const char *const compilers[] = {
	"CompileBroker::compiler_thread_loop",
	"v8::internal::OptimizingCompileDispatcher::",
	"v8::internal::OptimizingCompileTaskExecutor::",
	"v8::internal::OptimizedCompilationJob::",
	"v8::internal::TurbofanCompilationJob::",
	"v8::internal::maglev::",
	"v8::internal::compiler::",
	"v8::internal::baseline::",
};

const char *gc_runtime_name(enum gc_runtime runtime)
{
	return names[runtime];
}

/* N_GC_RUNTIMES: it is none. */
static enum gc_runtime collector_of(const char *name)
{
	for (size_t i = 0; i < sizeof(collectors) / sizeof(collectors[0]); i++)
		if (strncmp(name, collectors[i].name, strlen(collectors[i].name)) == 0)
			return collectors[i].runtime;
	return N_GC_RUNTIMES;
}

static enum gc_runtime collector_at(const struct dict *d, const struct frame *f)
{
	if (f->kind != FRAME_USER && f->kind != FRAME_INLINED)
		return N_GC_RUNTIMES;
	return collector_of(dict_str(d, f->name));
}

uint32_t gc_place(const struct dict *d, const struct frame_path *path)
{
	uint32_t i = 0;

	while (i < path->n && collector_at(d, &path->frames[i]) == N_GC_RUNTIMES)
		i++;
	return i;
}

static enum gc_runtime collects(const struct dict *d, const struct frame_path *path)
{
	uint32_t place = gc_place(d, path);

	return place < path->n ? collector_at(d, &path->frames[place]) : N_GC_RUNTIMES;
}

static bool compiles(const struct dict *d, const struct frame_path *path)
{
	for (uint32_t i = 0; i < path->n; i++) {
		const struct frame *f = &path->frames[i];
		const char *name = dict_str(d, f->name);

		if (f->kind != FRAME_USER && f->kind != FRAME_INLINED)
			continue;
		for (size_t k = 0; k < sizeof(compilers) / sizeof(compilers[0]); k++)
			if (strncmp(name, compilers[k], strlen(compilers[k])) == 0)
				return true;
	}
	return false;
}

int jit_time(const struct profile *p, uint32_t type, int64_t *ret_value)
{
	return frame_path_sum(p, type, compiles, ret_value);
}

int gc_time(const struct profile *p, uint32_t type, int64_t ret_values[N_GC_RUNTIMES])
{
	_cleanup_(frame_path_fini) struct frame_path path = { 0 };
	int64_t values[N_GC_RUNTIMES] = { 0 };

	for (uint32_t i = 0; i < profile_n_samples(p); i++) {
		struct profile_sample s = profile_sample(p, i);
		enum gc_runtime of;

		if (s.values[type] <= 0)
			continue;
		if (frame_path_set(&path, profile_dict(p), s.stack) < 0)
			return -ENOMEM;
		of = collects(profile_dict(p), &path);
		if (of < N_GC_RUNTIMES &&
		    __builtin_add_overflow(values[of], s.values[type], &values[of]))
			values[of] = INT64_MAX;
	}
	memcpy(ret_values, values, sizeof(values));
	return 0;
}
