/* heaptrack's data files, or what somebody says are some. */
#include "import_input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	return fuzz_input(data, len, heaptrack_read, heaptrack_recognise);
}
