#include "collect/probes/allocators.h"

#include <stdio.h>
#include <string.h>

/* clang-format off */
const struct allocator allocators[] = {
	/* C, and jemalloc */
	{ "malloc",                                    MS_SHAPE_SIZE, .je = true },  /* (size) → ptr */
	{ "valloc",                                    MS_SHAPE_SIZE, .je = true },
	{ "calloc",                                    MS_SHAPE_COUNT_SIZE, .je = true },  /* (n, size) → ptr */
	{ "aligned_alloc",                             MS_SHAPE_ALIGN_SIZE, .je = true },  /* (align, size) → ptr */
	{ "memalign",                                  MS_SHAPE_ALIGN_SIZE, .je = true },
	{ "posix_memalign",                            MS_SHAPE_OUT_PTR, .je = true },  /* (&ptr, align, size) → errno */
	{ "realloc",                                   MS_SHAPE_REALLOC, .je = true },  /* (ptr, size) → ptr */
	{ "free",                                      MS_SHAPE_FREE, .je = true },  /* (ptr) */
	{ "pvalloc",                                   MS_SHAPE_SIZE },
	{ "reallocarray",                              MS_SHAPE_REALLOC_N },  /* (ptr, n, size) → ptr */
	{ "cfree",                                     MS_SHAPE_FREE },
	{ "free_sized",                                MS_SHAPE_FREE },
	{ "free_aligned_sized",                        MS_SHAPE_FREE },
	{ "mallocx",                                   MS_SHAPE_SIZE, .je = true },  /* (size, flags) → ptr */
	{ "rallocx",                                   MS_SHAPE_REALLOC, .je = true },  /* (ptr, size, flags) → ptr */
	{ "xallocx",                                   MS_SHAPE_XALLOC, .je = true },  /* (ptr, size, extra, flags) → size */
	{ "dallocx",                                   MS_SHAPE_FREE, .je = true },
	{ "sdallocx",                                  MS_SHAPE_FREE, .je = true },

	/* tcmalloc: gperftools, where they are not aliases of the above, and Google */
	{ "tc_malloc",                                 MS_SHAPE_SIZE },
	{ "tc_malloc_skip_new_handler",                MS_SHAPE_SIZE },
	{ "tc_valloc",                                 MS_SHAPE_SIZE },
	{ "tc_pvalloc",                                MS_SHAPE_SIZE },
	{ "tc_calloc",                                 MS_SHAPE_COUNT_SIZE },
	{ "tc_memalign",                               MS_SHAPE_ALIGN_SIZE },
	{ "tc_posix_memalign",                         MS_SHAPE_OUT_PTR },
	{ "tc_realloc",                                MS_SHAPE_REALLOC },
	{ "tc_free",                                   MS_SHAPE_FREE },
	{ "tc_cfree",                                  MS_SHAPE_FREE },
	{ "tc_free_sized",                             MS_SHAPE_FREE },
	{ "TCMallocInternalMalloc",                    MS_SHAPE_SIZE },
	{ "TCMallocInternalValloc",                    MS_SHAPE_SIZE },
	{ "TCMallocInternalPvalloc",                   MS_SHAPE_SIZE },
	{ "TCMallocInternalCalloc",                    MS_SHAPE_COUNT_SIZE },
	{ "TCMallocInternalAlignedAlloc",              MS_SHAPE_ALIGN_SIZE },
	{ "TCMallocInternalMemalign",                  MS_SHAPE_ALIGN_SIZE },
	{ "TCMallocInternalPosixMemalign",             MS_SHAPE_OUT_PTR },
	{ "TCMallocInternalRealloc",                   MS_SHAPE_REALLOC },
	{ "TCMallocInternalFree",                      MS_SHAPE_FREE },
	{ "TCMallocInternalCfree",                     MS_SHAPE_FREE },
	{ "TCMallocInternalFreeSized",                 MS_SHAPE_FREE },
	{ "TCMallocInternalFreeAlignedSized",          MS_SHAPE_FREE },
	{ "TCMallocInternalSdallocx",                  MS_SHAPE_FREE },

	/* mimalloc */
	{ "mi_malloc",                                 MS_SHAPE_SIZE },
	{ "mi_zalloc",                                 MS_SHAPE_SIZE },
	{ "mi_malloc_small",                           MS_SHAPE_SIZE },
	{ "mi_zalloc_small",                           MS_SHAPE_SIZE },
	{ "mi_valloc",                                 MS_SHAPE_SIZE },
	{ "mi_pvalloc",                                MS_SHAPE_SIZE },
	{ "mi_malloc_aligned",                         MS_SHAPE_SIZE },
	{ "mi_zalloc_aligned",                         MS_SHAPE_SIZE },
	{ "mi_malloc_aligned_at",                      MS_SHAPE_SIZE },
	{ "mi_zalloc_aligned_at",                      MS_SHAPE_SIZE },
	{ "mi_calloc",                                 MS_SHAPE_COUNT_SIZE },
	{ "mi_mallocn",                                MS_SHAPE_COUNT_SIZE },
	{ "mi_calloc_aligned",                         MS_SHAPE_COUNT_SIZE },
	{ "mi_memalign",                               MS_SHAPE_ALIGN_SIZE },
	{ "mi_aligned_alloc",                          MS_SHAPE_ALIGN_SIZE },
	{ "mi_posix_memalign",                         MS_SHAPE_OUT_PTR },
	{ "mi_realloc",                                MS_SHAPE_REALLOC },
	{ "mi_rezalloc",                               MS_SHAPE_REALLOC },
	{ "mi_expand",                                 MS_SHAPE_REALLOC },
	{ "mi_realloc_aligned",                        MS_SHAPE_REALLOC },
	{ "mi_reallocn",                               MS_SHAPE_REALLOC_N },
	{ "mi_recalloc",                               MS_SHAPE_REALLOC_N },
	{ "mi_reallocarray",                           MS_SHAPE_REALLOC_N },
	{ "mi_calloc_aligned_at",                      MS_SHAPE_COUNT_SIZE },
	{ "mi_realloc_aligned_at",                     MS_SHAPE_REALLOC },
	{ "mi_rezalloc_aligned",                       MS_SHAPE_REALLOC },
	{ "mi_rezalloc_aligned_at",                    MS_SHAPE_REALLOC },
	{ "mi_recalloc_aligned",                       MS_SHAPE_REALLOC_N },
	{ "mi_recalloc_aligned_at",                    MS_SHAPE_REALLOC_N },
	{ "mi_aligned_recalloc",                       MS_SHAPE_REALLOC_N },
	{ "mi_aligned_offset_recalloc",                MS_SHAPE_REALLOC_N },
	{ "mi_heap_malloc",                            MS_SHAPE_SIZE, .heap = true },
	{ "mi_heap_zalloc",                            MS_SHAPE_SIZE, .heap = true },
	{ "mi_heap_malloc_small",                      MS_SHAPE_SIZE, .heap = true },
	{ "mi_heap_malloc_aligned",                    MS_SHAPE_SIZE, .heap = true },
	{ "mi_heap_zalloc_aligned",                    MS_SHAPE_SIZE, .heap = true },
	{ "mi_heap_malloc_aligned_at",                 MS_SHAPE_SIZE, .heap = true },
	{ "mi_heap_zalloc_aligned_at",                 MS_SHAPE_SIZE, .heap = true },
	{ "mi_heap_alloc_new",                         MS_SHAPE_NEW, .heap = true },
	{ "mi_heap_calloc",                            MS_SHAPE_COUNT_SIZE, .heap = true },
	{ "mi_heap_mallocn",                           MS_SHAPE_COUNT_SIZE, .heap = true },
	{ "mi_heap_calloc_aligned",                    MS_SHAPE_COUNT_SIZE, .heap = true },
	{ "mi_heap_calloc_aligned_at",                 MS_SHAPE_COUNT_SIZE, .heap = true },
	{ "mi_heap_realloc",                           MS_SHAPE_REALLOC, .heap = true },
	{ "mi_heap_rezalloc",                          MS_SHAPE_REALLOC, .heap = true },
	{ "mi_heap_realloc_aligned",                   MS_SHAPE_REALLOC, .heap = true },
	{ "mi_heap_realloc_aligned_at",                MS_SHAPE_REALLOC, .heap = true },
	{ "mi_heap_rezalloc_aligned",                  MS_SHAPE_REALLOC, .heap = true },
	{ "mi_heap_rezalloc_aligned_at",               MS_SHAPE_REALLOC, .heap = true },
	{ "mi_heap_reallocn",                          MS_SHAPE_REALLOC_N, .heap = true },
	{ "mi_heap_recalloc",                          MS_SHAPE_REALLOC_N, .heap = true },
	{ "mi_heap_recalloc_aligned",                  MS_SHAPE_REALLOC_N, .heap = true },
	{ "mi_heap_recalloc_aligned_at",               MS_SHAPE_REALLOC_N, .heap = true },
	{ "mi_free",                                   MS_SHAPE_FREE },
	{ "mi_cfree",                                  MS_SHAPE_FREE },
	{ "mi_free_size",                              MS_SHAPE_FREE },
	{ "mi_free_aligned",                           MS_SHAPE_FREE },
	{ "mi_free_size_aligned",                      MS_SHAPE_FREE },

	/* C++: new, new[], and those that return NULL instead of throwing */
	{ "_Znwm",                                     MS_SHAPE_NEW, .via = "malloc", .own = true },
	{ "_Znam",                                     MS_SHAPE_NEW, .via = "malloc", .own = true },
	{ "_ZnwmSt11align_val_t",                      MS_SHAPE_NEW, .via = "aligned_alloc", .own = true },
	{ "_ZnamSt11align_val_t",                      MS_SHAPE_NEW, .via = "aligned_alloc", .own = true },
	{ "_ZnwmRKSt9nothrow_t",                       MS_SHAPE_SIZE, .via = "malloc", .own = true },
	{ "_ZnamRKSt9nothrow_t",                       MS_SHAPE_SIZE, .via = "malloc", .own = true },
	{ "_ZnwmSt11align_val_tRKSt9nothrow_t",        MS_SHAPE_SIZE, .via = "aligned_alloc", .own = true },
	{ "_ZnamSt11align_val_tRKSt9nothrow_t",        MS_SHAPE_SIZE, .via = "aligned_alloc", .own = true },
	{ "tc_new",                                    MS_SHAPE_NEW, .via = "malloc", .own = true },
	{ "tc_newarray",                               MS_SHAPE_NEW, .via = "malloc", .own = true },
	{ "tc_new_aligned",                            MS_SHAPE_NEW, .via = "malloc", .own = true },
	{ "tc_newarray_aligned",                       MS_SHAPE_NEW, .via = "malloc", .own = true },
	{ "tc_new_nothrow",                            MS_SHAPE_SIZE, .via = "malloc", .own = true },
	{ "tc_newarray_nothrow",                       MS_SHAPE_SIZE, .via = "malloc", .own = true },
	{ "mi_new",                                    MS_SHAPE_NEW, .via = "malloc", .own = true },
	{ "mi_new_aligned",                            MS_SHAPE_NEW, .via = "malloc", .own = true },
	{ "mi_new_nothrow",                            MS_SHAPE_SIZE, .via = "malloc", .own = true },
	{ "mi_new_aligned_nothrow",                    MS_SHAPE_SIZE, .via = "malloc", .own = true },

	/* Google's tcmalloc: new with a hint, and new that says how much it gave: (ptr, size) */
	{ "_Znwm12__hot_cold_t",                       MS_SHAPE_NEW, .via = "malloc", .own = true },
	{ "_Znam12__hot_cold_t",                       MS_SHAPE_NEW, .via = "malloc", .own = true },
	{ "_ZnwmSt11align_val_t12__hot_cold_t",        MS_SHAPE_NEW, .via = "malloc", .own = true },
	{ "_ZnamSt11align_val_t12__hot_cold_t",        MS_SHAPE_NEW, .via = "malloc", .own = true },
	{ "_ZnwmRKSt9nothrow_t12__hot_cold_t",         MS_SHAPE_SIZE, .via = "malloc", .own = true },
	{ "_ZnamRKSt9nothrow_t12__hot_cold_t",         MS_SHAPE_SIZE, .via = "malloc", .own = true },
	{ "_ZnwmSt11align_val_tRKSt9nothrow_t12__hot_cold_t", MS_SHAPE_SIZE, .via = "malloc", .own = true },
	{ "_ZnamSt11align_val_tRKSt9nothrow_t12__hot_cold_t", MS_SHAPE_SIZE, .via = "malloc", .own = true },
	{ "__size_returning_new",                      MS_SHAPE_NEW, .via = "malloc", .own = true },
	{ "__size_returning_new_aligned",              MS_SHAPE_NEW, .via = "malloc", .own = true },
	{ "__size_returning_new_hot_cold",             MS_SHAPE_NEW, .via = "malloc", .own = true },
	{ "__size_returning_new_aligned_hot_cold",     MS_SHAPE_NEW, .via = "malloc", .own = true },
	{ "tcmalloc_size_returning_operator_new",      MS_SHAPE_NEW, .via = "malloc", .own = true },
	{ "tcmalloc_size_returning_operator_new_aligned", MS_SHAPE_NEW, .via = "malloc", .own = true },
	{ "tcmalloc_size_returning_operator_new_hot_cold", MS_SHAPE_NEW, .via = "malloc", .own = true },
	{ "tcmalloc_size_returning_operator_new_aligned_hot_cold", MS_SHAPE_NEW, .via = "malloc", .own = true },
	{ "tcmalloc_size_returning_operator_new_nothrow", MS_SHAPE_SIZE, .via = "malloc", .own = true },
	{ "tcmalloc_size_returning_operator_new_aligned_nothrow", MS_SHAPE_SIZE, .via = "malloc", .own = true },
	{ "tcmalloc_size_returning_operator_new_hot_cold_nothrow", MS_SHAPE_SIZE, .via = "malloc", .own = true },
	{ "tcmalloc_size_returning_operator_new_aligned_hot_cold_nothrow", MS_SHAPE_SIZE, .via = "malloc", .own = true },

	/* CPython: (ctx, …) */
	{ "_PyObject_Malloc",                          MS_SHAPE_SIZE, .heap = true, .objects = true },
	{ "_PyObject_Calloc",                          MS_SHAPE_COUNT_SIZE, .heap = true, .objects = true },
	{ "_PyObject_Realloc",                         MS_SHAPE_REALLOC, .heap = true, .objects = true },
	{ "_PyObject_Free",                            MS_SHAPE_FREE, .heap = true, .objects = true },

	/* delete, delete[] */
	{ "_ZdlPv",                                    MS_SHAPE_FREE, .via = "free", .own = true },
	{ "_ZdaPv",                                    MS_SHAPE_FREE, .via = "free", .own = true },
	{ "_ZdlPvm",                                   MS_SHAPE_FREE, .via = "free", .own = true },
	{ "_ZdaPvm",                                   MS_SHAPE_FREE, .via = "free", .own = true },
	{ "_ZdlPvRKSt9nothrow_t",                      MS_SHAPE_FREE, .via = "free", .own = true },
	{ "_ZdaPvRKSt9nothrow_t",                      MS_SHAPE_FREE, .via = "free", .own = true },
	{ "_ZdlPvSt11align_val_t",                     MS_SHAPE_FREE, .via = "free", .own = true },
	{ "_ZdaPvSt11align_val_t",                     MS_SHAPE_FREE, .via = "free", .own = true },
	{ "_ZdlPvmSt11align_val_t",                    MS_SHAPE_FREE, .via = "free", .own = true },
	{ "_ZdaPvmSt11align_val_t",                    MS_SHAPE_FREE, .via = "free", .own = true },
	{ "_ZdlPvSt11align_val_tRKSt9nothrow_t",       MS_SHAPE_FREE, .via = "free", .own = true },
	{ "_ZdaPvSt11align_val_tRKSt9nothrow_t",       MS_SHAPE_FREE, .via = "free", .own = true },
	{ "tc_delete",                                 MS_SHAPE_FREE, .via = "free", .own = true },
	{ "tc_deletearray",                            MS_SHAPE_FREE, .via = "free", .own = true },
	{ "tc_delete_sized",                           MS_SHAPE_FREE, .via = "free", .own = true },
	{ "tc_deletearray_sized",                      MS_SHAPE_FREE, .via = "free", .own = true },
	{ "tc_delete_nothrow",                         MS_SHAPE_FREE, .via = "free", .own = true },
	{ "tc_deletearray_nothrow",                    MS_SHAPE_FREE, .via = "free", .own = true },
	{ "tc_delete_aligned",                         MS_SHAPE_FREE, .via = "free", .own = true },
	{ "tc_deletearray_aligned",                    MS_SHAPE_FREE, .via = "free", .own = true },
	{ NULL },
};
/* clang-format on */

