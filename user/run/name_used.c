#include "run/name_used.h"

#include "base/whole_file.h"
#include "elf/dwarf.h"
#include "run/output/files.h"
#include "run/place_names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

int names_back_open(struct err *e)
{
	int fd = memfd_create("memscope names", MFD_CLOEXEC);

	return fd < 0 ? err_set(e, -errno, "no room for names: %s", strerror(errno)) : fd;
}

/* Which locations stacks of the profiles have. */
static void find_used(const struct dict *d, struct profile *const *profiles, uint32_t n, bool *seen,
		      bool *used)
{
	for (uint32_t k = 0; k < n; k++)
		for (uint32_t i = 0; profiles[k] && i < profile_n_samples(profiles[k]); i++) {
			stack_id s = profile_sample(profiles[k], i).stack;

			for (; s.ix && !seen[s.ix]; s = dict_stack_parent(d, s)) {
				seen[s.ix] = true;
				used[dict_stack_leaf(d, s).ix] = true;
			}
		}
}

/* 1: some debug info was left unread. */
static int name_within(struct run *r, int64_t lines_ns, struct err *e)
{
	struct dwarf_budget budget = { .cpu_ns = lines_ns };
	int rc;

	if (lines_ns == LINES_ANY_NS)
		return output_name(r, true, NULL, e);
	rc = output_name_within(r, &budget, e);
	return rc == 0 ? budget.ran_out : rc;
}

/*
 * Leaves in `used` those that are asked for: without a name, or, with `lines`, whose debug info was left unread. All others count as named
 * from now on. true: some that are used keep a name that debug info may know more of.
 */
static bool leave_asked(struct dict *d, bool lines, bool *used)
{
	bool unread = false;

	for (uint32_t i = 1; i <= dict_location_count(d); i++) {
		const struct location *l = dict_location_get(d, (location_id){ i });

		if (!used[i] && (!l->named || l->lines_unread))
			dict_location_name(d, (location_id){ i }, l->lines, l->n_lines);
		unread |= used[i] && l->lines_unread && !lines;
		used[i] &= !l->named || (l->lines_unread && lines);
	}
	return unread;
}

int name_used(struct run *r, struct profile *const *profiles, uint32_t n, int64_t lines_ns,
	      int names_fd, struct err *e)
{
	uint32_t count = dict_location_count(r->dict);
	_cleanup_(freep) bool *used = calloc((size_t)count + 1, sizeof(*used));
	_cleanup_(freep) bool *seen = calloc(dict_stack_count(r->dict) + 1ul, sizeof(*seen));
	_cleanup_(strbuf_free) struct strbuf names = { 0 };
	bool unread;
	int rc;

	if (!used || !seen)
		return err_set(e, -ENOMEM, "out of memory");
	find_used(r->dict, profiles, n, seen, used);
	unread = leave_asked(r->dict, lines_ns > 0, used);
	rc = name_within(r, lines_ns, e);
	if (rc < 0)
		return rc;
	if (names_fd >= 0)
		place_names_add(r->dict, used, &names);
	if (names.len && !strbuf_oom(&names))
		whole_file_write(names_fd, names.s, names.len);
	return rc || unread;
}

void names_back_take(int names_fd, struct run *r)
{
	struct run_counts *c = &r->counts;
	struct place_names_taken taken;
	uint32_t kept = c->named_early + c->unread_early;
	struct stat st;
	void *at;

	if (fstat(names_fd, &st) < 0 || !st.st_size)
		return;
	at = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, names_fd, 0);
	if (at == MAP_FAILED)
		return;
	taken = place_names_take(r->dict, bytes_of(at, (size_t)st.st_size),
				 kept < NAMES_BACK_MAX ? NAMES_BACK_MAX - kept : 0);
	c->named_early += taken.named;
	c->ranges_early += taken.ranges;
	c->unread_early += taken.unread - taken.read;
	munmap(at, (size_t)st.st_size);
}
