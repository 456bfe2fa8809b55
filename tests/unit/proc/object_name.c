#include "proc/object_name.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <arpa/inet.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static void a_path_is_that_of_the_same_file_alone(void **state)
{
	char path[] = "/tmp/object-name-XXXXXX", out[OBJECT_NAME_MAX];
	int fd = mkstemp(path);
	struct stat st;

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	unlink(path);
	assert_false(object_path(getpid(), fd, st.st_ino + 1, out, sizeof(out)));
	assert_true(object_path(getpid(), fd, st.st_ino, out, sizeof(out)));
	assert_true(strncmp(out, path, strlen(path)) == 0);
	close(fd);
	assert_false(object_path(getpid(), fd, st.st_ino, out, sizeof(out)));
}

static void a_device_without_a_disk_is_what_is_mounted(void **state)
{
	char out[32] = "";

	(void)state;
	assert_true(object_device_in("36 35 0:31 / /mnt rw,noatime shared:1 - tmpfs none rw\n", 0,
				     31, out, sizeof(out)));
	assert_string_equal(out, "tmpfs");
	assert_false(object_device_in("36 35 0:31 / /mnt rw,noatime - tmpfs none rw\n", 0, 32, out,
				      sizeof(out)));
	assert_false(object_device_in("nonsense\n", 0, 32, out, sizeof(out)));
	object_device(getpid(), 4095, 7, out, sizeof(out));
	assert_string_equal(out, "4095:7");
}

static void addresses_are_written_as_people_write_them(void **state)
{
	const uint8_t v4[16] = { 10, 0, 0, 3 }, loop[16] = { [15] = 1 };
	const uint8_t mapped[16] = { [10] = 0xff, [11] = 0xff, [12] = 10, [15] = 3 };
	char out[64];

	(void)state;
	object_address(AF_INET, v4, 5432, out, sizeof(out));
	assert_string_equal(out, "10.0.0.3:5432");
	object_address(AF_INET6, loop, 80, out, sizeof(out));
	assert_string_equal(out, "[::1]:80");
	object_address(AF_INET6, mapped, 80, out, sizeof(out));
	assert_string_equal(out, "10.0.0.3:80");
}

static void ports_that_are_listened_at_are_found(void **state)
{
	static const char tcp[] =
		"  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
		"   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 5 1\n"
		"   1: 0100007F:1F91 0100007F:1F90 01 00000000:00000000 00:00000000 00000000     0        0 6 1\n";

	(void)state;
	assert_true(object_listens(tcp, 0x1f90));
	assert_false(object_listens(tcp, 0x1f91));
	assert_false(object_listens("", 80));
	assert_false(object_listens(NULL, 80));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_path_is_that_of_the_same_file_alone),
		cmocka_unit_test(a_device_without_a_disk_is_what_is_mounted),
		cmocka_unit_test(addresses_are_written_as_people_write_them),
		cmocka_unit_test(ports_that_are_listened_at_are_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
