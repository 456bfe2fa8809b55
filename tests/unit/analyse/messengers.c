#include "analyse/messengers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void packages_that_come_with_go_are_its_library(void **state)
{
	static const char *const of_go[] = { "os.(*File).Sync",
					     "internal/poll.(*FD).Fsync",
					     "syscall.fsync",
					     "net/http.(*conn).serve",
					     "encoding/json.Marshal",
					     "sync.(*Mutex).Lock",
					     "sort.Slice",
					     "vendor/golang.org/x/net/http2/hpack.Encode",
					     "slices.SortFunc[go.shape.[]int]",
					     "runtime/debug.FreeOSMemory" };

	(void)state;
	for (size_t i = 0; i < sizeof(of_go) / sizeof(of_go[0]); i++)
		assert_true(messenger_of_go_library(of_go[i]));
}

static void modules_of_others_and_functions_of_c_are_not(void **state)
{
	static const char *const own[] = { "main.main",
					   "main.Map[os.File]",
					   "main.(*T[net/http.Request]).Do",
					   "github.com/lib/pq.(*conn).recv",
					   "go.uber.org/zap.(*Logger).Info",
					   "myapp/net.Dial",
					   "sort",
					   "sort.part.0",
					   "index.constprop.1",
					   "time.123",
					   "log.cold",
					   "std::sync::Mutex::lock",
					   "",
					   "[app+0x12]",
					   "operator delete(void*)" };

	(void)state;
	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		assert_false(messenger_of_go_library(own[i]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(packages_that_come_with_go_are_its_library),
		cmocka_unit_test(modules_of_others_and_functions_of_c_are_not),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
