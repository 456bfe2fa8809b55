/*
 * What a service says to the manager that started it, by the protocol of sd_notify(3): one datagram of lines
 * KEY=VALUE to the socket that $NOTIFY_SOCKET names.
 */
#ifndef MEMSCOPE_BASE_NOTIFY_H
#define MEMSCOPE_BASE_NOTIFY_H

#include <stdint.h>

/*
 * Never waits. 1: sent. 0: nobody listens ($NOTIFY_SOCKET is not set). -errno: it could not be sent; -EINVAL: the
 * name is neither a path nor of the abstract namespace ("@…").
 */
int notify_send(const char *lines);

/* After how long without WATCHDOG=1 the manager ends us, ns; 0: it does not watch this process. */
uint64_t notify_watchdog_ns(void);

#endif
