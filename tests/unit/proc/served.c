/* Which file systems are served by who may not answer, and that one that answers is only slower. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "proc/served.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

static void is(const char *line, uint64_t dev, bool served)
{
	uint64_t got_dev = 0;
	bool got = !served;

	assert_true(served_in_line(line, &got_dev, &got));
	assert_int_equal(got_dev, dev);
	assert_int_equal(got, served);
}

static void types_are_read_from_lists_of_mounts(void **state)
{
	uint64_t dev;
	bool served;

	(void)state;
	is("36 35 0:98 / /mnt rw,noatime shared:1 - fuse.sshfs me@there: rw\n", makedev(0, 98),
	   true);
	is("36 35 0:98 / /mnt rw - fuse nothing rw\n", makedev(0, 98), true);
	is("36 35 0:7 / /mnt rw master:1 - nfs4 there:/x rw\n", makedev(0, 7), true);
	is("36 35 0:7 / /mnt rw - cifs //there/x rw\n", makedev(0, 7), true);
	/* Its control files, a disk, and names that only begin so. */
	is("36 35 0:7 / /sys/fs/fuse/connections rw - fusectl fusectl rw\n", makedev(0, 7), false);
	is("36 35 8:1 / / rw - ext4 /dev/sda1 rw\n", makedev(8, 1), false);
	is("36 35 0:7 / /proc/fs/nfsd rw - nfsd nfsd rw\n", makedev(0, 7), false);
	is("36 35 0:7 / /mnt/fuse rw - overlay fuse rw\n", makedev(0, 7), false);
	assert_false(served_in_line("nothing", &dev, &served));
	assert_false(served_in_line("", &dev, &served));
}

static void who_is_gone_has_no_list(void **state)
{
	(void)state;
	assert_true(served_any(0) >= 0);
	assert_int_equal(served_any(0x7ffffff0), -ESRCH);
}

static void a_device_of_no_list_is_looked_at_once(void **state)
{
	int fd = memfd_create("nowhere", MFD_CLOEXEC);
	struct stat st;

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	assert_true(served_is(0, st.st_dev));
	assert_int_equal(served_answers(fd, st.st_dev), 0);
	assert_false(served_is(0, st.st_dev));
	assert_false(served_file(fd));
	close(fd);
	assert_false(served_is(0, makedev(8, 1)));
}

static void a_path_is_looked_for_and_what_is_found_does_not_matter(void **state)
{
	struct open_how how = { .flags = O_PATH | O_CLOEXEC };
	int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	uint64_t from = now_ns();

	(void)state;
	assert_int_equal(served_answers_path(root, "proc/self/exe", &how), 0);
	assert_int_equal(served_answers_path(root, "nowhere/at/all", &how), 0);
	assert_true(now_ns() - from < SERVED_WAIT_MS * 2000000ull);
	close(root);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(types_are_read_from_lists_of_mounts),
		cmocka_unit_test(who_is_gone_has_no_list),
		cmocka_unit_test(a_device_of_no_list_is_looked_at_once),
		cmocka_unit_test(a_path_is_looked_for_and_what_is_found_does_not_matter),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
