/*
 * Files and sockets that threads waited for, as bpf/descriptors.bpf.h adds the waits up.
 */
#ifndef MEMSCOPE_COLLECT_STREAM_WAIT_OBJECTS_H
#define MEMSCOPE_COLLECT_STREAM_WAIT_OBJECTS_H

#include "collect/stream/drain.h"

enum wait_object_kind { OBJECT_FILE, OBJECT_DIRECTORY, OBJECT_DEVICE, OBJECT_SOCKET };

/* A file or socket, as it was when first waited for. Addresses and ports of TCP and UDP alone. */
struct wait_object {
	enum wait_object_kind kind;
	pid_t pid;
	int fd;        /* of that process, then */
	uint64_t ino;
	unsigned major, minor;
	int family;    /* of a socket: AF_… */
	uint16_t local_port, remote_port; /* 0: none */
	uint8_t remote[16];               /* address, in network order */
};

struct wait_object_event {
	struct event_key at; /* where it waited: for ingest_place_stack(); of no thread */
	uint32_t object;     /* the number that seen() has returned                     */
	uint64_t count, ns;
};

struct wait_object_fns {
	/* A new one: soon after it was first waited for. Returns what to call it in events. */
	uint32_t (*seen)(void *ctx, const struct wait_object *object);
	void (*waited)(void *ctx, const struct wait_object_event *event);
	void *ctx;
};

/* As totals are drained; before ingest_listen(). `d` is borrowed. NULL: out of memory. */
struct wait_objects;
struct wait_objects *wait_objects_new(struct drain *d, const struct wait_object_fns *fns);
/* Waits for objects whose record did not come, or for which there was no room. */
uint64_t wait_objects_left_out(const struct wait_objects *w);
void wait_objects_free(struct wait_objects *w);
DEFINE_CLEANUP(struct wait_objects *, wait_objects_freep, wait_objects_free)

#endif
