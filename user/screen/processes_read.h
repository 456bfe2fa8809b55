/* Reads /proc for processes.h, and which container each process is in. */
#ifndef MEMSCOPE_SCREEN_PROCESSES_READ_H
#define MEMSCOPE_SCREEN_PROCESSES_READ_H

#include "base/err.h"
#include "screen/processes.h"

struct processes_reader;

int processes_reader_new(struct processes_reader **ret_reader, struct err *e);
void processes_reader_free(struct processes_reader *r);

/* One reading. */
int processes_read(struct processes_reader *r, struct processes *p, struct err *e);
/* The command line, or the name in brackets where there is none; read when it is first asked for. */
const char *process_command(struct process *row);

#endif
