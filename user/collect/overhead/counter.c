#include "collect/overhead/counter.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

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

void counters_read(const struct session *s, enum session_map map, uint32_t n, uint64_t *ret_sums)
{
	int cpus = libbpf_num_possible_cpus(), fd = session_map_fd(s, map);
	_cleanup_(freep) uint64_t *slots = cpus > 0 ? calloc((size_t)n * (size_t)cpus, 8) : NULL;
	_cleanup_(freep) uint32_t *keys = calloc(n, sizeof(*keys));
	uint32_t got = n, token;

	memset(ret_sums, 0, n * sizeof(*ret_sums));
	if (!slots || !keys)
		return;
	if (bpf_map_lookup_batch(fd, NULL, &token, keys, slots, &got, NULL) < 0 && errno != ENOENT)
		for (got = 0; got < n; got++) {
			keys[got] = got;
			if (bpf_map_lookup_elem(fd, &got, slots + (size_t)got * (size_t)cpus) < 0)
				memset(slots + (size_t)got * (size_t)cpus, 0, (size_t)cpus * 8);
		}
	for (uint32_t i = 0; i < got; i++)
		for (int cpu = 0; cpu < cpus && keys[i] < n; cpu++)
			ret_sums[keys[i]] += slots[(size_t)i * (size_t)cpus + (size_t)cpu];
}
