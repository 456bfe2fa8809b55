#include "render/summary/summary_json.h"

#include "render/summary/sections.h"

#include <errno.h>

DEFINE_CLEANUP(cJSON *, json_freep, cJSON_Delete)
DEFINE_CLEANUP(char *, json_text_freep, cJSON_free)

int summary_json_write(const struct run_summary *s, struct sink *out, struct err *e)
{
	_cleanup_(json_freep) cJSON *root = cJSON_CreateObject();
	_cleanup_(json_text_freep) char *written = NULL;
	struct json_doc d = { .oom = !root };

	for (const struct summary_section *section = summary_sections; section->name; section++)
		if (section->json)
			section->json(&d, root, s);
	if (!d.oom)
		written = cJSON_Print(root);
	if (!written)
		return err_set(e, -ENOMEM, "out of memory for the summary");
	sink_puts(out, written);
	sink_puts(out, "\n");
	return 0;
}
