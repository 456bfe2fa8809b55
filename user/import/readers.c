#include "import/readers.h"

#include "base/gunzip.h"
#include "base/strbuf.h"
#include "model/pprof.h"

#include <fcntl.h>
#include <sys/stat.h>

enum { MAX_FILE_BYTES = 1 << 30 };

static int read_pprof(struct dict *d, struct bytes data, const char *name,
		      const struct import_opts *opts, struct import_info *info,
		      struct profile **ret_profile, struct err *e)
{
	return pprof_read(d, data.data, data.len, name, ret_profile, e);
}

const struct reader readers[] = {
	{ "pprof", "pprof profile (profile.proto), as memscope, Go and others write it",
	  pprof_recognise, read_pprof },
	{ "heap", "heap dumps of jemalloc (heap_v2), gperftools and tcmalloc", heap_dump_recognise,
	  heap_dump_read },
	{ "perf", "what `perf script` prints", perf_script_recognise, perf_script_read },
	{ "folded", "folded stacks: root;…;leaf COUNT on each line", folded_recognise,
	  folded_read },
	{ 0 },
};

static int not_recognised(const char *name, struct err *e)
{
	_cleanup_(strbuf_free) struct strbuf known = { 0 };

	for (const struct reader *r = readers; r->name; r++)
		strbuf_printf(&known, "%s%s", r == readers ? "" : ", ", r->name);
	return err_set(e, -EBADMSG, "%s: not a profile of a known format (%s)", name,
		       strbuf_oom(&known) ? "" : known.s);
}

/* What people give instead of what it was made from, or is to be made to. NULL: none of these. */
static const char *known_mistake(struct bytes data)
{
	static const char picture[] =
		"is a picture or a page; give the .pb.gz or .folded that it was made from";
	static const struct {
		const char *begin, *sentence;
	} known[] = {
		{ "<?xml", picture },
		{ "<svg", picture },
		{ "<!DOCTYPE", picture },
		{ "MSHEAP",
		  "is a snapshot of a heap: memscope heap census reads it, memscope heap diff compares two" },
		{ "<html", picture },
		{ "{\n", "is JSON, and no profile of a known format" },
		{ "{\"", "is JSON, and no profile of a known format" },
		{ "PERFILE2", "is a recording of perf; give what perf script -i prints of it" },
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
		if (data.len >= strlen(known[i].begin) &&
		    memcmp(data.data, known[i].begin, strlen(known[i].begin)) == 0)
			return known[i].sentence;
	return NULL;
}

static int read_plain(struct dict *d, struct bytes data, const char *name,
		      const struct import_opts *opts, struct profile **ret_profile,
		      struct import_info *ret_info, struct err *e)
{
	static const struct import_opts nothing_known;
	struct import_info info = { 0 };
	int r;

	if (!data.len)
		return err_set(e, -EBADMSG, "%s: is empty", name);
	if (known_mistake(data))
		return err_set(e, -EBADMSG, "%s: %s", name, known_mistake(data));
	for (const struct reader *row = readers; row->name; row++) {
		if (!row->recognise(data))
			continue;
		info.format = row->name;
		r = row->read(d, data, name, opts ? opts : &nothing_known, &info, ret_profile, e);
		if (r == 0 && ret_info)
			*ret_info = info;
		return r;
	}
	return not_recognised(name, e);
}

int import_bytes(struct dict *d, struct bytes data, const char *name,
		 const struct import_opts *opts, struct profile **ret_profile,
		 struct import_info *ret_info, struct err *e)
{
	_cleanup_(freep) void *plain = NULL;
	size_t plain_len;
	int r;

	if (!is_gzip(data))
		return read_plain(d, data, name, opts, ret_profile, ret_info, e);
	r = gunzip_file(data, name, &plain, &plain_len, e);
	if (r < 0)
		return r;
	return read_plain(d, bytes_of(plain, plain_len), name, opts, ret_profile, ret_info, e);
}

static int read_fd(int fd, const char *name, struct strbuf *ret_text, struct err *e)
{
	_cleanup_(strbuf_free) struct strbuf text = { 0 };
	char buf[64 << 10];
	ssize_t n;

	while ((n = read(fd, buf, sizeof(buf))) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_set(e, -errno, "%s: cannot be read: %m", name);
		if (text.len + (size_t)n > MAX_FILE_BYTES)
			return err_set(e, -EFBIG, "%s: larger than any profile (over %d bytes)",
				       name, MAX_FILE_BYTES);
		strbuf_add(&text, buf, (size_t)n);
		if (strbuf_oom(&text))
			return err_set(e, -ENOMEM, "%s: out of memory while reading it", name);
	}
	*ret_text = text;
	text = (struct strbuf){ 0 };
	return 0;
}

int import_read(struct dict *d, const char *path, const struct import_opts *opts,
		struct profile **ret_profile, struct import_info *ret_info, struct err *e)
{
	_cleanup_(strbuf_free) struct strbuf text = { 0 };
	_cleanup_(closep) int own_fd = -1;
	bool from_stdin = !strcmp(path, "-");
	const char *name = from_stdin ? "standard input" : path;
	struct stat st;
	int r;

	if (!from_stdin) {
		own_fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
		if (own_fd < 0)
			return err_set(e, -errno, "%s: cannot be opened: %m", name);
		if (fstat(own_fd, &st) == 0 && S_ISDIR(st.st_mode))
			return err_set(
				e, -EISDIR,
				"%s: is a directory; name a profile in it, as in %s/oncpu.pb.gz",
				name, name);
	}
	r = read_fd(from_stdin ? STDIN_FILENO : own_fd, name, &text, e);
	if (r < 0)
		return r;
	return import_bytes(d, bytes_of(text.s, text.len), name, opts, ret_profile, ret_info, e);
}
