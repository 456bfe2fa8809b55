#include "collect/wire.h"

struct proc_id event_proc(const struct event_key *key)
{
	struct ms_total_key k = wire_key(key);

	return wire_id(&k.proc);
}

struct event_key event_user_stack(const struct event_key *key)
{
	struct ms_total_key k = wire_key(key);

	k.kernel = (struct ms_hash){ 0, 0 };
	k.tid = 0;
	return wire_event(&k);
}
