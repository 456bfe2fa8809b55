#include "render/tables/trend_csv.h"

#include "base/sink.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>

#define HEADER                                                                                     \
	"timestamp,rss_kb,vsz_kb,cpu_percent,pss_kb,anonymous_kb,file_kb,swap_kb,threads,"         \
	"minor_faults,major_faults,live_bytes,shared_kb,private_kb"
#define HEADER_END       "\n"
#define HEADER_END_GC    ",gc_count,gc_major_count,gc_ms,gc_live_kb,gc_heap_kb,timestamp_ms\n"
#define HEADER_END_GROUP ",processes,group_kb,group_anonymous_kb,group_file_kb,group_kernel_kb\n"

struct trend_csv {
	int fd;
	off_t len;  /* of the whole lines */
	char *path; /* for sentences      */
	const char *header;
	bool has_gc; /* columns of collections */
};

/* One line, or none of it. */
static int append(struct trend_csv *t, const char *line, size_t len, struct err *e)
{
	size_t done = 0;
	int r = 0;

	while (done < len) {
		ssize_t n = pwrite(t->fd, line + done, len - done, t->len + (off_t)done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			r = n < 0 ? -errno : -EIO;
			break;
		}
		done += n;
	}
	if (r < 0) {
		if (done && ftruncate(t->fd, t->len) < 0)
			t->len += (off_t)done; /* cannot take it back: go on after it */
		return err_set(e, r, "%s: %s", t->path, strerror(-r));
	}
	t->len += (off_t)len;
	return 0;
}

static int new_at(int dir_fd, const char *path, int flags, struct trend_csv **ret_trend,
		  struct err *e)
{
	_cleanup_(trend_csv_closep) struct trend_csv *t = calloc(1, sizeof(*t));

