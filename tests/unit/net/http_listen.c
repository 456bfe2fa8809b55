#include "net/http_listen.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static void addresses_are_read(void **state)
{
	static const struct {
		const char *text;
		enum http_reach reach;
	} good[] = {
		{ "unix:/run/memscope.sock", HTTP_REACH_UNIX },
		{ "127.0.0.1:6060", HTTP_REACH_LOOPBACK },
		{ "127.1.2.3:0", HTTP_REACH_LOOPBACK },
		{ "[::1]:6060", HTTP_REACH_LOOPBACK },
		{ "0.0.0.0:6060", HTTP_REACH_WIDE },
		{ "[::]:65535", HTTP_REACH_WIDE },
		{ "192.0.2.7:1", HTTP_REACH_WIDE },
	};
	struct http_address a;
	struct err e = { 0 };

	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
		assert_int_equal(http_address_parse(good[i].text, &a, &e), 0);
		assert_int_equal(a.reach, good[i].reach);
	}
}

static void others_are_refused_with_a_sentence(void **state)
{
	static const char *const bad[] = { "",
					   ":6060",
					   "6060",
					   "localhost:6060",
					   "127.0.0.1",
					   "127.0.0.1:",
					   "127.0.0.1:65536",
					   "127.0.0.1:-1",
					   "127.0.0.1:6060x",
					   "::1:6060",
					   "[::1]",
					   "[::1:6060",
					   "[127.0.0.1]:1",
					   "unix:",
					   "unix:relative",
					   "[]:1",
					   "[:1",
					   "127.0.0.1:99999999999999999999" };
	struct http_address a;

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		struct err e = { 0 };

		assert_int_equal(http_address_parse(bad[i], &a, &e), -EINVAL);
		assert_non_null(strstr(e.msg, "--listen"));
	}
}

static void a_path_that_does_not_fit_is_refused(void **state)
{
	char text[300] = "unix:/";
	struct http_address a;
	struct err e = { 0 };

	memset(text + 6, 'x', 200);
	assert_int_equal(http_address_parse(text, &a, &e), -EINVAL);
}

static void a_socket_that_was_left_is_replaced_and_others_are_not(void **state)
{
	char dir[] = "/tmp/listen-XXXXXX", text[64], file[64];
	struct http_address a;
	struct err e = { 0 };
	int fd, second;

	assert_non_null(mkdtemp(dir));
	snprintf(text, sizeof(text), "unix:%s/s", dir);
	snprintf(file, sizeof(file), "%s/s", dir);
	assert_int_equal(http_address_parse(text, &a, &e), 0);
	assert_int_equal(http_address_listen(&a, &fd, &e), 0);
	assert_int_equal(http_address_listen(&a, &second, &e), -EADDRINUSE);
	close(fd);
	assert_int_equal(http_address_listen(&a, &fd, &e), 0);
	close(fd);
	unlink(file);
	close(creat(file, 0600)); /* a file is somebody's */
	assert_int_equal(http_address_listen(&a, &fd, &e), -EADDRINUSE);
	unlink(file);
	rmdir(dir);
}

static void a_socket_is_shared_with_a_group_that_is_there(void **state)
{
	char dir[] = "/tmp/listen-XXXXXX", text[64], file[64], own[16];
	struct http_address a;
	struct err e = { 0 };
	struct stat st;
	int fd;

	assert_non_null(mkdtemp(dir));
	snprintf(text, sizeof(text), "unix:%s/s", dir);
	snprintf(file, sizeof(file), "%s/s", dir);
	assert_int_equal(http_address_parse(text, &a, &e), 0);
	assert_int_equal(http_address_listen(&a, &fd, &e), 0);
	assert_int_equal(stat(file, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(http_address_share(&a, "no-such-group", &e), -ENOENT);
	assert_non_null(strstr(e.msg, "\"no-such-group\""));
	assert_int_equal(http_address_share(&a, "", &e), -ENOENT);
	assert_int_equal(stat(file, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	snprintf(own, sizeof(own), "%u", geteuid() ? getegid() : 12345);
	assert_int_equal(http_address_share(&a, own, &e), 0);
	assert_int_equal(stat(file, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0660);
	assert_int_equal(st.st_gid, atoi(own));
	if (geteuid() == 0) {
		assert_int_equal(http_address_share(&a, "daemon", &e), 0);
		assert_int_equal(stat(file, &st), 0);
		assert_int_equal(st.st_gid, getgrnam("daemon")->gr_gid);
	}
	close(fd);
	unlink(file);
	rmdir(dir);
}

static void a_port_that_is_taken_is_said(void **state)
{
	struct http_address a;
	struct err e = { 0 };
	int fd, second;
	char text[32];

	assert_int_equal(http_address_parse("127.0.0.1:0", &a, &e), 0);
	assert_int_equal(http_address_listen(&a, &fd, &e), 0);
	snprintf(text, sizeof(text), "127.0.0.1:%u", http_socket_port(fd));
	assert_int_equal(http_address_parse(text, &a, &e), 0);
	assert_int_equal(http_address_listen(&a, &second, &e), -EADDRINUSE);
	assert_non_null(strstr(e.msg, text));
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(addresses_are_read),
		cmocka_unit_test(others_are_refused_with_a_sentence),
		cmocka_unit_test(a_path_that_does_not_fit_is_refused),
		cmocka_unit_test(a_socket_that_was_left_is_replaced_and_others_are_not),
		cmocka_unit_test(a_socket_is_shared_with_a_group_that_is_there),
		cmocka_unit_test(a_port_that_is_taken_is_said),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
