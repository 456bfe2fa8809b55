/*
 * The code of a hostile file: a place is within the code, and the program's instructions for it name
 * registers that hold arguments. First byte: what is asked for.
 */
#include "collect/probes/placement.h"

#include "abi.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct placement_ask ask = { 0 };
	struct placement p;
	struct placement_gap gap;

	if (!size)
		return 0;
	ask.args = data[0] & 7;
	ask.returns = data[0] & 8;
	ask.moved = data[0] & 16;
	ask.code = data + 1;
	ask.len = size - 1;
	placement_find(&ask, &p);
	if (p.at && (p.at >= ask.len || p.at >= PLACEMENT_MAX_CODE || !p.emulated))
		abort();
	if (p.place && (!p.at || !ask.moved || !(p.place & MS_COOKIE_MOVED)))
		abort();
	if (ask.returns && p.place >> MS_COOKIE_SP_SHIFT & 0xffff)
		abort();
	for (size_t at = 0; at <= ask.len && at < 64; at++)
		if (placement_behind_call(ask.code, ask.len, at) && (at < 2 || at >= ask.len))
			abort();
	gap = (struct placement_gap){ 0, p.at, false };
	placement_jumps(ask.code, ask.len, 0, &gap, 1);
	return 0;
}
