#include "collect/stream/label_file.h"

#include "collect/probes/places_cell.h"
#include "elf/elf_exports.h"
#include "lang/go.h"

#include <errno.h>

#define VARIABLE "otel_thread_ctx_v1"

enum { VARIABLE_BYTES = 8, ANSWER_BYTES = 4 + 1 + 1 + 1 + 8 + 8 };

/* --- in the cell; the question: ask:1 main:1 --- */

static enum label_libc libc_of(struct elf_file *elf)
{
	struct elf_export sym;

	if (elf_export_find(elf, "gnu_get_libc_version", &sym, NULL) == 0)
		return LABEL_LIBC_GLIBC;
	/* glibc has both in different files. */
	if (elf_export_find(elf, "__tls_get_addr", &sym, NULL) == 0 &&
	    elf_export_find(elf, "pthread_create", &sym, NULL) == 0)
		return LABEL_LIBC_MUSL;
	return LABEL_LIBC_NONE;
}

static int read_labels(const struct alloc_image *im, struct bytes question, struct strbuf *answer)
{
	_cleanup_(elf_file_closep) struct elf_file *elf = NULL;
	struct label_file f = { 0 };
	bool threads, main;
	int r;

	if (places_take_bool(&question, &threads) < 0 || places_take_bool(&question, &main) < 0)
		return -EBADMSG;
	r = elf_file_open(im->fd, im->path, &elf, NULL);
	if (r == 0 && !threads)
		f.go_version = go_version(elf);
	if (r == 0 && threads) {
		f.libc = libc_of(elf);
		f.has_variable = elf_tls_find(elf, VARIABLE, main, &f.tls, NULL) == 0 &&
				 f.tls.size == VARIABLE_BYTES;
	}
	put_u32(answer, f.go_version);
	put_u8(answer, (uint8_t)f.libc);
	put_u8(answer, f.has_variable);
	put_u8(answer, (uint8_t)f.tls.access);
	put_u64(answer, f.tls.slot);
	put_u64(answer, (uint64_t)f.tls.offset);
	return 0;
}

static void work(const struct cell_given *given)
{
	places_cell_work(given, read_labels);
}

static const struct cell_kind cell = { .name = "labels", .work = work, PLACES_LIMITS };
CELL_KIND(cell);

/* --- who asks --- */

int label_file_take(struct bytes answer, struct label_file *ret)
{
	struct label_file f = { .tls.size = VARIABLE_BYTES };
	uint8_t libc, access;

	*ret = (struct label_file){ 0 };
	if (bytes_u32(&answer, &f.go_version) < 0 || bytes_u8(&answer, &libc) < 0 ||
	    places_take_bool(&answer, &f.has_variable) < 0 || bytes_u8(&answer, &access) < 0 ||
	    bytes_u64(&answer, &f.tls.slot) < 0 ||
	    bytes_u64(&answer, (uint64_t *)&f.tls.offset) < 0 || libc > LABEL_LIBC_MUSL ||
	    access > ELF_TLS_DESC || answer.len)
		return -EBADMSG;
	f.libc = libc;
	f.tls.access = access;
	*ret = f;
	return 0;
}

int label_file_read(int fd, const char *path, enum label_file_ask ask, bool main,
		    struct label_file *ret, struct err *e)
{
	_cleanup_(talk_fini) struct talk t = { .fds = { -1, -1, -1 } };
	_cleanup_(strbuf_free) struct strbuf q = { 0 };
	const struct alloc_image im = { .fd = fd, .path = path };
	int r;

	*ret = (struct label_file){ 0 };
	put_u8(&q, ask == LABEL_FILE_THREADS);
	put_u8(&q, main);
	r = places_cell_ask(&cell, &im, &q, ANSWER_BYTES, &t, e);
	if (r == 0 && label_file_take(talk_bytes(&t), ret) < 0)
		r = places_cell_lied(&im, e);
	return r;
}
