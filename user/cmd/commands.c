#include "cmd/cmd.h"

#include <stdio.h>

const struct command commands[] = {
	{ .name = "record",
	  .summary = "profile a process, a command or the host, and write it all down",
	  .options = &record_options,
	  .run = cmd_record },
	{ .name = "flame",
	  .summary = "draw profiles already taken as a flame graph",
	  .options = &flame_options,
	  .run = cmd_flame },
	{ .name = "report",
	  .summary = "the functions of profiles already taken, largest first",
	  .options = &report_options,
	  .run = cmd_report },
	{ .name = "annotate",
	  .summary = "the cost of each source line and instruction of a function",
	  .options = &annotate_options,
	  .run = cmd_annotate },
	{ .name = "diff",
	  .summary = "what changed between two profiles, or two runs",
	  .options = &diff_options,
	  .run = cmd_diff },
	{ .name = "merge",
	  .summary = "add profiles up into one",
	  .options = &merge_options,
	  .run = cmd_merge },
	{ .name = "convert",
	  .summary = "write profiles already taken in another format",
	  .options = &convert_options,
	  .run = cmd_convert },
	{ .name = "trend",
	  .summary = "a log of the memory of processes over days, and what it says",
	  .options = &trend_options,
	  .run = cmd_trend },
	{ .name = "heap",
	  .summary = "what a process's heap consists of, and what keeps it",
	  .options = &heap_options,
	  .run = cmd_heap },
	{ .name = "top",
	  .summary = "a live screen: processes, their profiles, their heaps",
	  .options = &top_options,
	  .run = cmd_top },
	{ .name = "clean",
	  .summary = "remove old runs and windows",
	  .options = &clean_options,
	  .run = cmd_clean },
	{ .name = "doctor",
	  .summary = "what works on this machine, what does not, why, and what to do",
	  .options = &doctor_options,
	  .run = cmd_doctor },
	{ 0 },
};

int command_fail(enum exit_status status, const struct err *e)
{
	err_print(e->msg);
	return status;
}
