#include "render/tables/mem_table.h"

#include "base/strbuf.h"
#include "base/units.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include <cjson/cJSON.h>

enum { KB_WIDTH = 10, PERCENT_WIDTH = 6 };

struct mem_table {
	struct sink *out;
	cJSON *json;     /* an array of processes, or NULL */
	cJSON *mappings; /* of the process in hand         */
	cJSON *total, *groups;
	bool maps, begun;
	struct mem_mapping sum;
	/* What the percentages are of; `mixed`: not the same for all processes. */
	int64_t of_kb;
	bool is_limit, mixed, any;
};

static const struct {
	const char *label, *key;
	size_t at;
} columns[] = {
	{ "RSS", "rss_kb", offsetof(struct mem_sample, rss_kb) },
	{ "PSS", "pss_kb", offsetof(struct mem_sample, pss_kb) },
	{ "Shared", "shared_kb", offsetof(struct mem_sample, shared_kb) },
	{ "Private", "private_kb", offsetof(struct mem_sample, private_kb) },
	{ "Anonymous", "anonymous_kb", offsetof(struct mem_sample, anonymous_kb) },
	{ "File", "file_kb", offsetof(struct mem_sample, file_kb) },
	{ "Swap", "swap_kb", offsetof(struct mem_sample, swap_kb) },
};

static const struct {
	const char *label, *key;
	size_t at;
} map_columns[] = {
	{ "Kbytes", "size_kb", offsetof(struct mem_mapping, size_kb) },
	{ "RSS", "rss_kb", offsetof(struct mem_mapping, rss_kb) },
	{ "PSS", "pss_kb", offsetof(struct mem_mapping, pss_kb) },
	{ "Dirty", "dirty_kb", offsetof(struct mem_mapping, dirty_kb) },
	{ "Anon", "anonymous_kb", offsetof(struct mem_mapping, anonymous_kb) },
	{ "Swap", "swap_kb", offsetof(struct mem_mapping, swap_kb) },
};

#define N(array) (sizeof(array) / sizeof(*(array)))

static int64_t field(const void *row, size_t at)
{
	int64_t value;

	memcpy(&value, (const char *)row + at, sizeof(value));
	return value;
}

static void put_kb(struct sink *out, int64_t kb)
{
	if (kb < 0)
		sink_printf(out, " %*s", KB_WIDTH, "-");
	else
		sink_printf(out, " %*" PRId64, KB_WIDTH, kb);
}

static void add_kb(cJSON *o, const char *key, int64_t kb)
{
	if (kb < 0)
		cJSON_AddNullToObject(o, key);
	else
		cJSON_AddNumberToObject(o, key, (double)kb);
}

int mem_table_open(struct sink *out, bool maps, bool json, struct mem_table **ret_table,
		   struct err *e)
{
	_cleanup_(mem_table_freep) struct mem_table *t = calloc(1, sizeof(*t));

	if (t && json)
		t->json = cJSON_CreateArray();
	if (!t || (json && !t->json))
		return err_set(e, -ENOMEM, "out of memory for a table");
	t->out = out;
	t->maps = maps;
	*ret_table = TAKE_PTR(t);
	return 0;
}

static void put_sum(struct mem_table *t)
{
	if (!t->begun || !t->maps || t->json)
		return;
	sink_printf(t->out, "%-16s", "total");
	for (size_t i = 0; i < N(map_columns); i++)
		put_kb(t->out, field(&t->sum, map_columns[i].at));
	sink_puts(t->out, "\n");
}

static void put_heads(struct mem_table *t)
{
	if (!t->begun || t->maps) {
		sink_printf(t->out, "%s%8s", t->begun ? "\n" : "", "PID");
		for (size_t i = 0; i < N(columns); i++)
			sink_printf(t->out, " %*s", KB_WIDTH, columns[i].label);
		sink_printf(t->out, " %*s  Command\n", PERCENT_WIDTH, "%Mem");
	}
}

static void put_map_heads(struct mem_table *t)
{
	sink_printf(t->out, "\n%-16s", "Address");
	for (size_t i = 0; i < N(map_columns); i++)
		sink_printf(t->out, " %*s", KB_WIDTH, map_columns[i].label);
	sink_puts(t->out, " Mode  Mapping\n");
}

/* RSS in percent of `of_kb`; below 0: not known. */
static double percent(const struct mem_sample *s, int64_t of_kb)
{
	return s->rss_kb < 0 || of_kb <= 0 ? -1 : 100.0 * (double)s->rss_kb / (double)of_kb;
}

