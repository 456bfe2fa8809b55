#include "base/opt_file.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_MAX 65536

struct reading {
	struct opt_file *file;
	const bool *given;
	void *args;
	uint32_t line;
	struct err *e;
};

static int mistake(const struct reading *rd, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* Puts FILE:LINE: before the sentence. */
static int mistake(const struct reading *rd, const char *fmt, ...)
{
	char msg[400];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(msg, sizeof(msg), fmt, ap);
	va_end(ap);
	return err_set(rd->e, -EINVAL, "%.80s:%u: %s", rd->file->path, rd->line, msg);
}

/* Without blanks at both ends. */
static char *trim(char *s)
{
	char *end = s + strlen(s);

	while (isspace((unsigned char)*s))
		s++;
	while (end > s && isspace((unsigned char)end[-1]))
		end--;
	*end = '\0';
	return s;
}

static char *unquote(char *s)
{
	size_t len = strlen(s);

	if (len < 2 || s[0] != '"' || s[len - 1] != '"')
		return s;
	s[len - 1] = '\0';
	return s + 1;
}

/* "yes" or nothing: true. -EINVAL: neither yes nor no. */
static int is_yes(const char *value)
{
	static const char *const yes[] = { "yes", "true", "on" }, *const no[] = { "no", "false",
										  "off" };

	if (!value)
		return 1;
	for (int i = 0; i < 3; i++)
		if (strcmp(value, yes[i]) == 0 || strcmp(value, no[i]) == 0)
			return strcmp(value, yes[i]) == 0;
	return -EINVAL;
}

static bool is_comma_list(const struct opt *o)
{
	return o->kind == OPT_STRING && o->arg && strstr(o->arg, ",…");
}

/* A list that goes on in another line. */
static int join(struct reading *rd, const struct opt *o, const char *value)
{
	const char **field = (const char **)((char *)rd->args + o->offset);
	uint32_t row = (uint32_t)(o - rd->file->opts);
	char *all;

	if (asprintf(&all, "%s,%s", *field, value) < 0)
		return err_set(rd->e, -ENOMEM, "out of memory");
	free(rd->file->joined[row]);
	rd->file->joined[row] = all;
	*field = all;
	return 0;
}

static int take(struct reading *rd, const struct opt *o, const char *value)
{
	uint32_t row = (uint32_t)(o - rd->file->opts), before = rd->file->lines[row];
	struct err one = { 0 };
	int yes;

	if (o->kind != OPT_FLAG && (!value || !*value))
		return mistake(rd, "%s needs a value (%s = %s)", o->name, o->name,
			       o->arg ? o->arg : "VALUE");
	if (rd->given && rd->given[row])
		return 0;
	if (before && o->kind != OPT_LIST && !is_comma_list(o))
		return mistake(rd, "%s is given twice (before in line %u)", o->name, before);
	rd->file->lines[row] = rd->line;
	if (before && is_comma_list(o))
		return join(rd, o, value);
	if (o->kind == OPT_FLAG) {
		yes = is_yes(value);
		if (yes < 0)
			return mistake(rd, "%s is yes or no, not \"%.64s\"", o->name, value);
		*(bool *)((char *)rd->args + o->offset) = yes;
		return 0;
	}
	return opt_set(o, value, rd->args, &one) < 0 ? mistake(rd, "%s", one.msg) : 0;
}

static int read_line(struct reading *rd, char *line)
{
	char *value = strchr(line, '='), *name;
	const char *near;
	const struct opt *o;

	for (const char *c = line; *c; c++)
		if ((unsigned char)*c < 0x20 && !isspace((unsigned char)*c))
			return mistake(rd, "there is a control character (0x%02x)",
				       (unsigned char)*c);
	if (value)
		*value++ = '\0';
	name = trim(line);
	if (value)
		value = unquote(trim(value));
	o = opt_named(rd->file->opts, name, &near);
	if (!o)
		return mistake(rd, "there is no option \"%.64s\"%s%s%s", name,
			       near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
	if (o->not_in_file)
		return mistake(rd, "%s is for the command line alone", o->name);
	return take(rd, o, value);
}

static int read_lines(struct reading *rd)
{
	char *next = rd->file->text;
	int rc = 0;

	while (rc == 0 && next) {
		char *line = next;

		next = strchr(line, '\n');
		if (next)
			*next++ = '\0';
		rd->line++;
		line = trim(line);
		if (*line && *line != '#')
			rc = read_line(rd, line);
	}
	return rc;
}

/* Whoever can write to it decides what a service of root's does. */
static int check_owner(const char *path, const struct stat *st, struct err *e)
{
	if (!S_ISREG(st->st_mode))
		return err_set(e, -EINVAL, "%.200s is no file", path);
	if (st->st_uid != 0 && st->st_uid != geteuid())
		return err_set(e, -EPERM,
			       "%.200s belongs to user %u, who could have memscope do anything: "
			       "chown root it",
			       path, st->st_uid);
	if (st->st_mode & (S_IWGRP | S_IWOTH))
		return err_set(e, -EPERM,
			       "%.200s can be written to by others (mode %04o): chmod go-w it",
			       path, st->st_mode & 07777);
	return 0;
}

static int read_fd(int fd, const char *path, char **ret_text, struct err *e)
{
	_cleanup_(freep) char *text = calloc(1, FILE_MAX + 2);
	size_t len = 0;
	ssize_t n = 1;

	if (!text)
		return err_set(e, -ENOMEM, "out of memory");
	while (n > 0 && len <= FILE_MAX) {
		n = pread(fd, text + len, FILE_MAX + 1 - len, (off_t)len);
		if (n < 0)
			return err_set(e, -errno, "cannot read %.200s: %s", path, strerror(errno));
		len += (size_t)n;
	}
	if (len > FILE_MAX)
		return err_set(e, -EINVAL, "%.200s is longer than %u bytes", path, FILE_MAX);
	if (strlen(text) != len)
		return err_set(e, -EINVAL, "%.200s has a byte of 0: it is no text", path);
	*ret_text = TAKE_PTR(text);
	return 0;
}

static int read_text(const char *path, char **ret_text, struct err *e)
{
	_cleanup_(closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;
	int rc;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_set(e, -errno, "cannot read %.200s: %s", path, strerror(errno));
	rc = check_owner(path, &st, e);
	return rc < 0 ? rc : read_fd(fd, path, ret_text, e);
}

int opt_file_read(const struct opt_command *cmd, const char *path, int kept, const bool *given,
		  void *args, struct opt_file *ret_file, struct err *e)
{
	_cleanup_(opt_file_fini) struct opt_file f = { .path = path, .opts = cmd->opts };
	struct reading rd = { .file = &f, .given = given, .args = args, .e = e };
	int rc;

	while (cmd->opts[f.n_opts].name)
		f.n_opts++;
	f.lines = calloc(f.n_opts + 1, sizeof(*f.lines));
	f.joined = calloc(f.n_opts + 1, sizeof(*f.joined));
	if (!f.lines || !f.joined)
		return err_set(e, -ENOMEM, "out of memory");
	rc = kept < 0 ? read_text(path, &f.text, e) : read_fd(kept, path, &f.text, e);
	if (rc == 0 && !(f.as_read = strdup(f.text)))
		rc = err_set(e, -ENOMEM, "out of memory");
	if (rc == 0)
		rc = read_lines(&rd);
	if (rc < 0)
		return rc;
	*ret_file = f;
	f = (struct opt_file){ 0 };
	return 0;
}

int opt_file_keep(const struct opt_file *f)
{
	_cleanup_(closep) int fd = memfd_create("memscope-options", MFD_CLOEXEC);
	size_t len = strlen(f->as_read);

	if (fd < 0)
		return -errno;
	if (write(fd, f->as_read, len) != (ssize_t)len)
		return -EIO;
	return TAKE_FD(fd);
}

void opt_file_blame(const struct opt_file *f, struct err *e)
{
	for (uint32_t i = 0; i < f->n_opts; i++) {
		const struct opt *o = &f->opts[i];
		size_t len = o->kind == OPT_HEADING ? 0 : strlen(o->name);
		struct err was = *e;
		bool named;

		if (!len || !f->lines[i])
			continue;
		named = strncmp(e->msg, "--", 2) == 0 && strncmp(e->msg + 2, o->name, len) == 0 &&
			!isalnum((unsigned char)e->msg[2 + len]) && e->msg[2 + len] != '-';
		if (!named && !(o->key && e->msg[0] == '-' && e->msg[1] == o->key &&
				!isalnum((unsigned char)e->msg[2])))
			continue;
		err_set(e, was.code, "%.80s:%u: %.420s", f->path, f->lines[i], was.msg);
		return;
	}
}

void opt_file_fini(struct opt_file *f)
{
	for (uint32_t i = 0; f->joined && i < f->n_opts; i++)
		free(f->joined[i]);
	free(f->joined);
	free(f->lines);
	free(f->text);
	free(f->as_read);
}
