#include "model/source.h"

const char *const source_names[N_SOURCES] = {
	[SOURCE_ONCPU] = "oncpu",   [SOURCE_OFFCPU] = "offcpu",     [SOURCE_ALLOC] = "alloc",
	[SOURCE_GROWTH] = "growth", [SOURCE_SYSCALLS] = "syscalls", [SOURCE_EVENTS] = "events",
};

const char *const stack_verdict_names[N_STACK_VERDICTS] = {
	[STACK_COMPLETE] = "complete", [STACK_TRUNCATED] = "truncated",
	[STACK_NO_TABLE] = "no table", [STACK_UNREADABLE] = "unreadable",
	[STACK_GUESSED] = "guessed",   [STACK_LOST] = "lost",
};
