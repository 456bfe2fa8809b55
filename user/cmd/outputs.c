#include "cmd/outputs.h"

#include "base/strbuf.h"

#include <errno.h>
#include <string.h>

const struct format *output_format(const char *path, int chosen, const char *usual, struct err *e)
{
	_cleanup_(strbuf_free) struct strbuf endings = { 0 };
	const struct format *format = chosen >= 0              ? &formats[chosen]
				      : strcmp(path, "-") == 0 ? format_find(usual)
							       : format_for_path(path);

	if (format)
		return format;
	for (const struct format *f = formats; f->name; f++)
		strbuf_printf(&endings, "%s%s",
			      f == formats ? ""
			      : f[1].name  ? ", "
					   : " or ",
			      f->ext);
	err_set(e, -EINVAL,
		"--output: what to write does not follow from \"%.200s\"; end it in %s, or give "
		"--format",
		path, strbuf_oom(&endings) ? "" : endings.s);
	return NULL;
}

int output_profile(const struct profile *p, const char *path, const struct format *format,
		   const struct render_opts *opts, struct err *e)
{
	_cleanup_(sink_closep) struct sink *out = NULL;
	int r = sink_open_file(path, &out, e);

	if (r == 0 && format->gzip)
		r = sink_gzip(out, e);
	if (r == 0)
		r = format->write(p, opts, out, e);
	return r == 0 ? sink_commit(out, e) : r;
}
