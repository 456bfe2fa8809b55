#include "run/let_go.h"

#include "base/cells.h"
#include "base/cleanup.h"
#include "base/rights.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void let_go_of_the_kernel(void)
{
	_cleanup_(freep) struct dirent **names = NULL;
	int n = scandir("/proc/self/fd", &names, NULL, NULL);

	for (int i = 0; i < n; i++) {
		char path[300], to[64] = "";
		ssize_t len;

		snprintf(path, sizeof(path), "/proc/self/fd/%s", names[i]->d_name);
		len = readlink(path, to, sizeof(to) - 1);
		if (len > 0 && atoi(names[i]->d_name) > STDERR_FILENO &&
		    atoi(names[i]->d_name) != cells_fd() &&
		    (strncmp(to, "anon_inode:", 11) == 0 || strncmp(to, "socket:", 7) == 0))
			close(atoi(names[i]->d_name));
		free(names[i]);
	}
	rights_enter(RIGHTS_WRITE);
}
