#include "proc/cpu_use.h"
#include "base/small_file.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { IDLE = 3, IOWAIT = 4, FIELDS = 8, TEXT_BYTES = 256 * 1024 };

static char text_of_stat[TEXT_BYTES]; /* 1,024 CPUs of at most 110 bytes each, and more */

bool cpu_use_parse(const char *text, const cpu_set_t *of, struct cpu_use *ret_use)
{
	const int64_t tick_ns = 1000000000LL / sysconf(_SC_CLK_TCK);
	struct cpu_use use = { 0 };

	for (const char *line = text; strncmp(line, "cpu", 3) == 0;) {
		unsigned long long t[FIELDS];
		unsigned cpu;

		if (sscanf(line, "cpu%u %llu %llu %llu %llu %llu %llu %llu %llu", &cpu, &t[0],
			   &t[1], &t[2], &t[3], &t[4], &t[5], &t[6], &t[7]) == 1 + FIELDS &&
		    cpu < CPU_SETSIZE && CPU_ISSET(cpu, of)) {
			for (int i = 0; i < FIELDS; i++)
				*(i == IDLE || i == IOWAIT ? &use.idle_ns : &use.busy_ns) +=
					(int64_t)t[i] * tick_ns;
			use.n++;
		}
		line += strcspn(line, "\n");
		line += *line == '\n';
	}
	*ret_use = use;
	return use.n > 0;
}

bool cpu_use_read(const cpu_set_t *of, struct cpu_use *ret_use)
{
	return small_file_read(AT_FDCWD, "/proc/stat", text_of_stat, sizeof(text_of_stat)) > 0 &&
	       cpu_use_parse(text_of_stat, of, ret_use);
}

bool cpu_list_parse(const char *text, cpu_set_t *ret)
{
	unsigned first, last;
	int n;

	CPU_ZERO(ret);
	while (sscanf(text, "%u%n", &first, &n) == 1) {
		text += n;
		last = first;
		if (sscanf(text, "-%u%n", &last, &n) == 1)
			text += n;
		for (; first <= last && first < CPU_SETSIZE; first++)
			CPU_SET(first, ret);
		if (*text != ',')
			break;
		text++;
	}
	return CPU_COUNT(ret) > 0 && (!*text || *text == '\n');
}

bool cpus_online(cpu_set_t *ret)
{
	char text[4096];

	return small_file_read(AT_FDCWD, "/sys/devices/system/cpu/online", text, sizeof(text)) >
		       0 &&
	       cpu_list_parse(text, ret);
}
