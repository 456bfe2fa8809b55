#include "base/cell_call.h"
#include "base/clock.h"

#include <errno.h>
#include <string.h>

#define NO_TALK ((struct talk){ .fds = { -1, -1, -1 } })

enum { HALVINGS = 4 };

#define SLOW_NS   500000000ull    /* that is too long for nothing */
#define FORGET_NS 600000000000ull /* each is forgotten, in so long */

/* --- who asks --- */

/* Those in vain of late. */
static uint32_t in_vain(const struct cell_patience *p)
{
	uint64_t since = now_ns() - atomic_load(&p->last_ns);
	uint32_t n = atomic_load(&p->in_vain);

	return n > since / FORGET_NS ? n - (uint32_t)(since / FORGET_NS) : 0;
}

static uint64_t may_take_ns(const struct cell_call *c)
{
	uint32_t n = c->patience ? in_vain(c->patience) : 0;

	return c->seconds * 1000000000ull >> (n < HALVINGS ? n : HALVINGS);
}

/* One that comes to its end in the last moment is as bad as one that does not. */
static void learn(const struct cell_call *c, int r, uint64_t took_ns)
{
	if (took_ns <= SLOW_NS || (r == 0 && took_ns <= may_take_ns(c) / 2))
		return;
	atomic_store(&c->patience->in_vain, in_vain(c->patience) + 1);
	atomic_store(&c->patience->last_ns, now_ns());
}

static int converse(const struct cell_call *c, int channel, struct talk *ret)
{
	const size_t request_max = c->request_max ? c->request_max : CALL_REQUEST_MAX;
	uint64_t until = now_ns() + may_take_ns(c);
	int r = talk_send(channel, CALL_QUESTION, c->question, c->len, c->fds, c->n_fds, until);

	while (r == 0) {
		_cleanup_(talk_fini) struct talk t = NO_TALK;

		r = talk_take(channel, c->answer_max, false, until, &t);
		if (r == 0 && t.what == CALL_ANSWER) {
			*ret = t;
			t = NO_TALK;
			return 0;
		}
		if (r == 0)
			r = c->serve && t.len <= request_max ? c->serve(c->ctx, channel, &t, &until)
							     : -EBADMSG;
	}
	return r == -EFBIG ? -EBADMSG : r;
}

int cell_call(const struct cell_call *c, struct talk *ret, struct cell_end *ret_end)
{
	_cleanup_(cell_closep) struct cell_link l = { -1, -1 };
	uint64_t began_ns = now_ns();
	int r;

	*ret = NO_TALK;
	if (ret_end)
		*ret_end = (struct cell_end){ .status = -1 };
	r = cell_open(c->kind, &l);
	if (r < 0)
		return r;
	r = converse(c, l.channel, ret);
	if (r < 0)
		cell_kill(&l);
	if (c->patience)
		learn(c, r, now_ns() - began_ns);
	cell_close(&l, r < 0 ? ret_end : NULL);
	return r;
}

int cell_send_file(int channel, int fd, uint64_t until_ns)
{
	int32_t code = fd < 0 ? fd : 0;
	int r = talk_send(channel, CALL_FILE, &code, sizeof(code), &fd, fd >= 0, until_ns);

	closep(&fd);
	return r;
}

/* --- in the cell, whose time its kind's limits end, and who asks --- */

int cell_question(const struct cell_given *given, struct talk *ret)
{
	int r;

	*ret = NO_TALK;
	r = talk_take(given->channel, CALL_QUESTION_MAX, true, UINT64_MAX, ret);
	return r == 0 && ret->what != CALL_QUESTION ? -EBADMSG : r;
}

int cell_answer(const struct cell_given *given, const void *data, size_t len)
{
	return talk_send(given->channel, CALL_ANSWER, data, len, NULL, 0, UINT64_MAX);
}

int cell_ask_file(const struct cell_given *given, uint32_t what, const void *data, size_t len)
{
	_cleanup_(talk_fini) struct talk t = NO_TALK;
	int r = talk_send(given->channel, what, data, len, NULL, 0, UINT64_MAX);
	struct bytes b;
	int32_t code;

	if (r == 0)
		r = talk_take(given->channel, CALL_REQUEST_MAX, true, UINT64_MAX, &t);
	b = talk_bytes(&t);
	if (r < 0)
		return r;
	if (t.what != CALL_FILE || bytes_u32(&b, (uint32_t *)&code) < 0)
		return -EBADMSG;
	return code < 0 ? code : t.fds[0] < 0 ? -EMFILE : TAKE_FD(t.fds[0]);
}
