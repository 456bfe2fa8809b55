#include "base/syscall_names.h"

#include <asm/unistd.h>
#include <stdio.h>
#include <string.h>

#define CALL(name) [__NR_##name] = #name,
static const char *const names[] = {
#include "base/syscall_numbers.h"
};
#define N_NAMES (sizeof(names) / sizeof(*names))

#define N_NAMES32 512
#undef CALL
#define CALL(nr, name) [nr] = "32bit_" #name,
static const char *const names32[N_NAMES32] = {
#include "base/syscall_numbers32.h"
};

const char *syscall_name(uint32_t nr, bool compat, char room[SYSCALL_NAME_MAX])
{
	if (!compat && nr < N_NAMES && names[nr])
		return names[nr];
	if (compat && nr < N_NAMES32 && names32[nr])
		return names32[nr];
	snprintf(room, SYSCALL_NAME_MAX, compat ? "32bit_%u" : "syscall_%u", nr);
	return room;
}

int syscall_number(const char *name)
{
	for (size_t i = 0; i < N_NAMES; i++)
		if (names[i] && strcmp(names[i], name) == 0)
			return (int)i;
	return -1;
}

const char *errno_name(int error)
{
	switch (error) { /* include/linux/errno.h: of calls that a signal interrupted, which begin again or fail */
	case 512:
		return "ERESTARTSYS";
	case 513:
		return "ERESTARTNOINTR";
	case 514:
		return "ERESTARTNOHAND";
	case 516:
		return "ERESTART_RESTARTBLOCK";
	default:
		return strerrorname_np(error);
	}
}
