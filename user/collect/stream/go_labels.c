#include "collect/stream/go_labels.h"
#include "base/hash.h"
#include "collect/stream/label_file.h"
#include "collect/stream/label_source.h"
#include "collect/wire.h"
#include "lang/go.h"

#include <unistd.h>

/* What of a file is known: looked at once. */
struct file {
	uint32_t module;
	uint32_t version; /* 0: not Go */
	UT_hash_handle hh;
};

struct go_labels {
	struct label_sets *sets;
	struct dict *dict;
	struct proc_table *procs;
	struct file *files;
	struct go_labels_stats stats;
};

static enum drain_says on_labels(void *ctx, const void *record, const void *more)
{
	const struct ms_labels_rec *rec = record;
	const struct proc_id proc = wire_id(&rec->proc);
	struct go_labels *g = ctx;
	pid_t pid = (pid_t)proc.pid;
	const struct lang_memory mem = { label_sets_read_memory, &pid };
	struct go_label found[GO_LABELS_MAX];
	struct label labels[GO_LABELS_MAX];
	int n;

	_Static_assert((int)GO_LABELS_MAX <= (int)INGEST_OWN_LABELS, "there is room for them");
	_Static_assert((int)GO_LABEL_BYTES <= (int)LABEL_KEY_BYTES, "there is room for its key");
	(void)more;
	if (label_sets_has(g->sets, &proc, rec->set))
		return DRAIN_TAKEN;
	n = go_labels_decode(&mem, rec->at, rec->cookie, found);
	g->stats.gone += n < 0;
	for (int i = 0; i < n; i++)
		labels[i] = (struct label){ .key = label_sets_key(g->sets, found[i].key),
					    .str = dict_string(g->dict, found[i].value) };
	if (n >= 0)
		g->stats.sets +=
			label_sets_add(g->sets, &proc, rec->set, labels, (uint32_t)n, true);
	return DRAIN_TAKEN;
}

static uint32_t version_of(struct go_labels *g, module_id module)
{
	_cleanup_(closep) int fd = -1;
	struct label_file says;
	struct file *f;
	struct err e;

	HASH_FIND(hh, g->files, &module.ix, sizeof(module.ix), f);
	if (f)
		return f->version;
	f = hash_new(g->files, module, &module.ix);
	fd = f ? proc_table_open_module(g->procs, module, NULL) : -1;
	if (fd < 0)
		return 0;
	if (label_file_read(fd, dict_str(g->dict, dict_module_get(g->dict, module)->path),
			    LABEL_FILE_GO, true, &says, &e) < 0) {
		g->stats.unread++;
		snprintf(g->stats.unread_why, sizeof(g->stats.unread_why), "%.255s", e.msg);
	}
	f->version = says.go_version;
	return f->version;
}

bool go_labels_look(struct go_labels *g, pid_t pid)
{
	struct proc *proc = proc_table_live(g->procs, pid);
	struct proc_image image;
	struct go_layout l;
	struct proc_id id;
	struct ms_label_source row;
	uint32_t version;

	if (!proc || !proc_images(g->procs, proc, &image, 1))
		return true;
	version = version_of(g, image.module);
	if (!version || go_layout_find(version, &l) < 0)
		return true;
	if (!label_sets_name(g->sets, proc, &id))
		return false;
	memset(&row, 0, sizeof(row));
	row.kind = MS_LABELS_GO;
	row.go = (struct ms_go){
		.tls = l.tls, .g_m = l.g_m, .m_curg = l.m_curg, .g_labels = l.g_labels
	};
	if (!label_sets_read(g->sets, &id, &row))
		return true;
	g->stats.processes++;
	if (l.untested)
		g->stats.untested = version;
	return true;
}

struct go_labels_stats go_labels_stats(const struct go_labels *g)
{
	return g->stats;
}

struct go_labels *go_labels_new(struct label_sets *sets, struct drain *d, struct dict *dict,
				struct proc_table *procs)
{
	struct go_labels *g = calloc(1, sizeof(*g));

	if (!g)
		return NULL;
	g->sets = sets;
	g->dict = dict;
	g->procs = procs;
	drain_on(d, DRAIN_LABELS, on_labels, g);
	return g;
}

void go_labels_free(struct go_labels *g)
{
	if (!g)
		return;
	hash_free(g->files);
	free(g);
}