static void put_percent(struct sink *out, double value)
{
	if (value < 0)
		sink_printf(out, " %*s", PERCENT_WIDTH, "-");
	else
		sink_printf(out, " %*.1f", PERCENT_WIDTH, value);
}

static void json_process(struct mem_table *t, const struct mem_table_process *p,
			 const char *command)
{
	cJSON *o = cJSON_CreateObject();
	double of = percent(&p->use, p->of_kb);

	cJSON_AddNumberToObject(o, "pid", p->pid);
	if (p->ns_pid)
		cJSON_AddNumberToObject(o, "ns_pid", p->ns_pid);
	cJSON_AddStringToObject(o, "name", p->name);
	cJSON_AddStringToObject(o, "command", command);
	cJSON_AddNumberToObject(o, "time_s", (double)p->use.time_ns / 1e9);
	for (size_t i = 0; i < N(columns); i++)
		add_kb(o, columns[i].key, field(&p->use, columns[i].at));
	if (of < 0)
		cJSON_AddNullToObject(o, "mem_percent");
	else
		cJSON_AddNumberToObject(o, "mem_percent", of);
	add_kb(o, p->is_limit ? "limit_kb" : "machine_kb", p->of_kb);
	t->mappings = t->maps ? cJSON_AddArrayToObject(o, "mappings") : NULL;
	cJSON_AddItemToArray(t->json, o);
}

static void take_base(struct mem_table *t, const struct mem_table_process *p)
{
	t->mixed |= t->any && (t->of_kb != p->of_kb || t->is_limit != p->is_limit);
	t->any = true;
	t->of_kb = p->of_kb;
	t->is_limit = p->is_limit;
}

void mem_table_process(struct mem_table *t, const struct mem_table_process *p)
{
	_cleanup_(strbuf_free) struct strbuf command = { 0 };

	strbuf_add_clean(&command, p->command, strlen(p->command));
	take_base(t, p);
	if (t->json) {
		json_process(t, p, command.s ? command.s : "");
		return;
	}
	put_sum(t);
	put_heads(t);
	t->begun = true;
	t->sum = (struct mem_mapping){ 0 };
	sink_printf(t->out, "%8d", (int)p->pid);
	for (size_t i = 0; i < N(columns); i++)
		put_kb(t->out, field(&p->use, columns[i].at));
	put_percent(t->out, percent(&p->use, p->of_kb));
	if (command.len)
		sink_printf(t->out, "  %s", command.s);
	else
		sink_printf(t->out, "  [%s]", p->name);
	if (p->ns_pid)
		sink_printf(t->out, " (pid %d in its container)", (int)p->ns_pid);
	sink_puts(t->out, "\n");
	if (t->maps)
		put_map_heads(t);
}

static void json_mapping(struct mem_table *t, const struct mem_mapping *m, const char *name)
{
	cJSON *o = cJSON_CreateObject();
	char start[24];

	snprintf(start, sizeof(start), "%" PRIx64, m->start);
	cJSON_AddStringToObject(o, "start", start);
	for (size_t i = 0; i < N(map_columns); i++)
		add_kb(o, map_columns[i].key, field(m, map_columns[i].at));
	cJSON_AddStringToObject(o, "mode", m->mode);
	cJSON_AddStringToObject(o, "name", name);
	cJSON_AddBoolToObject(o, "deleted", m->deleted);
	cJSON_AddItemToArray(t->mappings, o);
}

void mem_table_mapping(struct mem_table *t, const struct mem_mapping *m)
{
	struct strbuf name = { 0 };

	strbuf_add_clean(&name, m->name, strlen(m->name));
	if (t->json) {
		json_mapping(t, m, name.s ? name.s : "");
		strbuf_free(&name);
		return;
	}
	sink_printf(t->out, "%016" PRIx64, m->start);
	for (size_t i = 0; i < N(map_columns); i++) {
		int64_t kb = field(m, map_columns[i].at);
		int64_t sum = field(&t->sum, map_columns[i].at);

		put_kb(t->out, kb);
		sum = kb > 0 ? sum + kb : sum;
		memcpy((char *)&t->sum + map_columns[i].at, &sum, sizeof(sum));
	}
	sink_printf(t->out, " %s  %s%s\n", m->mode, name.len ? name.s : "[ anon ]",
		    m->deleted ? " (deleted)" : "");
	strbuf_free(&name);
}

