/*
 * Which files, devices and peers threads waited for.
 */
#include "analyse/io_waits.h"
#include "analyse/sites.h"
#include "base/clock.h"
#include "base/grow.h"
#include "base/hash.h"
#include "base/units.h"
#include "collect/stream/wait_objects.h"
#include "proc/blocked_call.h"
#include "proc/object_name.h"
#include "run/component.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#define IO_ROWS   30
#define USES_MAX  65536
#define NAMES_MAX 16384
#define TCP_NS    1000000000ULL /* how long a list of connections is used */

/* What rows are by: several connections of one name are one. */
struct name_key {
	char kind[16], name[OBJECT_NAME_MAX], device[32];
};

struct named {
	struct name_key key;
	uint32_t number;
	UT_hash_handle hh;
};

struct use_key {
	struct event_key at;
	uint64_t object;
};

struct use {
	struct use_key key;
	stack_id stack; /* 0: not come yet */
	uint64_t count, ns;
	UT_hash_handle hh;
};

struct io_waits {
	struct run *run;
	struct wait_objects *objects;
	struct named *names;
	struct named **by_number;
	uint32_t n_names, cap_names;
	struct use *uses;
	uint64_t left_out;
	char *tcp; /* connections as tcp_pid sees them, read at tcp_ns */
	pid_t tcp_pid;
	uint64_t tcp_ns;
	struct io_wait_row rows[IO_ROWS];
};

static bool wanted(const struct run_config *cfg)
{
	return cfg->sources[SOURCE_OFFCPU];
}

static int prepare(void *self, struct session_opts *opts, struct err *e)
{
	(void)self;
	(void)e;
	opts->objects = true;
	return 0;
}

static bool is_client(struct io_waits *w, const struct wait_object *object)
{
	uint64_t now = now_ns();

	if (!w->tcp || w->tcp_pid != object->pid || now - w->tcp_ns > TCP_NS) {
		free(w->tcp);
		w->tcp = endpoint_tcp_read(object->pid);
		w->tcp_pid = object->pid;
		w->tcp_ns = now;
	}
	return w->tcp && object_listens(w->tcp, object->local_port);
}

static void name_socket(struct io_waits *w, const struct wait_object *object, struct name_key *key)
{
	if (object->family != AF_INET && object->family != AF_INET6) {
		snprintf(key->kind, sizeof(key->kind), "socket");
		snprintf(key->name, sizeof(key->name),
			 object->family == AF_UNIX ? "unix" : "other");
	} else if (!object->remote_port) {
		snprintf(key->kind, sizeof(key->kind), "socket");
		snprintf(key->name, sizeof(key->name), "port %u", object->local_port);
	} else if (is_client(w, object)) {
		snprintf(key->kind, sizeof(key->kind), "client");
		snprintf(key->name, sizeof(key->name), "port %u", object->local_port);
	} else {
		snprintf(key->kind, sizeof(key->kind), "peer");
		object_address(object->family, object->remote, object->remote_port, key->name,
			       sizeof(key->name));
	}
}

static void name_file(const struct wait_object *object, struct name_key *key)
{
	snprintf(key->kind, sizeof(key->kind), "%s",
		 object->kind == OBJECT_DIRECTORY ? "directory"
		 : object->kind == OBJECT_DEVICE  ? "device"
						  : "file");
	if (!object_path(object->pid, object->fd, object->ino, key->name, sizeof(key->name)))
		snprintf(key->name, sizeof(key->name), "[inode %llu]",
			 (unsigned long long)object->ino);
	object_device(object->pid, object->major, object->minor, key->device, sizeof(key->device));
}

/* 0: there is no room for one more name. */
static uint32_t seen(void *ctx, const struct wait_object *object)
{
	struct io_waits *w = ctx;
	struct name_key key;
	struct named *n;

	memset(&key, 0, sizeof(key));
	if (object->kind == OBJECT_SOCKET)
		name_socket(w, object, &key);
	else
		name_file(object, &key);
	HASH_FIND(hh, w->names, &key, sizeof(key), n);
	if (n)
		return n->number;
	if (w->n_names >= NAMES_MAX || !GROW(w->by_number, w->n_names, w->cap_names))
		return 0;
	n = hash_new(w->names, key, &key);
	if (!n)
		return 0;
	w->by_number[w->n_names++] = n;
	n->number = w->n_names;
	return n->number;
}

static void waited(void *ctx, const struct wait_object_event *event)
{
	struct io_waits *w = ctx;
	struct use_key key;
	struct use *u;

	memset(&key, 0, sizeof(key));
	key.at = event->at;
	key.object = event->object;
	HASH_FIND(hh, w->uses, &key, sizeof(key), u);
	if (!u && event->object && HASH_COUNT(w->uses) < USES_MAX)
		u = hash_new(w->uses, key, &key);
	if (!u) {
		w->left_out += event->count;
		return;
	}
	u->count += event->count;
	u->ns += event->ns;
}

static int open_io_waits(void *self, struct err *e)
{
	struct io_waits *w = self;

	w->objects = wait_objects_new(w->run->drain, &(struct wait_object_fns){ seen, waited, w });
	return w->objects ? 0 : err_set(e, -ENOMEM, "out of memory");
}

/* While their processes are known. */
static void drained(void *self, uint64_t now_ns)
{
	struct io_waits *w = self;

	(void)now_ns;
	for (struct use *u = w->uses; u; u = u->hh.next)
		if (!u->stack.ix)
			ingest_place_stack(w->run->ingest, &u->key.at, &u->stack);
}

static int finish(void *self, struct err *e)
{
	(void)e;
	drained(self, 0);
	return 0;
}

static void report(void *self, struct run_summary *to)
{
	struct io_waits *w = self;
	_cleanup_(freep) struct io_wait *waits = calloc(HASH_COUNT(w->uses) + 1ul, sizeof(*waits));
	uint64_t left_out = w->left_out + wait_objects_left_out(w->objects);
	uint32_t n = 0;

	for (const struct use *u = w->uses; u && waits; u = u->hh.next)
		waits[n++] = (struct io_wait){ (uint32_t)u->key.object, u->stack, (int64_t)u->ns,
					       (int64_t)u->count };
	to->io_waits.rows = w->rows;
	to->io_waits.n =
		waits ? row_count(io_waits_rank(w->run->dict, waits, n, w->rows, IO_ROWS)) : 0;
	for (uint32_t i = 0; i < to->io_waits.n; i++) {
		const struct name_key *key = &w->by_number[w->rows[i].object - 1]->key;

		w->rows[i].kind = key->kind;
		w->rows[i].name = key->name;
		w->rows[i].device = key->device;
	}
	if (left_out)
		run_note(
			w->run, false,
			"%s waits for files and sockets are not in the table of these: there were too many",
			unit_count((int64_t)left_out).s);
}

static void free_io_waits(void *self)
{
	struct io_waits *w = self;

	wait_objects_free(w->objects);
	hash_free(w->names);
	hash_free(w->uses);
	free(w->by_number);
	free(w->tcp);
}

const struct component io_waits_component = {
	.name = "io_waits",
	.size = sizeof(struct io_waits),
	.wanted = wanted,
	.prepare = prepare,
	.open = open_io_waits,
	.drained = drained,
	.finish = finish,
	.report = report,
	.free = free_io_waits,
};
