/* A message of sock_diag, as anyone may have made it: read to its end and no further; its peer has a name. */
#include "proc/sock_diag.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	char name[TCP_NAME_MAX];
	struct tcp_conn c;

	if (!sock_diag_parse(data, len, &c))
		return 0;
	tcp_conn_peer(&c, name);
	if (!strchr(name, ':') || strnlen(name, sizeof(name)) == sizeof(name))
		abort();
	return 0;
}
