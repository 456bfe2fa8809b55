/*
 * What is read of GHC's code and names, of any bytes: StgRun(), where stacks are, versions, z-encoded names.
 */
#include "elf/demangle.h"
#include "elf/ghc_version.h"
#include "lang/ghc.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	char out[DEMANGLE_OUT_MAX];
	struct ghc_offsets o;
	uint32_t saved;

	if (ghc_run_read(data, len, &saved) && (!saved || saved % 8 || saved > 1 << 20))
		abort();
	if (ghc_offsets_read(data, len, &o) &&
	    (o.reg_tso % 8 || o.stack_sp < 16 || o.tso_stack % 8))
		abort();
	if (ghc_version_of((const char *)data, len) >> 16 > 20)
		abort();
	if (demangle_ghc((const char *)data, len, out) && strnlen(out, sizeof(out)) == sizeof(out))
		abort();
	return 0;
}
