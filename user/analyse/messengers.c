#include "analyse/messengers.h"

#include "analyse/name_match.h"

#include <string.h>

/* clang-format off */

/* Images that only carry a request further. */
static const char *const modules[] = {
	"libc.so*",     "libc-2*",      "ld-linux*",      "ld-musl*",      "libpthread*",
	"libstdc++*",   "libc++*",      "libjemalloc*",   "libtcmalloc*",  "libmimalloc*",
	"libgcc_s*",    "[vdso]",       "libmemscope-alloc*",
};

/* Functions that allocate or free; in their own image (static binaries) or as wrappers. */
static const char *const allocators[] = {
	"malloc", "calloc", "realloc", "reallocarray", "free", "cfree", "posix_memalign",
	"aligned_alloc", "memalign", "valloc", "pvalloc", "malloc_usable_size", "free_sized",
	"__libc_malloc", "__libc_calloc", "__libc_realloc", "__libc_free", "__libc_memalign",
	"_int_malloc", "_int_free*", "_int_realloc", "_int_memalign", "malloc_consolidate", "sysmalloc",
	"tcache_*", "unlink_chunk*", "systrim*", "operator new*", "operator delete*", "_Znwm*", "_Znam*",
	"_ZdlPv*", "_ZdaPv*", "je_*", "_rjem_*", "mallocx", "rallocx", "sdallocx", "dallocx", "tc_*", "mi_*",
	"__rust_alloc*", "__rust_realloc*", "__rust_dealloc*", "__rdl_*", "alloc::alloc::*",
	"zmalloc*", "zcalloc*", "zrealloc*", "zfree*", "ztrymalloc*", "ztrycalloc*", "ztryrealloc*",
	"xmalloc*", "xcalloc*", "xrealloc*", "xzalloc*", "xstrdup*", "xstrndup*",
	"g_malloc*", "g_realloc*", "g_try_malloc*", "g_slice_*", "g_free*", "g_strdup*",
	"PyMem_*", "_PyMem_*", "PyObject_Malloc", "PyObject_Calloc", "PyObject_Realloc",
	"PyObject_Free", "_PyObject_Malloc", "_PyObject_Calloc", "_PyObject_Realloc", "_PyObject_Free",
	"pymalloc_*",
	"palloc*", "repalloc*", "pfree", "AllocSet*", "MemoryContextAlloc*",
	"sqlite3Malloc*", "sqlite3Mem*", "sqlite3Db*alloc*", "sqlite3_malloc*", "sqlite3_realloc*",
	"sqlite3_free", "ngx_alloc", "ngx_calloc", "ngx_palloc*", "ngx_pnalloc", "ngx_pcalloc",
	"apr_palloc*", "apr_pcalloc*", "CRYPTO_malloc", "CRYPTO_zalloc", "CRYPTO_realloc",
	"CRYPTO_free", "Perl_safesys*", "_emalloc*", "_erealloc*", "_efree*", "ruby_x*alloc*", "uv__malloc",
	"strdup", "strndup", "__strdup", "__strndup",
	"malloc [by *", "calloc [by *", "aligned_alloc [by *", "realloc [by *", "operator new [by *",
};

/* clang-format on */

/* Library code that is compiled into its user; of Haskell the packages that come with GHC. */
static const char *const library_prefixes[] = {
	"std::",
	"__gnu_cxx::",
	"alloc::",
	"core::",
	"<alloc::",
	"<core::",
	"<std::",
	"__gthread_", /* what std::mutex is made of in libstdc++ */
	"base_",
	"ghc-prim_",
	"bytestring-",
	"containers-",
	"text-",
	/* of GHC's run-time system, what allocates */
	"stg_",
	"allocatePinned",
	"allocateMightFail",
	"allocGroupOnNode",
	"alloc_mega_group",
};

/* Java's own classes; stubs of its compilers, which are in brackets. */
static const char *const lang_library_prefixes[] = { "[",    "java.", "javax.",
						     "jdk.", "sun.",  "com.sun." };

/* The packages that come with Go, by the first part of their paths; no other module's path begins without a dot there, as
 * a rule. */
static const char *const go_packages[] = {
	"archive", "arena",   "bufio",    "builtin", "bytes",   "cmp",      "compress", "container",
	"context", "crypto",  "database", "debug",   "embed",   "encoding", "errors",   "expvar",
	"flag",    "fmt",     "go",       "hash",    "html",    "image",    "index",    "internal",
	"io",      "iter",    "log",      "maps",    "math",    "mime",     "net",      "os",
	"path",    "plugin",  "reflect",  "regexp",  "runtime", "slices",   "sort",     "strconv",
	"strings", "structs", "sync",     "syscall", "testing", "text",     "time",     "unicode",
	"unique",  "unsafe",  "vendor",   "weak",
};

