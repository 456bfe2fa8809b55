#include "collect/wire.h"

struct proc_id event_proc(const struct event_key *key)
{
	struct ms_total_key k = wire_key(key);

	return wire_id(&k.proc);
}
