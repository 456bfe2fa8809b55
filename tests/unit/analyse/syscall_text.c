#include "analyse/syscall_text.h"
#include "base/syscall_names.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static struct call_shape shape;
static struct trace_call call;

static struct trace_event begin(const char *name)
{
	call_shape_of((uint32_t)syscall_number(name), 32, &shape, &call);
	return (struct trace_event){ .nr = (uint32_t)syscall_number(name), .returns = true };
}

/* "name(args) = result" */
static const char *text_of(const struct trace_event *ev)
{
	static char text[1024];
	struct strbuf b = { 0 };

	for (uint32_t i = 0; i < call_n_args(&shape, ev); i++) {
		strbuf_printf(&b, "%s", i ? ", " : "");
		call_arg_put(&b, &shape, ev, i);
	}
	strbuf_printf(&b, " = ");
	call_result_put(&b, &shape, ev);
	snprintf(text, sizeof(text), "%s", b.s);
	strbuf_free(&b);
	return text;
}

static struct trace_bytes bytes(const char *s, uint32_t len)
{
	return (struct trace_bytes){ .s = s, .len = len };
}

static void every_row_can_be_read(void **state)
{
	(void)state;
	assert_null(call_shapes_check());
}

static void a_path_a_directory_and_flags_have_names(void **state)
{
	struct trace_event ev = begin("openat");

	(void)state;
	ev.args[0] = (uint64_t)AT_FDCWD;
	ev.args[1] = 0x1000;
	ev.args[2] = O_WRONLY | O_CREAT | O_CLOEXEC;
	ev.args[3] = 0644;
	ev.read[0] = bytes("/a\n\x1b[", 6);
	ev.file[0] = "/home";
	ev.ret = 3;
	ev.result_file = "/a\n";
	assert_string_equal(
		text_of(&ev),
		"AT_FDCWD</home>, \"/a\\n\\33[\", O_WRONLY|O_CREAT|O_CLOEXEC, 0644 = 3</a\\n>");
	ev.args[2] = O_RDONLY;
	ev.ret = -ENOENT;
	assert_string_equal(
		text_of(&ev),
		"AT_FDCWD</home>, \"/a\\n\\33[\", O_RDONLY = -1 ENOENT (No such file or directory)");
}

static void buffers_are_bounded_and_escaped(void **state)
{
	struct trace_event ev = begin("read");

	(void)state;
	assert_int_equal(call.reads[0].how, TRACE_BY_RESULT);
	assert_int_equal(call.reads[0].most, 32);
	ev.args[1] = 0x1000;
	ev.args[2] = 100;
	ev.read[0] = bytes("\0001\"\377", 4);
	ev.ret = 50;
	assert_string_equal(text_of(&ev), "0, \"\\0001\\\"\\377\"..., 100 = 50");
	ev.ret = -512;
	ev.read[0] = bytes(NULL, 0);
	assert_string_equal(
		text_of(&ev),
		"0, 0x1000, 100 = ? ERESTARTSYS (To be restarted if SA_RESTART is set)");
}

static void addresses_of_sockets_are_decoded(void **state)
{
	struct trace_event ev = begin("connect");

	(void)state;
	ev.args[0] = 4;
	ev.args[1] = 0x1000;
	ev.args[2] = 16;
	ev.read[0] = bytes("\2\0\0\120\177\0\0\1\0\0\0\0\0\0\0\0", 16);
	ev.file[0] = "socket:[7]";
	assert_string_equal(text_of(&ev), "4<socket:[7]>, {sa_family=AF_INET, sin_port=htons(80), "
					  "sin_addr=inet_addr(\"127.0.0.1\")}, 16 = 0");
	ev.read[0] = bytes("\1\0\0x\33", 5);
	assert_string_equal(text_of(&ev),
			    "4<socket:[7]>, {sa_family=AF_UNIX, sun_path=@\"x\\33\"}, 16 = 0");
	ev.read[0] = bytes("\1", 1); /* cut off */
	assert_string_equal(text_of(&ev), "4<socket:[7]>, {sa_family=AF_UNIX}, 16 = 0");
}

/* Two vectors, of which the second is longer than what is shown. */
static uint32_t vectors(char room[TRACE_LONG])
{
	uint64_t iov[4] = { 0x1000, 2, 0x2000, 40 };

	memcpy(room, iov, sizeof(iov));
	memcpy(room + 32, "ab", 2);
	memset(room + 34, 'x', 32);
	return 66;
}

