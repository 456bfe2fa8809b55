/*
 * What a CPython without a global lock shows of itself: _PyRuntime begins with _Py_DebugOffsets, whose third word says so. Waits for its
 * input's end.
 */
#include "target.h"

struct {
	char cookie[8];
	uint64_t version, free_threaded, offsets[64];
} _PyRuntime = { "xdebugpy", 0x030d00f0, 1, { 0 } };

void *volatile keep;

int main(void)
{
	keep = malloc(1000);
	say_ready();
	next_command();
	return _PyRuntime.version == 0;
}
