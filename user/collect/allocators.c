#include "collect/allocators.h"

#include <stddef.h>

/* clang-format off */
const struct allocator allocators[] = {
	{ "malloc",          MS_SHAPE_SIZE       },  /* (size) → ptr                */
	{ "valloc",          MS_SHAPE_SIZE       },
	{ "pvalloc",         MS_SHAPE_SIZE       },
	{ "calloc",          MS_SHAPE_COUNT_SIZE },  /* (n, size) → ptr             */
	{ "aligned_alloc",   MS_SHAPE_ALIGN_SIZE },  /* (align, size) → ptr         */
	{ "memalign",        MS_SHAPE_ALIGN_SIZE },
	{ "posix_memalign",  MS_SHAPE_OUT_PTR    },  /* (&ptr, align, size) → errno */
	{ "realloc",         MS_SHAPE_REALLOC    },  /* (ptr, size) → ptr           */
	{ "reallocarray",    MS_SHAPE_REALLOC_N  },  /* (ptr, n, size) → ptr        */
	{ "free",            MS_SHAPE_FREE       },  /* (ptr)                       */
	{ "cfree",           MS_SHAPE_FREE       },

	{ "_Znwm",                               MS_SHAPE_SIZE, "malloc" },         /* new            */
	{ "_Znam",                               MS_SHAPE_SIZE, "malloc" },         /* new[]          */
	{ "_ZnwmRKSt9nothrow_t",                 MS_SHAPE_SIZE, "malloc" },
	{ "_ZnamRKSt9nothrow_t",                 MS_SHAPE_SIZE, "malloc" },
	{ "_ZnwmSt11align_val_t",                MS_SHAPE_SIZE, "aligned_alloc" },
	{ "_ZnamSt11align_val_t",                MS_SHAPE_SIZE, "aligned_alloc" },
	{ "_ZnwmSt11align_val_tRKSt9nothrow_t",  MS_SHAPE_SIZE, "aligned_alloc" },
	{ "_ZnamSt11align_val_tRKSt9nothrow_t",  MS_SHAPE_SIZE, "aligned_alloc" },
	{ "_ZdlPv",                              MS_SHAPE_FREE, "free" },           /* delete         */
	{ "_ZdaPv",                              MS_SHAPE_FREE, "free" },           /* delete[]       */
	{ "_ZdlPvm",                             MS_SHAPE_FREE, "free" },
	{ "_ZdaPvm",                             MS_SHAPE_FREE, "free" },
	{ "_ZdlPvRKSt9nothrow_t",                MS_SHAPE_FREE, "free" },
	{ "_ZdaPvRKSt9nothrow_t",                MS_SHAPE_FREE, "free" },
	{ "_ZdlPvSt11align_val_t",               MS_SHAPE_FREE, "free" },
	{ "_ZdaPvSt11align_val_t",               MS_SHAPE_FREE, "free" },
	{ "_ZdlPvmSt11align_val_t",              MS_SHAPE_FREE, "free" },
	{ "_ZdaPvmSt11align_val_t",              MS_SHAPE_FREE, "free" },
	{ "_ZdlPvSt11align_val_tRKSt9nothrow_t", MS_SHAPE_FREE, "free" },
	{ "_ZdaPvSt11align_val_tRKSt9nothrow_t", MS_SHAPE_FREE, "free" },
	{ NULL, 0, NULL },
};
/* clang-format on */
