/* The kernel's own account of one program (BPF_ENABLE_STATS), which is counted while that is on. */
#include "collect/session/session_wire.h"

#include <bpf/bpf.h>

bool session_program_cost(int fd, struct program_cost *ret_cost)
{
	struct bpf_prog_info info = {};
	uint32_t size = sizeof(info);

	if (bpf_obj_get_info_by_fd(fd, &info, &size) < 0)
		return false;
	*ret_cost = (struct program_cost){ info.run_cnt, info.run_time_ns };
	return true;
}
