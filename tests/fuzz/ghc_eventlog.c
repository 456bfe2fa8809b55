/* Anyone's eventlog: what comes out is a profile whose bins add up, or one sentence. */
#include "import_bins.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	fuzz_bins(data, len, ghc_eventlog_read, ghc_eventlog_recognise);
	return 0;
}
