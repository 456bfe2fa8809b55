#include "collect/stream/label_sets.h"
#include "base/clock.h"
#include "base/hash.h"
#include "collect/stream/label_source.h"
#include "collect/wire.h"
#include "proc/peek.h"

#include <bpf/bpf.h>
#include <stdio.h>

struct set_key {
	struct proc_id proc;
	uint32_t number, pad;
};

struct set {
	struct set_key key;
	uint32_t n;
	bool counted;
	struct label *labels;
	UT_hash_handle hh;
};

struct label_sets {
	struct session *session;
	struct dict *dict;
	struct proc_table *procs;
	struct set *sets;
	uint64_t forget_ns; /* when those of processes that have ended may be forgotten again */
	struct label_sets_stats stats;
};

#define FORGET_NS 10000000000ULL /* between two times */

string_id label_sets_key(struct label_sets *sets, const char *key)
{
	char own[LABEL_KEY_BYTES + 8];

	if (!label_is_reserved(key))
		return dict_string(sets->dict, key);
	snprintf(own, sizeof(own), "app.%s", key);
	return dict_string(sets->dict, own);
}

bool label_sets_read_memory(void *ctx, uint64_t addr, void *buf, size_t len)
{
	return peek(*(const pid_t *)ctx, addr, buf, len);
}

static struct set *find(const struct label_sets *sets, const struct proc_id *proc, uint32_t number)
{
	struct set_key key;
	struct set *set;

	memset(&key, 0, sizeof(key));
	key.proc = *proc;
	key.number = number;
	HASH_FIND(hh, sets->sets, &key, sizeof(key), set);
	return set;
}

bool label_sets_has(const struct label_sets *sets, const struct proc_id *proc, uint32_t number)
{
	return find(sets, proc, number);
}

/* Has its process been forgotten? Till then totals of it may be on their way. */
static bool is_forgotten(const struct label_sets *sets, const struct set *set)
{
	struct proc *last;
	struct proc_id id;

	if (!sets->procs)
		return false;
	last = proc_table_last(sets->procs, (pid_t)set->key.proc.pid);
	return !last || (proc_id_of(last, &id) && id.start_ns != set->key.proc.start_ns);
}

/* There is no room: what went makes some. */
static void forget_ended(struct label_sets *sets)
{
	uint64_t now = now_ns();
	struct set *set, *next;

	if (now < sets->forget_ns)
		return;
	sets->forget_ns = now + FORGET_NS;
	HASH_ITER (hh, sets->sets, set, next) {
		if (!is_forgotten(sets, set))
			continue;
		sets->stats.sets -= set->counted;
		HASH_DEL(sets->sets, set);
		free(set->labels);
		free(set);
	}
}

bool label_sets_add(struct label_sets *sets, const struct proc_id *proc, uint32_t number,
		    const struct label *labels, uint32_t n, bool counted)
{
	struct label *copy = calloc(n ? n : 1, sizeof(*copy));
	struct set_key key;
	struct set *set;

	if (counted && sets->stats.sets >= LABEL_SETS)
		forget_ended(sets);

	memset(&key, 0, sizeof(key));
	key.proc = *proc;
	key.number = number;
	set = !copy || (counted && sets->stats.sets >= LABEL_SETS)
		      ? NULL
		      : hash_new(sets->sets, key, &key);
	if (!set) {
		free(copy);
		sets->stats.left_out++;
		return false;
	}
	memcpy(copy, labels, n * sizeof(*copy));
	set->labels = copy;
	set->n = n;
	set->counted = counted;
	sets->stats.sets += counted;
	return true;
}

static uint32_t labels_of(void *ctx, const struct proc_id *proc, uint32_t number,
			  struct label ret_labels[INGEST_OWN_LABELS])
{
	const struct set *set = find(ctx, proc, number);

	if (!set)
		return 0;
	memcpy(ret_labels, set->labels, set->n * sizeof(*set->labels));
	return set->n;
}

bool label_sets_name(struct label_sets *sets, struct proc *proc, struct proc_id *ret_id)
{
	struct proc_id id = { .pid = (uint32_t)proc_pid(proc) };

	if (proc_id_of(proc, ret_id))
		return true;
	return session_name_of(sets->session, proc_pid(proc), &id.start_ns, &id.exec_id) &&
	       proc_table_find(sets->procs, &id) && proc_id_of(proc, ret_id);
}

bool label_sets_read(struct label_sets *sets, const struct proc_id *proc,
		     struct ms_label_source *from)
{
	int rows = session_map_fd(sets->session, SESSION_LABEL_SOURCES);
	struct ms_label_source old;

	from->start_ns = proc->start_ns;
	from->exec_id = proc->exec_id;
	if (bpf_map_lookup_elem(rows, &proc->pid, &old) == 0 && old.start_ns == from->start_ns &&
	    old.exec_id == from->exec_id && old.kind == MS_LABELS_GO)
		return true;
	if (bpf_map_update_elem(rows, &proc->pid, from, BPF_ANY) < 0) {
		sets->stats.left_out++;
		return false;
	}
	session_label_sources(sets->session);
	return true;
}

void label_sets_ended(struct label_sets *sets, pid_t pid)
{
	uint32_t key = (uint32_t)pid;

	bpf_map_delete_elem(session_map_fd(sets->session, SESSION_LABEL_SOURCES), &key);
}

struct label_sets_stats label_sets_stats(const struct label_sets *sets)
{
	return sets->stats;
}

struct label_sets *label_sets_new(struct session *s, struct dict *dict, struct proc_table *procs)
{
	struct label_sets *sets = calloc(1, sizeof(*sets));

	if (!sets)
		return NULL;
	sets->session = s;
	sets->dict = dict;
	sets->procs = procs;
	return sets;
}

void label_sets_begin(struct label_sets *sets, struct ingest *in)
{
	ingest_on_own_labels(in, labels_of, sets);
}

void label_sets_free(struct label_sets *sets)
{
	if (!sets)
		return;
	for (struct set *s = sets->sets; s; s = s->hh.next)
		free(s->labels);
	hash_free(sets->sets);
	free(sets);
}
