/* One line of /proc/PID/stat: the name in it is the process's choice. */
#include "base/cleanup.h"
#include "screen/processes.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_(freep) char *line = strndup((const char *)data, size);
	struct processes p;

	processes_init(&p, 100, 4096);
	for (uint64_t reading = 1; line && reading < 3; reading++) {
		struct process *row;
		bool bad;

		processes_begin(&p, reading * 1000000000);
		row = processes_stat(&p, line, &bad);
		if (row && (bad || processes_find(&p, row->pid) != row ||
			    strlen(row->comm) >= sizeof(row->comm)))
			abort();
		processes_end(&p);
		if (p.n != (row != NULL))
			abort();
	}
	processes_fini(&p);
	return 0;
}