void mem_table_total(struct mem_table *t, const struct mem_sample *s)
{
	if (t->json) {
		t->total = cJSON_CreateObject();
		for (size_t i = 0; i < N(columns); i++)
			add_kb(t->total, columns[i].key, field(s, columns[i].at));
		return;
	}
	put_sum(t);
	if (t->maps)
		put_heads(t);
	t->begun = false;
	sink_printf(t->out, "%8s", "total");
	for (size_t i = 0; i < N(columns); i++)
		put_kb(t->out, field(s, columns[i].at));
	put_percent(t->out, t->mixed ? -1 : percent(s, t->of_kb));
	sink_printf(t->out, "  %u process%s\n", s->processes, s->processes == 1 ? "" : "es");
}

static const struct {
	const char *label, *key;
	size_t at;
} group_columns[] = {
	{ "charged", "charged_kb", offsetof(struct mem_group, charged_kb) },
	{ "anonymous", "anonymous_kb", offsetof(struct mem_group, anonymous_kb) },
	{ "file", "file_kb", offsetof(struct mem_group, file_kb) },
	{ "kernel", "kernel_kb", offsetof(struct mem_group, kernel_kb) },
	{ "limit", "limit_kb", offsetof(struct mem_group, limit_kb) },
};

static void json_group(struct mem_table *t, const struct mem_table_group *g, const char *name)
{
	cJSON *o = cJSON_CreateObject();

	cJSON_AddStringToObject(o, "name", name);
	cJSON_AddStringToObject(o, "path", g->path);
	if (g->id)
		cJSON_AddStringToObject(o, "container_id", g->id);
	if (g->engine)
		cJSON_AddStringToObject(o, "engine", g->engine);
	cJSON_AddNumberToObject(o, "processes", (double)g->use.processes);
	for (size_t i = 0; i < N(group_columns); i++)
		add_kb(o, group_columns[i].key, field(&g->use, group_columns[i].at));
	if (!t->groups)
		t->groups = cJSON_CreateArray();
	cJSON_AddItemToArray(t->groups, o);
}

void mem_table_group(struct mem_table *t, const struct mem_table_group *g)
{
	_cleanup_(strbuf_free) struct strbuf name = { 0 };

	strbuf_add_clean(&name, g->name, strlen(g->name));
	if (t->json) {
		json_group(t, g, name.s ? name.s : "");
		return;
	}
	sink_printf(t->out, "\n%s", name.len ? name.s : "?");
	if (g->id)
		sink_printf(t->out, " (%s%s%.12s)", g->engine ? g->engine : "",
			    g->engine && *g->engine ? " " : "", g->id);
	if (g->use.charged_kb < 0) {
		sink_puts(t->out, ": nothing accounts for the memory of its control group here\n");
		return;
	}
	sink_puts(t->out, ", by its control group (kB):\n");
	for (size_t i = 0; i < N(group_columns); i++) {
		put_kb(t->out, field(&g->use, group_columns[i].at));
		sink_printf(t->out, "  %s\n", group_columns[i].label);
	}
}

/* An array of processes, or an object that has it. */
static cJSON *whole(struct mem_table *t)
{
	cJSON *all;

	if (!t->groups)
		return t->json;
	all = cJSON_CreateObject();
	cJSON_AddItemToObject(all, "processes", t->json);
	if (t->total)
		cJSON_AddItemToObject(all, "total", t->total);
	cJSON_AddItemToObject(all, "groups", t->groups);
	t->total = t->groups = NULL;
	return all;
}

static void put_bases(const struct mem_table *t)
{
	if (!t->any)
		return;
	sink_puts(t->out, "\nSizes in kB of 1,024 bytes; %Mem: RSS in percent of ");
	if (t->mixed)
		sink_puts(t->out, "the memory limit of its container or service, "
				  "of the machine's memory where there is none\n");
	else
		sink_printf(t->out, "%s%s\n",
			    t->is_limit ? "the memory limit of its container or service, "
					: "the machine's memory, ",
			    unit_bytes(t->of_kb * 1024).s);
}

int mem_table_end(struct mem_table *t, struct err *e)
{
	char *text;

	put_sum(t);
	if (!t->json) {
		put_bases(t);
		return 0;
	}
	t->json = whole(t);
	text = cJSON_Print(t->json);
	if (!text)
		return err_set(e, -ENOMEM, "out of memory for a table");
	sink_puts(t->out, text);
	sink_puts(t->out, "\n");
	cJSON_free(text);
	return 0;
}

void mem_table_free(struct mem_table *t)
{
	if (!t)
		return;
	cJSON_Delete(t->json);
	cJSON_Delete(t->total);
	cJSON_Delete(t->groups);
	free(t);
}
