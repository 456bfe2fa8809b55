/* Where an address of a process is, in a word, by its list of mappings. */
#ifndef MEMSCOPE_PROC_PLACE_H
#define MEMSCOPE_PROC_PLACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define PLACE_MAX 128

/*
 * "[heap]", "[stack]", "libfoo.so" (a file's name without its directory), "[anonymous]", or a name that the process gave (prctl(2),
 * PR_SET_VMA_ANON_NAME). false: the process has gone, or nothing is mapped there; `out` is then "".
 */
bool place_of_address(pid_t pid, uint64_t addr, char *out, size_t cap);

/* The same by a line of /proc/PID/maps. false: the address is not in it. */
bool place_in_line(const char *line, uint64_t addr, char *out, size_t cap);

#endif
