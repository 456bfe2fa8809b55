#include "unwind/roots.h"

#include <string.h>

const struct root roots_elf[] = {
	{ "_start", false, ROOT_END },         /* every C library; the first instruction        */
	{ "_dl_start_user", false, ROOT_END }, /* glibc's ld.so: calls constructors, then jumps */
	{ "_dlstart", false, ROOT_END },       /* musl's                                        */
	{ "__clone", false, ROOT_CHILD },      /* musl: no CFI; glibc's says it itself          */
	{ "clone", false, ROOT_CHILD },
	/* V8's builtins, compiled into node and Chromium: standard frames, no FDEs. */
	{ "Builtins_", true, ROOT_FP },
	/* … and its collector's search of the stack: assembly with a standard frame (src/heap/base/asm). */
	{ "PushAllRegistersAndIterateStack", false, ROOT_FP },
	/* Debian's libnode.so is stripped: this is exported beside them, and they are 1.4 MB. */
	{ "_ZNK2v88internal7Isolate18embedded_blob_codeEv", false, ROOT_FP_HOLE },
	{ NULL },
};

/*
 * Go's runtime, src/runtime/asm_ARCH.s and sys_linux_ARCH.s. Where its own tracebacks end, ours do
 * (topofstack() in traceback.go): mcall never returns, its goroutine has been put aside, and so has
 * one that is preempted where it would have got more stack.
 */
const struct root roots_go[] = {
	{ "runtime.goexit", false, ROOT_END },
	{ "runtime.mstart", false, ROOT_END },
	{ "runtime.rt0_go", false, ROOT_END },
	{ "_rt0_", true, ROOT_END },
	{ "runtime.mcall", false, ROOT_END },
	{ "runtime.systemstack", false, ROOT_SWITCH },
	/* Stands for a goroutine that has gone to another stack: cgocallback returns to it. */
	{ "runtime.systemstack_switch", false, ROOT_EARLY },
	{ "runtime.asmcgocall", false, ROOT_SWITCH },
	{ "runtime.morestack", false, ROOT_END },
	{ "runtime.gogo", false, ROOT_GUESS },
	{ "gogo", false, ROOT_GUESS },
	/* These call the vDSO on the thread's first stack. */
	{ "runtime.nanotime1", false, ROOT_SP_KEPT },
	{ "runtime.walltime", false, ROOT_SP_KEPT },
	{ "runtime.walltime1", false, ROOT_SP_KEPT },
	{ "time.now", false, ROOT_SP_KEPT },
	{ NULL },
};

const struct root *root_find(const struct root *table, const char *name, size_t len)
{
	for (const struct root *r = table; r->name; r++) {
		size_t n = strlen(r->name);

		if (len < n || memcmp(name, r->name, n) != 0)
			continue;
		/* Go's assembly has its calling convention behind its name. */
		if (r->prefix || len == n || (len >= n + 4 && !memcmp(name + n, ".abi", 4)))
			return r;
	}
	return NULL;
}

bool root_may_be(const struct root *table, const char *name)
{
	for (const struct root *r = table; r->name; r++) {
		size_t i = 0;

		while (r->name[i] && r->name[i] == name[i])
			i++;
		if (!r->name[i])
			return true;
	}
	return false;
}