/* Behind the dot of a function that a C compiler has made of another: "sort.part.0". */
static const char *const c_suffixes[] = { "part*",     "isra*", "constprop*", "cold*",
					  "lto_priv*", "llvm*", "localalias*" };

/* What Rust's library implements traits for, beside its own types. */
static const char *const rust_primitives[] = {
	"u8",  "u16", "u32",  "u64",   "u128",   "usize", "i8",   "i16",
	"i32", "i64", "i128", "isize", "f32",    "f64",   "bool", "char",
	"str", "T",   "[T]",  "&T",    "&mut T", "&str",  "()",
};

/* Where the qualified name begins: after the return type, which a demangled template shows. */
static const char *qualified_name(const char *name)
{
	const char *start = name;
	int depth = 0;

	for (const char *c = name; *c; c++) {
		if (*c == '<')
			depth++;
		else if (*c == '>')
			depth--;
		else if (*c == '(' && depth == 0)
			break;
		else if (*c == ' ' && depth == 0 && strncmp(name, "operator", 8) != 0)
			start = c + 1;
	}
	return start;
}

static bool begins_with_one(const char *name, const char *const *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (strncmp(name, list[i], strlen(list[i])) == 0)
			return true;
	return false;
}

#define BEGINS_WITH_ONE(name, list) begins_with_one(name, list, sizeof(list) / sizeof((list)[0]))

/* "<u8 as alloc::vec::spec_from_elem::SpecFromElem>::from_elem": a trait of the library for a type of the language. A
 * trait of the library for the program's own type is the program's code. */
static bool is_rust_impl_of_library(const char *name)
{
	const char *as = *name == '<' ? strstr(name, " as ") : NULL;

	if (!as || !BEGINS_WITH_ONE(as + 4, library_prefixes))
		return false;
	for (size_t i = 0; i < sizeof(rust_primitives) / sizeof(rust_primitives[0]); i++)
		if (strlen(rust_primitives[i]) == (size_t)(as - name - 1) &&
		    strncmp(name + 1, rust_primitives[i], (size_t)(as - name - 1)) == 0)
			return true;
	return false;
}

bool messenger_of_language(const char *name, const char *module)
{
	const char *file = strstr(name, " (");

	if (!file || BEGINS_WITH_ONE(name, lang_library_prefixes) ||
	    strncmp(file, " (<internal:", 12) == 0)
		return true;
	return strcmp(module, "[JavaScript]") == 0 && strncmp(file, " (node:", 7) == 0;
}

static bool digit_follows(const char *path, const char *folder)
{
	const char *at = strstr(path, folder);

	return at && at[strlen(folder)] >= '0' && at[strlen(folder)] <= '9';
}

bool messenger_file(const char *path)
{
	if (digit_follows(path, "/lib/python"))
		return !strstr(path, "/site-packages/") && !strstr(path, "/dist-packages/");
	if (digit_follows(path, "/lib/ruby/"))
		return !strstr(path, "/gems/");
	/* "/usr/share/perl5" has what Debian's packages bring, "/usr/share/perl/5.36" Perl's own. */
	return strncmp(path, "<frozen ", 8) == 0 || digit_follows(path, "/perl/") ||
	       strstr(path, "/perl-base/");
}

static bool is_library_code(const char *name)
{
	return BEGINS_WITH_ONE(qualified_name(name), library_prefixes) ||
	       is_rust_impl_of_library(name);
}

bool messenger_of_go(const char *name)
{
	return strncmp(name, "runtime.", 8) == 0;
}

bool messenger_of_go_library(const char *name)
{
	size_t path = strcspn(name, "[("), slash = strcspn(name, "/"), first;
	const char *dot;

	first = slash < path ? slash : strcspn(name, ".");
	dot = slash < path ? name : name + first;
	if (slash >= path &&
	    (*dot != '.' || NAME_IN(c_suffixes, dot + 1) || (dot[1] >= '0' && dot[1] <= '9')))
		return false;
	for (size_t i = 0; i < sizeof(go_packages) / sizeof(go_packages[0]); i++)
		if (strlen(go_packages[i]) == first && strncmp(name, go_packages[i], first) == 0)
			return true;
	return false;
}

bool messenger_module(const char *module)
{
	return NAME_IN(modules, module);
}

bool messenger_allocator(const char *name)
{
	return NAME_IN(allocators, name);
}

bool messenger(const char *name, const char *module)
{
	return messenger_module(module) || messenger_allocator(name) || is_library_code(name);
}
