#include "model/mem_log.h"

#include <stdlib.h>

void mem_log_free(struct mem_log *log)
{
	if (!log)
		return;
	free(log->rows);
	free(log);
}
