/* DHAT's file, or what somebody says is one. */
#include "import_input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	return fuzz_input(data, len, dhat_read, dhat_recognise);
}
