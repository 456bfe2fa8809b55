#include "cmd/diff_write.h"
#include "base/cleanup.h"
#include "cmd/outputs.h"
#include "model/merge.h"

#include <errno.h>

int diff_write_profile(const struct diff_opts *o, const char *path, struct err *e)
{
	_cleanup_(profile_freep) struct profile *p = NULL;
	uint32_t from[2][PROFILE_MAX_TYPES], n = 0;
	struct value_type types[PROFILE_MAX_TYPES];
	struct profile_meta meta = *profile_get_meta(o->after);
	int r;

	meta.default_type = 0;
	for (uint32_t i = 0; i < profile_n_types(o->after); i++) {
		int j = profile_same_type(o->before, profile_type(o->after, i));

		if (j < 0)
			continue;
		if (i == profile_get_meta(o->after)->default_type)
			meta.default_type = n;
		types[n] = *profile_type(o->after, i);
		from[0][n] = (uint32_t)j;
		from[1][n++] = i;
	}
	p = profile_new(profile_dict(o->after), types, n);
	r = p ? profile_add_all(p, o->after, from[1], 1) : -ENOMEM;
	if (r == 0)
		r = profile_add_all(p, o->before, from[0], -1);
	if (r == 0)
		r = profile_set_meta(p, &meta);
	if (r < 0)
		return err_set(e, -ENOMEM, "out of memory for a difference");
	return output_profile(p, path, format_find("pprof"), &(struct render_opts){ 0 }, e);
}

int diff_write_table(const struct diff_report *r, const char *path, struct err *e)
{
	_cleanup_(sink_closep) struct sink *out = NULL;
	int rc = sink_open_file(path, &out, e);

	if (rc == 0)
		rc = diff_csv_write(r, out, e);
	return rc == 0 ? sink_commit(out, e) : rc;
}
