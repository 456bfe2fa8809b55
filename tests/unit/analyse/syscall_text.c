#include "analyse/syscall_text.h"
#include "base/syscall_names.h"

#include <errno.h>
#include <fcntl.h>
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
		cmocka_unit_test(unknown_calls_have_hexadecimal_arguments),
		cmocka_unit_test(calls_are_chosen_by_name_and_class),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
