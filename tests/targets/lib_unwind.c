/*
 * What unwind_calls calls: through its PLT, and after dlopen().
 */
int unwind_lib_add(int a);
void *unwind_lib_work(void);

__attribute__((noinline, noclone)) int unwind_lib_add(int a)
{
	return a + 1;
}

static __attribute__((noinline, noclone)) int unwind_lib_burn(volatile int *sink)
{
	for (int i = 0; i < 100000; i++)
		++*sink;
	return *sink;
}

__attribute__((noinline, noclone)) void *unwind_lib_work(void)
{
	static volatile int sink;

	while (unwind_lib_burn(&sink) != -1)
		;
	return (void *)&sink;
}
