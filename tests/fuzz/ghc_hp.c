/* Anyone's .hp file: what comes out is a profile whose bins add up, or one sentence. */
#include "import_bins.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	fuzz_bins(data, len, ghc_hp_read, ghc_hp_recognise);
	return 0;
}
