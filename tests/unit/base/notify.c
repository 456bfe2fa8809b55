#include "base/notify.h"
#include "base/err.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static int listen_at(const char *name)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	size_t len = strlen(name);
	int fd = socket(AF_UNIX, SOCK_DGRAM, 0);

	memcpy(at.sun_path, name, len);
	if (*name == '@')
		at.sun_path[0] = '\0';
	len += offsetof(struct sockaddr_un, sun_path) + (*name == '/');
	assert_int_equal(bind(fd, (struct sockaddr *)&at, (socklen_t)len), 0);
	setenv("NOTIFY_SOCKET", name, 1);
	return fd;
}

static void assert_heard(int fd, const char *lines)
{
	char got[256] = "";

	assert_true(recv(fd, got, sizeof(got) - 1, MSG_DONTWAIT) > 0);
	assert_string_equal(got, lines);
}

static void a_manager_hears_one_datagram(void **state)
{
	char name[64];
	int fd;

	snprintf(name, sizeof(name), "/tmp/notify.%d", (int)getpid());
	fd = listen_at(name);
	assert_int_equal(notify_send("READY=1\nSTATUS=Fine"), 1);
	assert_heard(fd, "READY=1\nSTATUS=Fine");
	close(fd);
	assert_int_equal(notify_send("READY=1"), -ECONNREFUSED);
	unlink(name);
	assert_int_equal(notify_send("READY=1"), -ENOENT);
}

static void an_abstract_name_has_no_end_of_zero(void **state)
{
	char name[64];
	int fd;

	snprintf(name, sizeof(name), "@memscope-notify-%d", (int)getpid());
	fd = listen_at(name);
	assert_int_equal(notify_send("STOPPING=1"), 1);
	assert_heard(fd, "STOPPING=1");
	close(fd);
}

static void a_full_socket_is_not_waited_for(void **state)
{
	char name[64];
	int fd, rc = 1;

	snprintf(name, sizeof(name), "@memscope-notify-%d", (int)getpid());
	fd = listen_at(name);
	for (int i = 0; i < 100000 && rc == 1; i++)
		rc = notify_send("WATCHDOG=1");
	assert_int_equal(rc, -EAGAIN);
	close(fd);
}

static void without_a_manager_nothing_is_sent(void **state)
{
	unsetenv("NOTIFY_SOCKET");
	assert_int_equal(notify_send("READY=1"), 0);
	setenv("NOTIFY_SOCKET", "relative", 1);
	assert_int_equal(notify_send("READY=1"), -EINVAL);
	setenv("NOTIFY_SOCKET", "/", 1);
	assert_int_equal(notify_send("READY=1"), -EINVAL);
}

static void the_watchdog_is_that_of_this_process(void **state)
{
	char pid[16];

	snprintf(pid, sizeof(pid), "%d", (int)getpid());
	assert_int_equal(notify_watchdog_ns(), 0);
	setenv("WATCHDOG_USEC", "30000000", 1);
	assert_int_equal(notify_watchdog_ns(), 30000000000);
	setenv("WATCHDOG_PID", pid, 1);
	assert_int_equal(notify_watchdog_ns(), 30000000000);
	setenv("WATCHDOG_PID", "1", 1);
	assert_int_equal(notify_watchdog_ns(), 0);
}

static void stderr_is_the_journal_when_it_is_that_very_file(void **state)
{
	char stream[64];
	struct stat st;

	assert_int_equal(fstat(STDERR_FILENO, &st), 0);
	assert_false(err_is_journal());
	snprintf(stream, sizeof(stream), "%llu:%llu", (unsigned long long)st.st_dev,
		 (unsigned long long)st.st_ino);
	setenv("JOURNAL_STREAM", stream, 1);
	assert_true(err_is_journal());
	snprintf(stream, sizeof(stream), "%llu:%llu", (unsigned long long)st.st_dev,
		 (unsigned long long)st.st_ino + 1);
	setenv("JOURNAL_STREAM", stream, 1);
	assert_false(err_is_journal());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_manager_hears_one_datagram),
		cmocka_unit_test(an_abstract_name_has_no_end_of_zero),
		cmocka_unit_test(a_full_socket_is_not_waited_for),
		cmocka_unit_test(without_a_manager_nothing_is_sent),
		cmocka_unit_test(the_watchdog_is_that_of_this_process),
		cmocka_unit_test(stderr_is_the_journal_when_it_is_that_very_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
