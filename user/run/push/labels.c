#include "run/push/labels.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Replaces what has that name. */
static int set(struct push_labels *to, const char *name, size_t len, const char *value)
{
	struct strbuf clean = { 0 };
	char *text, *copy;
	uint32_t i = 0;

	strbuf_add_clean(&clean, value, strlen(value));
	text = clean.s || strbuf_oom(&clean) ? strbuf_take(&clean) : strdup("");
	if (!text)
		return -ENOMEM;
	while (i < to->n &&
	       (strlen(to->list[i].name) != len || strncmp(to->list[i].name, name, len) != 0))
		i++;
	if (i < to->n) {
		free(to->list[i].value);
		to->list[i].value = text;
		return 0;
	}
	copy = i < PUSH_LABELS_MAX ? strndup(name, len) : NULL;
	if (!copy) {
		free(text);
		return i < PUSH_LABELS_MAX ? -ENOMEM : 0;
	}
	to->list[to->n++] = (struct push_label){ copy, text };
	return 0;
}

static int set_own(struct push_labels *to, const char *name, const char *value)
{
	return value && *value ? set(to, name, strlen(name), value) : 0;
}

/* "env=prod"; names that begin with "__" are a store's own. */
static int set_asked(struct push_labels *to, const char *label)
{
	size_t len = strcspn(label, "=");
	const char *value = label[len] ? label + len + 1 : "";

	if (strncmp(label, "__", 2) == 0)
		return 0;
	if (len == 12 && strncmp(label, "service_name", len) == 0)
		return set(to, "service.name", len, value);
	return set(to, label, len, value);
}

/* The text that all samples have under `key`; NULL: none, or not all the same. */
static const char *common_text(const struct profile *p, const char *key)
{
	const char *common = NULL;

	for (uint32_t i = 0; i < profile_n_samples(p); i++) {
		const struct label *l =
			dict_label_find(profile_dict(p), profile_sample(p, i).labels, key);
		const char *text = l ? dict_str(profile_dict(p), l->str) : NULL;

		if (!text || (common && strcmp(common, text) != 0))
			return NULL;
		common = text;
	}
	return common;
}

int push_labels_of(const struct run_config *cfg, const struct profile *p, const char *folder,
		   struct push_labels *ret_labels)
{
	const char *base = cfg->dir ? strrchr(cfg->dir, '/') : NULL,
		   *target = base ? base + 1 : cfg->dir, *container = common_text(p, "container");
	struct push_labels labels = { 0 };
	char host[65] = "";
	int rc;

	gethostname(host, sizeof(host) - 1);
	rc = set_own(&labels, "service.name",
		     folder && container ? container
		     : folder            ? folder
					 : target);
	if (rc == 0)
		rc = set_own(&labels, "host.name", host);
	if (rc == 0)
		rc = set_own(&labels, "container.name", container);
	if (rc == 0 && container)
		rc = set_own(&labels, "container.id", common_text(p, "container_id"));
	for (uint32_t i = 0; rc == 0 && i < cfg->n_labels; i++)
		rc = set_asked(&labels, cfg->labels[i]);
	if (rc < 0)
		push_labels_fini(&labels);
	else
		*ret_labels = labels;
	return rc;
}

void push_labels_fini(struct push_labels *labels)
{
	for (uint32_t i = 0; i < labels->n; i++) {
		free(labels->list[i].name);
		free(labels->list[i].value);
	}
	labels->n = 0;
}

const char *push_label(const struct push_labels *labels, const char *name)
{
	for (uint32_t i = 0; i < labels->n; i++)
		if (strcmp(labels->list[i].name, name) == 0)
			return labels->list[i].value;
	return NULL;
}

void push_label_name(const char *name, char *out, size_t cap)
{
	static const char *const names[][2] = {
		{ "container.name", "container" },
		{ "host.name", "hostname" },
	};
	size_t len;

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (strcmp(name, names[i][0]) == 0)
			name = names[i][1];
	len = (size_t)snprintf(out, cap, "%s%s", *name >= '0' && *name <= '9' ? "_" : "", name);
	for (size_t i = 0; i < len && i < cap - 1; i++)
		if (!((out[i] >= 'a' && out[i] <= 'z') || (out[i] >= 'A' && out[i] <= 'Z') ||
		      (out[i] >= '0' && out[i] <= '9')))
			out[i] = '_';
}
