#include "collect/stream/otel_labels.h"
#include "base/clock.h"
#include "base/hash.h"
#include "collect/stream/label_file.h"
#include "collect/stream/label_source.h"
#include "collect/wire.h"
#include "lang/otel.h"
#include "proc/proc_maps.h"

#include <errno.h>
#include <unistd.h>

#define LOOK_MIN_NS  50000000ULL    /* between looks at a process …                    */
#define LOOK_MAX_NS  30000000000ULL /* … which are a quarter of its age apart           */
#define LOOK_SOON_NS 200000000ULL   /* … of one that has published a context            */
#define LOOK_SHARE   200            /* so many times the CPU time that looks have taken  */
#define KEPT_NS      10000000000ULL /* an ended process: its last sets may be on their way */

enum { IMAGES_MAX = 1024, MODULE_MAX = 1 << 20 };

/* What of a file is known: looked at once. */
struct file {
	uint32_t module;
	struct label_file says;
	UT_hash_handle hh;
};

struct process {
	pid_t pid;
	uint64_t since_ns, next_ns;
	bool found, counted, ended;
	struct proc_id id; /* when found      */
	struct ms_label_source row;
	uint64_t context; /* its address, 0: none yet */
	uint64_t published_ns;
	enum otel_schema schema;
	uint32_t n_keys;
	string_id *keys;
	UT_hash_handle hh;
};

struct otel_labels {
	struct label_sets *sets;
	struct dict *dict;
	struct proc_table *procs;
	struct file *files;
	struct process *processes;
	string_id key_trace, key_span;
	uint32_t spans[2]; /* that samples saw, that waits saw */
	uint64_t rest_until_ns;
	struct otel_labels_stats stats;
};

/* --- the process's context --- */

static int is_context(void *ctx, const struct proc_map *map)
{
	if (!otel_is_context(map->path))
		return 0;
	*(uint64_t *)ctx = map->start;
	return 1;
}

/* Reads the context again where it has changed. */
static void read_context(struct otel_labels *o, struct process *p)
{
	_cleanup_(freep) struct otel_process *found = calloc(1, sizeof(*found));
	const struct lang_memory mem = { label_sets_read_memory, &p->pid };
	string_id *keys;
	int r;

	if (!p->context && proc_maps_each(p->pid, is_context, &p->context, NULL) != 1)
		return;
	r = found ? otel_process_read(&mem, p->context, p->published_ns, found) : -ENOMEM;
	if (r == -ENOENT)
		p->context = 0;
	if (r < 0)
		return;
	p->published_ns = found->published_ns;
	p->schema = found->schema;
	if (found->schema == OTEL_SCHEMA_OTHER &&
	    strcmp(found->schema_name, "go_pprof_labels_v1") != 0 && !p->counted) {
		p->counted = true;
		o->stats.other_schema++;
		snprintf(o->stats.schema, sizeof(o->stats.schema), "%s", found->schema_name);
	}
	keys = calloc(found->n_keys + 1, sizeof(*keys));
	if (!keys)
		return;
	for (uint32_t i = 0; i < found->n_keys; i++)
		keys[i] = label_sets_key(o->sets, found->keys[i]);
	free(p->keys);
	p->keys = keys;
	p->n_keys = found->n_keys;
}

/* --- the thread's variable --- */

static const struct file *file_of(struct otel_labels *o, module_id module, bool main)
{
	_cleanup_(closep) int fd = -1;
	struct file *f;
	struct err e;

	HASH_FIND(hh, o->files, &module.ix, sizeof(module.ix), f);
	if (f)
		return f;
	f = hash_new(o->files, module, &module.ix);
	fd = f ? proc_table_open_module(o->procs, module, NULL) : -1;
	if (fd < 0)
		return f;
	if (label_file_read(fd, dict_str(o->dict, dict_module_get(o->dict, module)->path),
			    LABEL_FILE_THREADS, main, &f->says, &e) < 0) {
		o->stats.unread++;
		snprintf(o->stats.unread_why, sizeof(o->stats.unread_why), "%.255s", e.msg);
	}
	return f;
}

/* A block that threads make when they need it. 16 bytes an entry in glibc, whose number is before the first one. */
static bool in_block(struct ms_otel *row, uint64_t module, uint64_t off, enum label_libc libc)
{
	if (!module || module > MODULE_MAX || off > INT32_MAX || libc == LABEL_LIBC_NONE)
		return false;
	row->module = (uint32_t)module;
	row->off = (int64_t)off;
	row->dtv_bytes = libc == LABEL_LIBC_GLIBC ? 16 : 8;
	row->dtv_last = libc == LABEL_LIBC_GLIBC ? -16 : 0;
#if defined(__x86_64__)
	row->dtv = 8; /* tcbhead_t of glibc, struct pthread of musl */
#else
	row->dtv = libc == LABEL_LIBC_GLIBC ? 0 : -8;
#endif
	return true;
}

