#include "cmd/outputs.h"

#include "base/strbuf.h"
#include "cmd/cmd.h"

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
		"--output: the format is not known from \"%.200s\"; end it in %s, or give "
		"--format",
		path, strbuf_oom(&endings) ? "" : endings.s);
	return NULL;
}

void output_tell_lost_errors(const struct profile *p, const struct format *format)
{
	struct err e;

	if (!profile_has_errors(p) || strcmp(format->name, "pprof") == 0)
		return;
	err_set(&e, 0,
		"these values are estimates, and %s has no place for their errors; pprof (.pb.gz) "
		"keeps them",
		format->name);
	command_fail(EXIT_DONE, &e);
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
