#include "collect/overhead/counter.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#define MAX_CPUS 1024

uint64_t counter_read(const struct session *s, enum stat_id id)
{
	static _Thread_local uint64_t slots[MAX_CPUS];
	int n = libbpf_num_possible_cpus();
	uint32_t key = id;
	uint64_t sum = 0;

	if (n > MAX_CPUS || bpf_map_lookup_elem(session_map_fd(s, SESSION_STATS), &key, slots) < 0)
		return 0;
	for (int i = 0; i < n; i++)
		sum += slots[i];
	return sum;
}
