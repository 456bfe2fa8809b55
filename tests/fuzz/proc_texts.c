/*
 * Texts of /proc of which a part is the target's choice (mount points, names of file systems), or that are long and seldom looked at:
 * a connection, a mounted device, a blocked system call, CPU times, a counter of a control group. First byte: what is asked for.
 * Whatever is found fits into its room; a call that is written as the kernel writes it is read back.
 */
#include "proc/blocked_call.h"
#include "proc/cgroup.h"
#include "proc/cgroup_use.h"
#include "proc/cpu_use.h"
#include "proc/object_name.h"
#include "proc/served.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool is)
{
	if (!is)
		abort();
}

static void as_connections(const char *text)
{
	static const uint64_t inodes[] = { 0, 1, 21, 12345 };
	char name[ENDPOINT_NAME_MAX];

	for (size_t i = 0; i < sizeof(inodes) / sizeof(*inodes); i++) {
		enum endpoint_kind kind;

		memset(name, 'x', sizeof(name));
		kind = endpoint_in_tcp(text, inodes[i], name, sizeof(name));
		check(strnlen(name, sizeof(name)) < sizeof(name));
		check((kind != ENDPOINT_NONE) == (name[0] != '\0') &&
		      (!*name || strchr(name, ':')));
		check(kind != ENDPOINT_FILE);
	}
	object_listens(text, 80);
}

static void as_mount(const char *text)
{
	uint64_t dev;
	char name[8];
	bool served;

	memset(name, 'x', sizeof(name));
	check(!object_device_in(text, 0, 21, name, sizeof(name)) ||
	      (strnlen(name, sizeof(name)) < sizeof(name) && strstr(text, name)));
	check(!served_in_line(text, &dev, &served) || strstr(text, " - "));
}

static void as_call(const char *text)
{
	struct blocked_call call, again;
	char line[256];

	if (!blocked_call_parse(text, &call))
		return;
	check(call.nr >= 0);
	snprintf(line, sizeof(line),
		 "%ld 0x%" PRIx64 " 0x%" PRIx64 " 0x%" PRIx64 " 0x%" PRIx64 " 0x%" PRIx64
		 " 0x%" PRIx64 " 0x7ffd0 0x7f00\n",
		 call.nr, call.args[0], call.args[1], call.args[2], call.args[3], call.args[4],
		 call.args[5]);
	check(blocked_call_parse(line, &again) && memcmp(&call, &again, sizeof(call)) == 0);
}

static void as_cpu_times(const char *text)
{
	struct cpu_use use;
	cpu_set_t of;

	CPU_ZERO(&of);
	CPU_SET(0, &of);
	CPU_SET(3, &of);
	check(cpu_use_parse(text, &of, &use) == (use.n > 0));
}

static void as_cgroup(const char *text)
{
	char unit[64];

	check(cgroup_stat_value(text, "anon") >= MEM_UNKNOWN);
	memset(unit, 'x', sizeof(unit));
	check(!cgroup_unit_in(text, unit, sizeof(unit)) ||
	      (strnlen(unit, sizeof(unit)) < sizeof(unit) && strstr(text, unit)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static void (*const readers[])(const char *) = { as_connections, as_mount, as_call,
							 as_cpu_times, as_cgroup };
	char *text;

	if (!size)
		return 0;
	text = strndup((const char *)data + 1, size - 1);
	readers[data[0] % (sizeof(readers) / sizeof(*readers))](text);
	free(text);
	return 0;
}
