#include "collect/stream/go_labels.h"
#include "base/hash.h"
#include "collect/wire.h"
#include "lang/go.h"

#include <bpf/bpf.h>
#include <stdio.h>
#include <sys/uio.h>
#include <unistd.h>

/* What of a file is known: looked at once. */
struct file {
	uint32_t module;
	uint32_t version; /* 0: not Go */
	UT_hash_handle hh;
};

struct set_key {
	struct proc_id proc;
	uint32_t set, pad;
};

struct set {
	struct set_key key;
	uint32_t n;
	struct label labels[GO_LABELS_MAX];
	UT_hash_handle hh;
};

struct go_labels {
	struct session *session;
	struct dict *dict;
	struct proc_table *procs;
	struct file *files;
	struct set *sets;
	struct go_labels_stats stats;
};

static bool read_process(void *ctx, uint64_t addr, void *buf, size_t len)
{
	/* NOLINTNEXTLINE(performance-no-int-to-ptr): an address in another process */
	struct iovec to = { buf, len }, from = { (void *)(uintptr_t)addr, len };

	return process_vm_readv(*(const pid_t *)ctx, &to, 1, &from, 1, 0) == (ssize_t)len;
}

/* Labels that memscope has itself keep their names. */
static string_id key_of(struct dict *d, const char *key)
{
	static const char *const taken[] = { "pid",          "comm",   "tid",
					     "thread",       "memory", "container",
					     "container_id", "cgroup", "ns_pid" };
	char own[GO_LABEL_BYTES + 8];

	for (size_t i = 0; i < sizeof(taken) / sizeof(taken[0]); i++)
		if (strcmp(key, taken[i]) == 0) {
			snprintf(own, sizeof(own), "app.%s", key);
			return dict_string(d, own);
		}
	return dict_string(d, key);
}

static enum drain_says on_labels(void *ctx, const void *record, const void *more)
{
	const struct ms_labels_rec *rec = record;
	struct go_labels *g = ctx;
	pid_t pid = (pid_t)rec->proc.tgid;
	const struct lang_memory mem = { read_process, &pid };
	struct go_label found[GO_LABELS_MAX];
	struct set_key key;
	struct set *set;
	int n;

	(void)more;
	memset(&key, 0, sizeof(key));
	key.proc = wire_id(&rec->proc);
	key.set = rec->set;
	HASH_FIND(hh, g->sets, &key, sizeof(key), set);
	if (set)
		return DRAIN_TAKEN;
	if (g->stats.sets >= GO_LABEL_SETS) {
		g->stats.left_out++;
		return DRAIN_TAKEN;
	}
	n = go_labels_decode(&mem, rec->at, rec->cookie, found);
	g->stats.gone += n < 0;
	set = n < 0 ? NULL : hash_new(g->sets, key, &key);
	if (!set)
		return DRAIN_TAKEN;
	g->stats.sets++;
	for (int i = 0; i < n; i++)
		set->labels[set->n++] =
			(struct label){ .key = key_of(g->dict, found[i].key),
					.str = dict_string(g->dict, found[i].value) };
	return DRAIN_TAKEN;
}

static uint32_t labels_of(void *ctx, const struct proc_id *proc, uint32_t number,
			  struct label ret_labels[INGEST_OWN_LABELS])
{
	const struct go_labels *g = ctx;
	struct set_key key;
	struct set *set;

	_Static_assert((int)INGEST_OWN_LABELS == (int)GO_LABELS_MAX, "as many");
	memset(&key, 0, sizeof(key));
	key.proc = *proc;
	key.set = number;
	HASH_FIND(hh, g->sets, &key, sizeof(key), set);
	if (!set)
		return 0;
	memcpy(ret_labels, set->labels, set->n * sizeof(*set->labels));
	return set->n;
}

static uint32_t version_of(struct go_labels *g, module_id module)
{
	_cleanup_(elf_file_closep) struct elf_file *elf = NULL;
	_cleanup_(closep) int fd = -1;
	struct file *f;

	HASH_FIND(hh, g->files, &module.ix, sizeof(module.ix), f);
	if (f)
		return f->version;
	f = hash_new(g->files, module, &module.ix);
	fd = f ? proc_table_open_module(g->procs, module, NULL) : -1;
	if (fd >= 0 && elf_file_open(fd, "", &elf, NULL) == 0)
		f->version = go_version(elf);
	return f ? f->version : 0;
}

/* How the kernel names a process: known, or to be asked for. */
static bool id_of(const struct go_labels *g, struct proc *proc, struct proc_id *ret_id)
{
	struct proc_id id = { .pid = (uint32_t)proc_pid(proc) };

	if (proc_id_of(proc, ret_id))
		return true;
	return session_name_of(g->session, proc_pid(proc), &id.start_ns, &id.exec_id) &&
	       proc_table_find(g->procs, &id) && proc_id_of(proc, ret_id);
}

bool go_labels_look(struct go_labels *g, pid_t pid)
{
	struct proc *proc = proc_table_live(g->procs, pid);
	int rows = session_map_fd(g->session, SESSION_GO_RUNTIMES);
	struct proc_image image;
	struct go_layout l;
	struct proc_id id;
	struct ms_go row;
	uint32_t version;

	if (!proc || !proc_images(g->procs, proc, &image, 1))
		return true;
	version = version_of(g, image.module);
	if (!version || go_layout_find(version, &l) < 0)
		return true;
	if (!id_of(g, proc, &id))
		return false;
	memset(&row, 0, sizeof(row));
	row.start_ns = id.start_ns;
	row.exec_id = id.exec_id;
	row.tls = l.tls;
	row.g_m = l.g_m;
	row.m_curg = l.m_curg;
	row.g_labels = l.g_labels;
	if (bpf_map_update_elem(rows, &id.pid, &row, BPF_ANY) < 0) {
		g->stats.left_out++;
		return true;
	}
	session_go_processes(g->session);
	g->stats.processes++;
	if (l.untested)
		g->stats.untested = version;
	return true;
}

struct go_labels_stats go_labels_stats(const struct go_labels *g)
{
	return g->stats;
}

struct go_labels *go_labels_new(struct session *s, struct drain *d, struct dict *dict,
				struct proc_table *procs)
{
	struct go_labels *g = calloc(1, sizeof(*g));

	if (!g)
		return NULL;
	g->session = s;
	g->dict = dict;
	g->procs = procs;
	drain_on(d, DRAIN_LABELS, on_labels, g);
	return g;
}

void go_labels_begin(struct go_labels *g, struct ingest *in)
{
	ingest_on_own_labels(in, labels_of, g);
}

void go_labels_free(struct go_labels *g)
{
	if (!g)
		return;
	hash_free(g->files);
	hash_free(g->sets);
	free(g);
}
