#include "model/pprof.h"
#include "render/formats/writers.h"

int pprof_format_write(const struct profile *p, const struct render_opts *opts, struct sink *out,
		       struct err *e)
{
	return pprof_write(p, (module_id){ 0 }, out, e);
}
