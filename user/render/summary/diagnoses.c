/*
 * What is wrong with its memory, if anything: analyse/diagnosis.h.
 */
#include "analyse/diagnosis.h"
#include "render/summary/sections.h"
#include "render/tables/cells.h"

#include <stdio.h>
#include <string.h>

void section_diagnoses_text(const struct run_summary *s, struct sink *out)
{
	struct diagnosis found[N_DIAGNOSES];
	uint32_t n = diagnose(s, found);
	char sentence[sizeof(found->evidence) + 32];

	for (uint32_t i = 0; i < n; i++) {
		snprintf(sentence, sizeof(sentence), "%s: %s", diagnosis_name(found[i].kind),
			 found[i].evidence);
		cells_labelled(out, "Diagnosis", sentence);
	}
}

/* Evidence, less what the verdict above it has said already. */
static const char *beyond_verdict(const struct run_summary *s, const struct diagnosis *d)
{
	char said[sizeof(d->evidence)];
	struct verdict v;
	size_t len;

	if (d->kind != DIAGNOSIS_LEAK || !diagnosis_leak_sentence(s, said, sizeof(said)))
		return d->evidence;
	len = strlen(said);
	summary_verdict(s, &v);
	if (!strstr(v.sentence, said) || strncmp(d->evidence, said, len) != 0)
		return d->evidence;
	len += strspn(d->evidence + len, ",; ");
	return d->evidence[len] ? d->evidence + len : d->evidence;
}

/* The evidence of the first, and the names of the others. */
void section_diagnoses_brief(const struct run_summary *s, uint32_t rows, struct sink *out)
{
	struct diagnosis found[N_DIAGNOSES];
	uint32_t n = diagnose(s, found);
	char text[sizeof(found->evidence) + 128];
	size_t len;

	(void)rows;
	if (!n)
		return;
	len = (size_t)snprintf(text, sizeof(text), "%s", diagnosis_name(found[0].kind));
	for (uint32_t i = 1; i < n; i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%s",
					i == 1 ? " (and " : ", ", diagnosis_name(found[i].kind));
	snprintf(text + len, sizeof(text) - len, "%s: %s", n > 1 ? ")" : "",
		 beyond_verdict(s, &found[0]));
	cells_line(out, "Diagnosis");
	cells_wrapped(out, text, CELLS_LABEL_WIDTH, true);
}

void section_diagnoses_json(struct json_doc *d, cJSON *root, const struct run_summary *s)
{
	struct diagnosis found[N_DIAGNOSES];
	uint32_t n = diagnose(s, found);
	cJSON *list = json_array(d, root, "diagnoses");

	for (uint32_t i = 0; i < n; i++) {
		cJSON *o = json_element(d, list);

		json_text(d, o, "kind", diagnosis_name(found[i].kind));
		json_text(d, o, "evidence", found[i].evidence);
	}
}