/* Rust's tikv-jemallocator uses the last two. */
const char *const allocator_prefixes[] = { "", "je_", "_rjem_", "_rjem_je_", NULL };

const char *const allocator_own_new_marks[] = { "mallocx", "tc_version", "TCMallocInternalNew",
						"mi_new", NULL };

const char *const allocator_object_entries[] = { "PyObject_Malloc", "PyObject_Free", "PyMem_Malloc",
						 "PyMem_Free", NULL };

/* Their messages; each is the beginning of one. */
const struct allocator_trace allocator_traces[] = {
	{ "jemalloc", "<jemalloc>: " },
	{ "mimalloc", "mimalloc: error: " },
	{ "tcmalloc", "tcmalloc: allocation failed" },
	{ "tcmalloc", "tcmalloc/internal/" },
	{ NULL, NULL },
};

const char *allocator_name(const struct allocator *a, const char *prefix, char *buf, size_t cap)
{
	if (!*prefix)
		return a->symbol;
	if (!a->je)
		return NULL;
	snprintf(buf, cap, "%s%s", prefix, a->symbol);
	return buf;
}

static bool is_same(const char *name, const char *symbol)
{
	size_t len = strlen(name);

	return strncmp(name, symbol, len) == 0 && (!symbol[len] || symbol[len] == '@');
}

bool allocator_is_name(const char *symbol)
{
	for (const char *const *prefix = allocator_prefixes; *prefix; prefix++) {
		size_t skip = strlen(*prefix);

		if (strncmp(symbol, *prefix, skip) != 0)
			continue;
		for (const struct allocator *a = allocators; a->symbol; a++)
			if ((!skip || a->je) && *a->symbol == symbol[skip] &&
			    is_same(a->symbol, symbol + skip))
				return true;
	}
	for (const char *const *mark = allocator_own_new_marks; *mark; mark++)
		if (is_same(*mark, symbol))
			return true;
	for (const char *const *entry = allocator_object_entries; *entry; entry++)
		if (is_same(*entry, symbol))
			return true;
	return false;
}
