#include "analyse/gc_time.h"

#include "analyse/frame.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

/* Beginnings of functions below which all is garbage collection. */
static const char *const collectors[] = {
	/* HotSpot */
	"GangWorker::loop",
	"WorkerThread::run",
	"ConcurrentGCThread::run",
	"VM_G1CollectForAllocation::doit",
	"VM_G1CollectFull::doit",
	"VM_CollectForAllocation::doit",
	"VM_GenCollectForAllocation::doit",
	"VM_ParallelGCFailedAllocation::doit",
	"G1CollectedHeap::do_collection_pause",
	"DefNewGeneration::collect",
	"GenMarkSweep::",
	"SerialHeap::do_collection",
	"GenCollectedHeap::do_collection",
	/* V8 */
	"v8::internal::Heap::CollectGarbage",
	"v8::internal::Heap::PerformGarbageCollection",
	"v8::internal::ScavengerCollector::",
	"v8::internal::MarkCompactCollector::",
	"v8::internal::ConcurrentMarking::",
	"v8::internal::Sweeper::",
	"v8::internal::IncrementalMarking",
	/* Go */
	"runtime.gcBgMarkWorker",
	"runtime.gcAssistAlloc",
	"runtime.gcDrain",
	"runtime.gcStart",
	"runtime.gcMarkDone",
	"runtime.bgsweep",
	"runtime.bgscavenge",
	/* CPython */
	"gc_collect_main",
	"gc_collect_generations",
	"gc_collect_with_callback",
	"_PyGC_Collect",
	"PyGC_Collect",
	/* GHC */
	"GarbageCollect",
	"scavenge_loop",
	"gcWorkerThread",
	/* Ruby, PHP */
	"garbage_collect",
	"gc_marks",
	"gc_sweep",
	"gc_start",
	"zend_gc_collect_cycles",
};

static bool is_collector(const char *name)
{
	for (size_t i = 0; i < sizeof(collectors) / sizeof(collectors[0]); i++)
		if (strncmp(name, collectors[i], strlen(collectors[i])) == 0)
			return true;
	return false;
}

static bool collects(const struct dict *d, const struct frame_path *path)
{
	for (uint32_t i = 0; i < path->n; i++)
		if ((path->frames[i].kind == FRAME_USER || path->frames[i].kind == FRAME_INLINED) &&
		    is_collector(dict_str(d, path->frames[i].name)))
			return true;
	return false;
}

int gc_time(const struct profile *p, uint32_t type, int64_t *ret_value)
{
	_cleanup_(frame_path_fini) struct frame_path path = { 0 };
	int64_t value = 0;

	for (uint32_t i = 0; i < profile_n_samples(p); i++) {
		struct profile_sample s = profile_sample(p, i);

		if (s.values[type] <= 0)
			continue;
		if (frame_path_set(&path, profile_dict(p), s.stack) < 0)
			return -ENOMEM;
		if (collects(profile_dict(p), &path) &&
		    __builtin_add_overflow(value, s.values[type], &value))
			value = INT64_MAX;
	}
	*ret_value = value;
	return 0;
}
