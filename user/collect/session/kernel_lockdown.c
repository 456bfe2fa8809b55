#include "collect/session/kernel_lockdown.h"
#include "base/small_file.h"

#include <fcntl.h>
#include <string.h>

enum kernel_lockdown kernel_lockdown(void)
{
	char text[4096];

	/* "none integrity [confidentiality]" */
	if (small_file_read(AT_FDCWD, "/sys/kernel/security/lockdown", text, sizeof(text)) > 0)
		return strstr(text, "[confidentiality]") ? LOCKDOWN_CONFIDENTIALITY
		       : strstr(text, "[integrity]")     ? LOCKDOWN_INTEGRITY
							 : LOCKDOWN_NONE;
	if (small_file_read(AT_FDCWD, "/proc/cmdline", text, sizeof(text)) <= 0)
		return LOCKDOWN_NONE;
	return strstr(text, "lockdown=confidentiality") ? LOCKDOWN_CONFIDENTIALITY
	       : strstr(text, "lockdown=integrity")     ? LOCKDOWN_INTEGRITY
							: LOCKDOWN_NONE;
}
