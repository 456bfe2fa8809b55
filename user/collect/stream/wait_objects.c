#include "collect/stream/wait_objects.h"
#include "base/hash.h"
#include "collect/wire.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <sys/stat.h>

#define OBJECTS_MAX 65536

struct object {
	struct ms_hash hash;
	uint32_t number;
	UT_hash_handle hh;
};

struct wait_objects {
	struct wait_object_fns fns;
	struct object *objects;
	uint64_t left_out;
};

static enum wait_object_kind kind_of(uint16_t mode)
{
	return S_ISSOCK(mode)  ? OBJECT_SOCKET
	       : S_ISBLK(mode) ? OBJECT_DEVICE
	       : S_ISDIR(mode) ? OBJECT_DIRECTORY
			       : OBJECT_FILE;
}

static enum drain_says on_object(void *ctx, const void *record, const void *more)
{
	const struct ms_object_rec *rec = record;
	struct wait_objects *w = ctx;
	struct wait_object object = {
		.kind = kind_of(rec->mode),
		.pid = (pid_t)rec->proc.tgid,
		.fd = (int)rec->fd,
		.ino = rec->ino,
		.major = rec->dev >> 20,
		.minor = rec->dev & 0xfffff,
		.family = rec->family,
		.local_port = rec->local_port,
		.remote_port = ntohs(rec->remote_port),
	};
	struct object *o;

	(void)more;
	HASH_FIND(hh, w->objects, &rec->hash, sizeof(rec->hash), o);
	if (o || HASH_COUNT(w->objects) >= OBJECTS_MAX)
		return DRAIN_TAKEN;
	memcpy(object.remote, rec->remote, sizeof(object.remote));
	o = hash_new(w->objects, hash, &rec->hash);
	if (o)
		o->number = w->fns.seen(w->fns.ctx, &object);
	return DRAIN_TAKEN;
}

static enum drain_says on_total(void *ctx, const void *record, const void *more)
{
	const struct ms_total_key *key = more;
	const struct ms_total *total = record;
	struct wait_object_event event = { .count = total->count, .ns = total->value };
	struct wait_objects *w = ctx;
	struct ms_total_key at = *key;
	const struct object *o;

	if (key->source != MS_OBJECTS)
		return DRAIN_NEXT;
	/* Records come before totals that name them. */
	HASH_FIND(hh, w->objects, &key->kernel, sizeof(key->kernel), o);
	if (!o) {
		w->left_out += total->count;
		return DRAIN_TAKEN;
	}
	at.source = MS_OFFCPU;
	at.kernel = (struct ms_hash){ 0, 0 };
	event.at = wire_event(&at);
	event.object = o->number;
	w->fns.waited(w->fns.ctx, &event);
	return DRAIN_TAKEN;
}

struct wait_objects *wait_objects_new(struct drain *d, const struct wait_object_fns *fns)
{
	struct wait_objects *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	w->fns = *fns;
	drain_on(d, DRAIN_OBJECT, on_object, w);
	drain_on(d, DRAIN_TOTAL, on_total, w);
	return w;
}

uint64_t wait_objects_left_out(const struct wait_objects *w)
{
	return w->left_out;
}

void wait_objects_free(struct wait_objects *w)
{
	if (!w)
		return;
	hash_free(w->objects);
	free(w);
}
