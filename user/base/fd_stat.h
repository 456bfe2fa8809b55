/*
 * fstat(2) as the kernel has it. The C library asks by newfstatat(), whose path a filter of system calls cannot see: a cell (cell.h) may
 * ask of descriptors, and not of paths.
 */
#ifndef MEMSCOPE_BASE_FD_STAT_H
#define MEMSCOPE_BASE_FD_STAT_H

#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* 0, or -1 and errno. */
static inline int fd_stat(int fd, struct stat *ret)
{
	return (int)syscall(SYS_fstat, fd, ret);
}

#endif
