#include "base/host_share.h"

#include "base/hash.h"
#include "base/small_file.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

double host_share_of(const char *words)
{
	/* As many bits as a double has. */
	return (double)(content_hash(words, strlen(words)) >> 11) * 0x1p-53;
}

double host_share(void)
{
	char words[64 + 65] = "";

	small_file_read(AT_FDCWD, "/proc/sys/kernel/random/boot_id", words, 64);
	gethostname(words + strlen(words), 64);
	return host_share_of(words);
}
