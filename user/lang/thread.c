/*
 * Where a thread keeps the values of pthread_getspecific(), by that function's own instructions: glibc has
 * a row of 32 slots in each thread and further ones behind pointers, musl a pointer to all, and where
 * these are changes with their versions.
 */
#include "lang/image.h"

#include <errno.h>

struct answer {
	struct place place;
	bool many; /* they do not agree */
};

/* 0 is returned for keys that nobody has made. */
static void take_answer(void *ctx, const struct place *value)
{
	struct answer *a = ctx;
	bool same = a->place.base == value->base && a->place.reads == value->reads;

	if (value->base != PLACE_THREAD)
		return;
	for (int i = 0; same && i <= value->reads; i++)
		same = a->place.off[i] == value->off[i];
	if (a->place.base != PLACE_UNKNOWN && !same)
		a->many = true;
	a->place = *value;
}

static bool answer_of(const struct accessor *code, uint64_t arg, struct place *ret_place)
{
	struct answer a = { 0 };

	accessor_follow(code, arg, &(struct accessor_fn){ .returns = take_answer, .ctx = &a });
	*ret_place = a.place;
	return a.place.base == PLACE_THREAD && !a.many;
}

int lang_thread_slot(const struct lang_image *libc, uint32_t key, struct ms_lang_row *row,
		     struct err *e)
{
	struct place p;

	if (!libc || !libc->libc)
		return err_set(e, -EAGAIN,
			       "its C library is not known, which keeps the state of its threads");
	if (!answer_of(&libc->getspecific, key, &p) || p.reads < 1 || p.reads > 2 ||
	    p.last_bytes != 8 || p.off[p.reads])
		return err_set(e, -EOPNOTSUPP,
			       "%s: pthread_getspecific() keeps values in a way that is not known",
			       libc->name);
	row->thread = p.reads == 1 ? MS_THREAD_TLS : MS_THREAD_TABLE;
	row->off = (uint64_t)p.off[p.reads - 1];
	row->module = p.reads == 1 ? 0 : (uint64_t)p.off[0];
	return 0;
}

bool lang_thread_value(const struct ms_lang_row *row, uint64_t tp, const struct lang_memory *mem,
		       uint64_t *ret_value)
{
	uint64_t at = tp + row->off;

	if (row->thread == MS_THREAD_TABLE) {
		if (!lang_read(mem, tp + row->module, &at, sizeof(at)))
			return false;
		at += row->off;
	} else if (row->thread != MS_THREAD_TLS) {
		return false;
	}
	return lang_read(mem, at, ret_value, sizeof(*ret_value));
}

bool lang_thread_pointer(const struct lang_image *libc, uint64_t self, uint64_t *ret_tp)
{
	struct place p;

	if (!libc || !libc->self.len || !answer_of(&libc->self, 0, &p) || p.reads)
		return false;
	*ret_tp = self - (uint64_t)p.off[0];
	return true;
}