static void buffers_stand_one_behind_the_other(void **state)
{
	struct trace_event ev = begin("writev");
	char room[TRACE_LONG];

	(void)state;
	assert_int_equal(call.reads[0].how, TRACE_VECTORS);
	ev.args[1] = 0x1000;
	ev.args[2] = 2;
	ev.ret = 42;
	ev.read[0] = bytes(room, vectors(room));
	assert_string_equal(text_of(&ev),
			    "0, [{iov_base=\"ab\", iov_len=2}, {iov_base=\"xxxxxxxxxxxxxxxxxxxxxxxx"
			    "xxxxxxxx\"..., iov_len=40}], 2 = 42");
	ev.read[0].len = 40; /* the second could not be read */
	assert_string_equal(text_of(&ev), "0, [{iov_base=\"ab\", iov_len=2}, {iov_base=0x2000, "
					  "iov_len=40}], 2 = 42");
	ev.read[0].len = 16;
	assert_string_equal(text_of(&ev), "0, [{iov_base=0x1000, iov_len=2}, ...], 2 = 42");
	ev.args[2] = 0;
	ev.read[0] = bytes(NULL, 0);
	assert_string_equal(text_of(&ev), "0, [], 0 = 42");
	ev = begin("readv"); /* as many bytes as have come */
	ev.args[1] = 0x1000;
	ev.args[2] = 2;
	ev.ret = 5;
	ev.read[0] = bytes(room, vectors(room));
	assert_string_equal(text_of(&ev), "0, [{iov_base=\"ab\", iov_len=2}, {iov_base=\"xxx\", "
					  "iov_len=40}], 2 = 5");
}

static void a_message_has_its_address_and_what_it_hands_on(void **state)
{
	struct trace_event ev = begin("recvmsg");
	struct trace_msg msg = { .name = 0x1000,
				 .name_len = 16,
				 .iov = 0x3000,
				 .n_iov = 2,
				 .control = 0x4000,
				 .control_len = 24,
				 .flags = 0x40000000,
				 .name_bytes = "\2\0\0\120\177\0\0\1",
				 .control_bytes = "\24\0\0\0\0\0\0\0\1\0\0\0\1\0\0\0\7" };
	char room[TRACE_LONG], before[16] = { [8] = (char)128 };

	(void)state;
	ev.args[1] = 0x5000;
	ev.ret = 2;
	ev.read[0] = bytes(room, vectors(room));
	ev.read[1] = bytes((const char *)&msg, sizeof(msg));
	ev.read[2] = bytes(before, sizeof(before));
	assert_string_equal(
		text_of(&ev),
		"0, {msg_name={sa_family=AF_INET, sin_port=htons(80), sin_addr=inet_addr(\"127.0.0.1\")}, "
		"msg_namelen=128 => 16, msg_iov=[{iov_base=\"ab\", iov_len=2}, {iov_base=\"\", iov_len=40}], "
		"msg_iovlen=2, msg_control=[{cmsg_len=20, cmsg_level=SOL_SOCKET, cmsg_type=SCM_RIGHTS, "
		"cmsg_data=[7]}], msg_controllen=24, msg_flags=MSG_CMSG_CLOEXEC}, 0 = 2");
	/* Whatever of it was read, and whatever its lengths say. */
	for (uint32_t len = 0; len <= sizeof(msg); len++) {
		char *cut = malloc(len + 1);

		memcpy(cut, &msg, len);
		ev.read[1] = bytes(cut, len);
		assert_non_null(strstr(text_of(&ev), "msg_name="));
		free(cut);
	}
	msg.name_len = msg.control_bytes[0] = 255;
	msg.control_len = UINT64_MAX;
	msg.n_iov = UINT64_MAX;
	ev.read[1] = bytes((const char *)&msg, sizeof(msg));
	assert_non_null(strstr(text_of(&ev), ", ...]"));
	ev.read[0] = ev.read[1] = bytes(NULL, 0);
	ev.ret = -EAGAIN;
	assert_string_equal(
		text_of(&ev),
		"0, {msg_namelen=128}, 0 = -1 EAGAIN (Resource temporarily unavailable)");
}