/* false: the dynamic linker has not filled it in, or in a way that is not known. */
static bool resolve(const struct elf_tls *tls, uint64_t bias, enum label_libc libc,
		    const struct lang_memory *mem, struct ms_otel *row)
{
	uint64_t slot[2], pair[2];
	size_t len = tls->access == ELF_TLS_OFFSET || tls->access == ELF_TLS_MODULE ? 8 : 16;

	if (tls->access == ELF_TLS_FIXED) {
		row->off = tls->offset;
		return true;
	}
	if (!mem->read(mem->ctx, tls->slot + bias, slot, len))
		return false;
	switch (tls->access) {
	case ELF_TLS_OFFSET:
		row->off = (int64_t)slot[0];
		return slot[0];
	case ELF_TLS_MODULE:
		return in_block(row, slot[0], (uint64_t)tls->offset, libc);
	case ELF_TLS_PAIR:
		return in_block(row, slot[0], slot[1], libc);
	default:
		if (!slot[0] || !elf_tls_desc_is_address(slot[1])) {
			row->off = (int64_t)slot[1] + tls->offset;
			return slot[0];
		}
		return mem->read(mem->ctx, slot[1], pair, sizeof(pair)) &&
		       in_block(row, pair[0], pair[1] + (uint64_t)tls->offset, libc);
	}
}

static void find_variable(struct otel_labels *o, struct process *p, struct proc *proc)
{
	_cleanup_(freep) struct proc_mapping *maps = calloc(IMAGES_MAX, sizeof(*maps));
	const struct lang_memory mem = { label_sets_read_memory, &p->pid };
	const struct proc_mapping *with = NULL;
	const struct file *f, *variable = NULL;
	enum label_libc libc = LABEL_LIBC_NONE;
	struct proc_image main = { 0 };
	uint32_t n = maps ? proc_mappings(o->procs, proc, maps, IMAGES_MAX) : 0;

	proc_images(o->procs, proc, &main, 1);
	for (uint32_t i = 0; i < n && i < IMAGES_MAX; i++) {
		if (maps[i].kind != MODULE_ELF || !maps[i].readable)
			continue;
		f = file_of(o, maps[i].module, maps[i].module.ix == main.module.ix);
		if (f && f->says.libc)
			libc = f->says.libc;
		if (f && f->says.has_variable && !variable) {
			variable = f;
			with = &maps[i];
		}
	}
	memset(&p->row, 0, sizeof(p->row));
	if (!variable || !resolve(&variable->says.tls, with->bias, libc, &mem, &p->row.otel))
		return;
	p->row.kind = MS_LABELS_OTEL;
	p->row.otel.ids =
		(uint8_t)((o->stats.spans_full[0] ? 0 : 1) | (o->stats.spans_full[1] ? 0 : 2));
	p->found = label_sets_read(o->sets, &p->id, &p->row);
	o->stats.processes += p->found;
}

/* --- when processes are looked at --- */

static void look(struct otel_labels *o, struct process *p, uint64_t now_ns)
{
	struct proc *proc = proc_table_live(o->procs, p->pid);
	uint64_t wait_ns = (now_ns - p->since_ns) / 4;

	wait_ns = wait_ns < LOOK_MIN_NS ? LOOK_MIN_NS : wait_ns;
	p->next_ns = now_ns + (wait_ns < LOOK_MAX_NS ? wait_ns : LOOK_MAX_NS);
	if (!proc)
		return;
	read_context(o, p);
	if (p->context && p->next_ns > now_ns + LOOK_SOON_NS) /* the rest may be about to come */
		p->next_ns = now_ns + LOOK_SOON_NS;
	if (p->schema == OTEL_SCHEMA_TLS && label_sets_name(o->sets, proc, &p->id))
		find_variable(o, p, proc);
}

static struct process *process_of(const struct otel_labels *o, pid_t pid)
{
	struct process *p;

	HASH_FIND(hh, o->processes, &pid, sizeof(pid), p);
	return p;
}

static void forget(struct otel_labels *o, struct process *p)
{
	HASH_DEL(o->processes, p);
	free(p->keys);
	free(p);
}

void otel_labels_ended(struct otel_labels *o, pid_t pid)
{
	struct process *p = process_of(o, pid);

	if (p && !p->found)
		forget(o, p);
	else if (p && !p->ended) {
		p->ended = true;
		p->next_ns = now_ns() + KEPT_NS;
	}
}