	if (!t)
		return err_set(e, -ENOMEM, "%s: out of memory", path);
	t->fd = -1;
	t->header = HEADER HEADER_END;
	t->path = strdup(path);
	if (!t->path)
		return err_set(e, -ENOMEM, "%s: out of memory", path);
	t->fd = openat(dir_fd, path, flags | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (t->fd < 0)
		return err_set(e, -errno, "%s: %s", path, strerror(errno));
	*ret_trend = TAKE_PTR(t);
	return 0;
}

int trend_csv_open(int dir_fd, const char *path, struct trend_csv **ret_trend, struct err *e)
{
	_cleanup_(trend_csv_closep) struct trend_csv *t = NULL;
	int r = new_at(dir_fd, path, O_WRONLY | O_TRUNC, &t, e);

	if (r == 0) {
		t->header = HEADER HEADER_END_GC;
		t->has_gc = true;
		r = append(t, t->header, strlen(t->header), e);
	}
	if (r < 0)
		return r;
	*ret_trend = TAKE_PTR(t);
	return 0;
}

/* Goes to the end of the last whole line of a file that begins with our header. */
static int find_end(struct trend_csv *t, off_t size, struct err *e)
{
	char text[sizeof(HEADER HEADER_END_GROUP)];
	size_t len = strlen(t->header);
	off_t end = size;
	ssize_t n = pread(t->fd, text, sizeof(text) - 1, 0);
	bool groups = len > strlen(HEADER HEADER_END), ours;

	ours = n > (ssize_t)strlen(HEADER) && memcmp(text, HEADER, strlen(HEADER)) == 0;
	if (n < (ssize_t)len || memcmp(text, t->header, len) != 0)
		return err_set(e, -EBADMSG,
			       ours && groups
				       ? "%s: is a log of processes, and one of control groups has "
					 "more columns: choose another -o"
			       : ours ? "%s: is a log of control groups, which has more columns "
					"than one of processes: choose another -o"
				      : "%s: is no log of ours (its first line differs), and is "
					"left as it is: choose another -o",
			       t->path);
	while (end > 0 && pread(t->fd, text, 1, end - 1) == 1 && text[0] != '\n')
		end--;
	if (end < size && ftruncate(t->fd, end) < 0)
		return err_set(e, -errno, "%s: %s", t->path, strerror(errno));
	t->len = end;
	return 0;
}

int trend_csv_append(const char *path, bool groups, struct trend_csv **ret_trend, struct err *e)
{
	_cleanup_(trend_csv_closep) struct trend_csv *t = NULL;
	struct stat st;
	int r = new_at(AT_FDCWD, path, O_RDWR | O_NONBLOCK, &t, e);

	if (r < 0)
		return r;
	if (fstat(t->fd, &st) < 0 || !S_ISREG(st.st_mode))
		return err_set(e, -EINVAL, "%s: is not a regular file", path);
	if (flock(t->fd, LOCK_EX | LOCK_NB) < 0)
		return err_set(e, -EBUSY, "%s: another memscope is writing it", path);
	if (groups)
		t->header = HEADER HEADER_END_GROUP;
	r = st.st_size ? find_end(t, st.st_size, e) : append(t, t->header, strlen(t->header), e);
	if (r < 0)
		return r;
	*ret_trend = TAKE_PTR(t);
	return 0;
}

struct line {
	char text[576];
	size_t len;
};

static void put(struct line *l, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void put(struct line *l, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(l->text + l->len, sizeof(l->text) - l->len, fmt, ap);
	va_end(ap);
	l->len += n;
	if (l->len >= sizeof(l->text)) /* 24 fields of at most 21 bytes never come here */
		l->len = sizeof(l->text) - 1;
}

static void put_field(struct line *l, int64_t value)
{
	if (value < 0)
		put(l, ",");
	else
		put(l, ",%lld", (long long)value);
}

static void put_gc(struct line *l, const struct gc_sample *gc)
{
	if (!gc || !gc->known) {
		put(l, ",,,,,");
		return;
	}
	put_field(l, gc->count);
	put_field(l, gc->major);
	if (gc->time_ns < 0)
		put(l, ",");
	else
		put(l, ",%.1f", (double)gc->time_ns / 1e6);
	put_field(l, gc->live_bytes < 0 ? -1 : gc->live_bytes / 1024);
	put_field(l, gc->heap_bytes < 0 ? -1 : gc->heap_bytes / 1024);
}

/* All but the columns of collections. */
static void put_sample(struct line *l, const struct mem_sample *s, int64_t live_bytes,
		       const struct mem_group *group)
{
	time_t sec = s->time_ns / 1000000000;
	struct tm tm;

	localtime_r(&sec, &tm);
	l->len = strftime(l->text, sizeof(l->text), "%Y-%m-%d %H:%M:%S", &tm);
	put_field(l, s->rss_kb);
	put_field(l, s->vsz_kb);
	if (s->interval_ns > 0)
		put(l, ",%.1f", 100.0 * (double)s->interval_cpu_ns / (double)s->interval_ns);
	else
		put(l, ",0.0");
	put_field(l, s->pss_kb);
	put_field(l, s->anonymous_kb);
	put_field(l, s->file_kb);
	put_field(l, s->swap_kb);
	put_field(l, s->threads);
	put_field(l, s->minor_faults);
	put_field(l, s->major_faults);
	put_field(l, live_bytes);
	put_field(l, s->shared_kb);
	put_field(l, s->private_kb);
	if (group) {
		put_field(l, group->processes);
		put_field(l, group->charged_kb);
		put_field(l, group->anonymous_kb);
		put_field(l, group->file_kb);
		put_field(l, group->kernel_kb);
	}
}

int trend_csv_row(struct trend_csv *t, const struct mem_sample *s, int64_t live_bytes,
		  const struct mem_group *group, const struct gc_sample *gc, struct err *e)
{
	struct line l = { .len = 0 };

	put_sample(&l, s, live_bytes, group);
	if (t->has_gc)
		put_gc(&l, gc);
	if (t->has_gc)
		put(&l, ",%d", (int)(s->time_ns % 1000000000 / 1000000));
	put(&l, "\n");
	return append(t, l.text, l.len, e);
}

void trend_csv_put_names(struct sink *out)
{
	sink_puts(out, HEADER HEADER_END_GROUP);
}

void trend_csv_put_row(struct sink *out, const struct mem_sample *s, int64_t live_bytes,
		       const struct mem_group *group)
{
	struct line l = { .len = 0 };

	put_sample(&l, s, live_bytes, group);
	put(&l, "\n");
	sink_write(out, l.text, l.len);
}

void trend_csv_close(struct trend_csv *t)
{
	if (!t)
		return;
	closep(&t->fd);
	free(t->path);
	free(t);
}
