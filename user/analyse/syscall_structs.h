/*
 * What arguments of system calls point to, in the form of strace. What was read may be cut off anywhere.
 */
#ifndef MEMSCOPE_ANALYSE_SYSCALL_STRUCTS_H
#define MEMSCOPE_ANALYSE_SYSCALL_STRUCTS_H

#include "base/strbuf.h"
#include "model/trace_event.h"

/* ["ls", "-l"]: the strings stand behind each other. */
void argv_put(struct strbuf *b, const struct trace_bytes *r);
/* {sa_family=AF_INET, …} */
void address_put(struct strbuf *b, const struct trace_bytes *r);
/* {st_mode=S_IFREG|0644, st_size=7, ...} */
void stat_put(struct strbuf *b, const struct trace_bytes *r);
/* Of `n` struct pollfd those that were read. */
void poll_put(struct strbuf *b, const struct trace_bytes *r, uint64_t n);
/* A struct epoll_event. */
void event_put(struct strbuf *b, const struct trace_bytes *r);
/* SIGINT; [INT RT_2], ~[KILL]; {sa_handler=…} */
void signal_put(struct strbuf *b, int number);
void sigset_put(struct strbuf *b, uint64_t set);
void action_put(struct strbuf *b, const struct trace_bytes *r);
void limits_put(struct strbuf *b, const uint64_t limits[2]);
/* [{WIFEXITED(s) && WEXITSTATUS(s) == 0}] */
void status_put(struct strbuf *b, int status);
/*
 * Of `n` struct iovec those that were read (TRACE_VECTORS), with up to `most` bytes of each; `left`: bytes that are in all of
 * them together, UINT64_MAX: as many as they are long. An address where the bytes could not be read.
 */
void vectors_put(struct strbuf *b, const struct trace_bytes *r, uint64_t n, uint64_t left,
		 uint32_t most);
/* A struct msghdr: its vectors and itself. `name_room`: bytes for an address before the call; -1: the same as now. */
void msg_put(struct strbuf *b, const struct trace_bytes reads[2], int64_t name_room, uint64_t left,
	     uint32_t most);
/* SO_ERROR */
void option_put(struct strbuf *b, uint32_t level, uint32_t option);
/* TCGETS, _IOC(_IOC_READ, 0x7a, 0x5, 0x4) */
void request_put(struct strbuf *b, uint32_t request);
/* What its argument points to, where that is known; false: nothing was added. */
bool request_put_arg(struct strbuf *b, uint32_t request, const struct trace_bytes *r);

#endif
