#include "symbolize/kernel_modules.h"

#include "base/cleanup.h"
#include "base/hash.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* Not its count of uses and who uses it, which change. "NAME SIZE USES USERS STATE 0xADDR". */
static bool add(const char *line, const char *folders, uint64_t *sign)
{
	unsigned long long size, addr;
	char name[64], path[256];
	struct stat st;
	struct {
		uint64_t size, addr, inode, before;
		char name[64];
	} one = { 0 };

	if (sscanf(line, "%63s %llu %*s %*s Live 0x%llx", name, &size, &addr) != 3 || !addr)
		return false;
	snprintf(path, sizeof(path), "%s/%s", folders, name);
	if (stat(path, &st) < 0)
		return false;
	one.size = size;
	one.addr = addr;
	one.inode = st.st_ino;
	one.before = *sign;
	memcpy(one.name, name, strlen(name));
	*sign = content_hash(&one, sizeof(one));
	return true;
}

bool kernel_modules_read(const char *list, const char *folders, uint64_t *ret_sign)
{
	_cleanup_(fclosep) FILE *f = fopen(list, "re");
	_cleanup_(freep) char *line = NULL;
	uint64_t sign = 0;
	size_t cap = 0;
	uint32_t n = 0;

	while (f && getline(&line, &cap, f) > 0) {
		if (!add(line, folders, &sign))
			return false;
		n++;
	}
	*ret_sign = sign;
	return n > 0;
}

bool kernel_modules_now(uint64_t *ret_sign)
{
	return kernel_modules_read("/proc/modules", "/sys/module", ret_sign);
}