void otel_labels_process(struct otel_labels *o, pid_t pid, bool fresh, bool newborn,
			 uint64_t now_ns)
{
	struct process *p = process_of(o, pid);

	if (p && fresh) {
		forget(o, p);
		p = NULL;
	}
	if (!p && HASH_COUNT(o->processes) >= OTEL_PROCESSES) {
		o->stats.left_out += fresh;
		return;
	}
	p = p ? p : hash_new(o->processes, pid, &pid);
	if (!p)
		return;
	if (!p->since_ns && newborn) { /* many end at once, and none has published anything yet */
		p->since_ns = now_ns;
		p->next_ns = now_ns + LOOK_MIN_NS;
	} else if (!p->since_ns) {
		p->since_ns = now_ns > 4 * LOOK_MAX_NS ? now_ns - 4 * LOOK_MAX_NS : 1;
		look(o, p, now_ns);
	} else if (!p->found && p->next_ns > now_ns + LOOK_MIN_NS) {
		p->next_ns = now_ns + LOOK_MIN_NS;
	}
}

void otel_labels_tick(struct otel_labels *o, uint64_t now_ns)
{
	uint64_t began_ns = thread_cpu_ns(), took_ns = 0;
	struct process *p, *next;

	if (now_ns < o->rest_until_ns)
		return;
	HASH_ITER (hh, o->processes, p, next) {
		if (p->next_ns > now_ns || (p->found && !p->ended))
			continue;
		if (p->ended)
			forget(o, p);
		else
			look(o, p, now_ns);
		took_ns = thread_cpu_ns() - began_ns;
		if (took_ns > LOOK_MIN_NS / LOOK_SHARE)
			break;
	}
	o->rest_until_ns = now_ns + took_ns * LOOK_SHARE;
}

/* --- records --- */

/* No more numbers of spans, in samples or in waits. */
static void stop_spans(struct otel_labels *o, bool of_wait)
{
	o->stats.spans_full[of_wait] = true;
	for (struct process *p = o->processes; p; p = p->hh.next)
		if (p->found) {
			p->row.otel.ids &= (uint8_t) ~(1 << of_wait);
			label_sets_read(o->sets, &p->id, &p->row);
		}
}

static string_id key_of(struct otel_labels *o, struct process *p, uint16_t key)
{
	if (key == OTEL_TRACE)
		return o->key_trace;
	if (key == OTEL_SPAN)
		return o->key_span;
	if (p && key < p->n_keys)
		return p->keys[key];
	return (string_id){ 0 };
}

static enum drain_says on_context(void *ctx, const void *record, const void *more)
{
	const struct ms_context_rec *rec = record;
	const struct proc_id proc = wire_id(&rec->proc);
	struct otel_labels *o = ctx;
	struct process *p = process_of(o, (pid_t)proc.pid);
	struct label labels[OTEL_LABELS_MAX];
	struct otel_record found;
	uint32_t n = 0;
	bool of_span;

	_Static_assert((int)OTEL_LABELS_MAX <= (int)INGEST_OWN_LABELS, "there is room for them");
	_Static_assert((int)OTEL_KEY_BYTES <= (int)LABEL_KEY_BYTES, "there is room for its key");
	_Static_assert((int)OTEL_RECORD_HEAD == MS_CONTEXT_HEAD, "the same record");
	if (label_sets_has(o->sets, &proc, rec->set) ||
	    otel_record_decode(more, rec->len, &found) < 0)
		return DRAIN_TAKEN;
	o->stats.cut += rec->cut || found.more;
	if (p && found.key_most >= p->n_keys)
		read_context(o, p);
	for (uint32_t i = 0; i < found.n; i++) {
		string_id key = key_of(o, p, found.labels[i].key);

		if (key.ix)
			labels[n++] =
				(struct label){ .key = key,
						.str = dict_string(o->dict, found.labels[i].text) };
		else
			o->stats.unknown_keys++;
	}
	of_span = found.n && found.labels[0].key >= OTEL_KEYS_MAX;
	label_sets_add(o->sets, &proc, rec->set, labels, n, !of_span);
	if (of_span && ++o->spans[rec->of_wait != 0] == OTEL_SPANS)
		stop_spans(o, rec->of_wait);
	return DRAIN_TAKEN;
}

struct otel_labels_stats otel_labels_stats(const struct otel_labels *o)
{
	struct otel_labels_stats s = o->stats;

	for (const struct process *p = o->processes; p; p = p->hh.next)
		s.no_variable += p->schema == OTEL_SCHEMA_TLS && !p->found;
	return s;
}

struct otel_labels *otel_labels_new(struct label_sets *sets, struct drain *d, struct dict *dict,
				    struct proc_table *procs)
{
	struct otel_labels *o = calloc(1, sizeof(*o));

	if (!o)
		return NULL;
	o->sets = sets;
	o->dict = dict;
	o->procs = procs;
	o->key_trace = dict_string(dict, "trace_id");
	o->key_span = dict_string(dict, "span_id");
	drain_on(d, DRAIN_CONTEXT, on_context, o);
	return o;
}

void otel_labels_free(struct otel_labels *o)
{
	struct process *p, *next;

	if (!o)
		return;
	HASH_ITER (hh, o->processes, p, next)
		forget(o, p);
	hash_free(o->files);
	free(o);
}
