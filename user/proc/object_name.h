/* What to call files and sockets that processes have open. */
#ifndef MEMSCOPE_PROC_OBJECT_NAME_H
#define MEMSCOPE_PROC_OBJECT_NAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define OBJECT_NAME_MAX 160

/* The path of a descriptor's file, if that still is the file with this inode. false: it has been closed. */
bool object_path(pid_t pid, int fd, uint64_t ino, char *out, size_t cap);

/*
 * The device that files of this number are on: "sda1" (of /sys/dev/block), else what the process's list of mounts says: "tmpfs",
 * "overlay"; else the number, "0:25".
 */
void object_device(pid_t pid, unsigned major, unsigned minor, char *out, size_t cap);
/* The same by a line of /proc/PID/mountinfo. false: another device's. */
bool object_device_in(const char *line, unsigned major, unsigned minor, char *out, size_t cap);

/* "10.0.0.3:5432", "[::1]:80". `family`: AF_INET or AF_INET6. */
void object_address(int family, const uint8_t *address, uint16_t port, char *out, size_t cap);

/* Does this text of net/tcp (endpoint_tcp_read()) have a socket that listens at that port? */
bool object_listens(const char *tcp, uint16_t port);

#endif
