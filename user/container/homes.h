/*
 * The homes of users, where engines without a daemon of root's keep what they know.
 *
 * To list users asks name services, which may look at hundreds of files or at another host. They are listed again when `passwd`
 * (/etc/passwd) is another one, and every HOMES_NS, for not all users are in it.
 */
#ifndef MEMSCOPE_CONTAINER_HOMES_H
#define MEMSCOPE_CONTAINER_HOMES_H

#include <stdint.h>

#define HOMES_NS 120000000000ULL
enum { HOMES_MAX = 4096 };

/* Each once, without root's and "/". Good until the next call. For one thread at a time, as getpwent(3) is. */
const char *const *homes_of_users(const char *passwd, uint64_t now_ns, uint32_t *ret_n);

#endif