static void actions_requests_and_lengths_have_the_forms_of_strace(void **state)
{
	struct trace_event ev = begin("rt_sigaction");
	uint64_t action[4] = { 0x1000, 0x14000004, 0x2000, 1ull << 9 | 1ull << 33 };
	int before = 128, after = 16;

	(void)state;
	ev.args[0] = 10;
	ev.args[1] = 0x1000;
	ev.args[3] = 8;
	ev.read[0] = bytes((const char *)action, sizeof(action));
	assert_string_equal(
		text_of(&ev),
		"SIGUSR1, {sa_handler=0x1000, sa_mask=[USR1 RT_2], "
		"sa_flags=SA_RESTORER|SA_RESTART|SA_SIGINFO, sa_restorer=0x2000}, NULL, 8 = 0");
	ev = begin("ioctl");
	ev.args[1] = 0x541b;
	ev.args[2] = 0x1000;
	ev.read[0] = bytes("\5\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 16);
	assert_string_equal(text_of(&ev), "0, FIONREAD, [5] = 0");
	ev.args[1] = 0x8933;
	ev.read[0] = bytes("eth0\0xxxxxxxxxxx", 16);
	assert_string_equal(text_of(&ev), "0, SIOCGIFINDEX, {ifr_name=\"eth0\", ...} = 0");
	ev.args[1] = 0x80047a05;
	assert_string_equal(text_of(&ev), "0, _IOC(_IOC_READ, 0x7a, 0x5, 0x4), 0x1000 = 0");
	ev.args[1] = 0x5451;
	assert_string_equal(text_of(&ev), "0, FIOCLEX = 0");
	ev = begin("setsockopt");
	ev.args[1] = 1;
	ev.args[2] = 2;
	ev.args[3] = 0x1000;
	ev.args[4] = 4;
	ev.read[0] = bytes("\1\0\0\0", 4);
	assert_string_equal(text_of(&ev), "0, SOL_SOCKET, SO_REUSEADDR, [1], 4 = 0");
	ev.args[4] = 3;
	ev.read[0] = bytes("lo", 3);
	assert_string_equal(text_of(&ev), "0, SOL_SOCKET, SO_REUSEADDR, \"lo\\0\", 3 = 0");
	ev = begin("accept");
	ev.args[2] = 0x1000;
	ev.read[1] = bytes((const char *)&before, 4);
	ev.read[2] = bytes((const char *)&after, 4);
	assert_string_equal(text_of(&ev), "0, NULL, [128 => 16] = 0");
	ev.read[2] = ev.read[1];
	assert_string_equal(text_of(&ev), "0, NULL, [128] = 0");
}

static void unknown_calls_have_hexadecimal_arguments(void **state)
{
	struct trace_event ev = { .args = { 1 }, .returns = false };

	(void)state;
	call_shape_of(UINT32_MAX, 32, &shape, &call);
	assert_string_equal(text_of(&ev), "0x1, NULL, NULL, NULL, NULL, NULL = ?");
}

static void calls_are_chosen_by_name_and_class(void **state)
{
	bool wanted[TRACE_CALLS];
	struct err e = { 0 };

	(void)state;
	assert_int_equal(calls_choose("trace=%file,close", wanted, &e), 0);
	assert_true(wanted[syscall_number("openat")] && wanted[syscall_number("close")]);
	assert_false(wanted[syscall_number("read")] || wanted[TRACE_CALLS - 1]);
	assert_int_equal(calls_choose("!read,%net", wanted, &e), 0);
	assert_false(wanted[syscall_number("read")] || wanted[syscall_number("socket")]);
	assert_true(wanted[syscall_number("openat")] && wanted[TRACE_CALLS - 1]);
	assert_int_equal(calls_choose("read,", wanted, &e), -EINVAL);
	assert_int_equal(calls_choose("%nothing", wanted, &e), -EINVAL);
	assert_non_null(strstr(e.msg, "%nothing"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_row_can_be_read),
		cmocka_unit_test(a_path_a_directory_and_flags_have_names),
		cmocka_unit_test(buffers_are_bounded_and_escaped),
		cmocka_unit_test(addresses_of_sockets_are_decoded),
		cmocka_unit_test(buffers_stand_one_behind_the_other),
		cmocka_unit_test(a_message_has_its_address_and_what_it_hands_on),
		cmocka_unit_test(actions_requests_and_lengths_have_the_forms_of_strace),
		cmocka_unit_test(unknown_calls_have_hexadecimal_arguments),
		cmocka_unit_test(calls_are_chosen_by_name_and_class),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
