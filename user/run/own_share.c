#include "run/own_share.h"
#include "base/clock.h"

#define SECOND_NS 1000000000ULL

_Static_assert(N_OWN_SAVINGS == SUMMARY_SAVINGS, "each has a place in the summary");

static const struct {
	double part; /* of the limit */
	uint64_t
		first_ns; /* … and so much at once: files that are new to a host that has just begun */
	enum own_saving without;
} shares[N_OWN_SHARES] = {
	[SHARE_LINES] = { 0.25, 0, SAVE_LINES },
	[SHARE_TABLES] = { 0.25, 20 * SECOND_NS, SAVE_TABLES },
};

const char *const own_saving_names[N_OWN_SAVINGS] = {
	"records of processes once a second",
	"heaps walked a tenth as often",
	"no debug info in windows",
	"no new unwind tables",
	"windows twice as long",
	"windows four times as long",
};

bool own_saves(const struct run *r, enum own_saving what)
{
	return r->serving.savings > (uint32_t)what;
}

uint32_t own_window_factor(const struct run *r)
{
	if (own_saves(r, SAVE_WINDOWS_AGAIN))
		return OWN_WINDOW_LONGEST;
	return own_saves(r, SAVE_WINDOWS) ? OWN_WINDOW_LONGEST / 2 : 1;
}

uint64_t own_share_ns(const struct run *r, enum own_share which)
{
	uint64_t start = session_start_ns(r->session), now = now_ns();
	double elapsed = (double)(now > start ? now - start : 0);

	if (!r->cfg->serve)
		return 0;
	if (own_saves(r, shares[which].without))
		return 1;
	return shares[which].first_ns +
	       (uint64_t)(r->cfg->max_overhead / 100 * shares[which].part * elapsed) + 1;
}
