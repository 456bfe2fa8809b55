#include "collect/session/kernel_types.h"

#include <bpf/btf.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

int btf_tracepoint_args(const struct btf *btf, const char *name)
{
	const struct btf_type *t;
	char full[64];
	int id;

	snprintf(full, sizeof(full), "btf_trace_%s", name);
	/* Its type is a pointer to a function of those, after a context. */
	id = btf__find_by_name_kind(btf, full, BTF_KIND_TYPEDEF);
	t = id > 0 ? btf__type_by_id(btf, (uint32_t)id) : NULL;
	t = t ? btf__type_by_id(btf, t->type) : NULL;
	t = t && btf_is_ptr(t) ? btf__type_by_id(btf, t->type) : NULL;
	return t && btf_is_func_proto(t) ? btf_vlen(t) - 1 : -1;
}

bool btf_has_tracepoint(const struct btf *btf, const char *name)
{
	char full[64];

	snprintf(full, sizeof(full), "btf_trace_%s", name);
	return btf__find_by_name_kind(btf, full, BTF_KIND_TYPEDEF) > 0;
}

static bool has_member(const struct btf *btf, const char *of, const char *name)
{
	int id = btf__find_by_name_kind(btf, of, BTF_KIND_STRUCT);
	const struct btf_type *t = id > 0 ? btf__type_by_id(btf, (uint32_t)id) : NULL;

	for (uint32_t i = 0; t && i < btf_vlen(t); i++)
		if (!strcmp(btf__name_by_offset(btf, btf_members(t)[i].name_off), name))
			return true;
	return false;
}

bool btf_has_cheap_mmap_lock(const struct btf *btf)
{
	return btf_has_tracepoint(btf, "mmap_lock_released") &&
	       has_member(btf, "vm_area_struct", "vm_lock_seq");
}

bool btf_has_sched_account(const struct btf *btf)
{
	return has_member(btf, "sched_entity", "cfs_rq") && has_member(btf, "cfs_rq", "rq") &&
	       has_member(btf, "rq", "clock") && has_member(btf, "sched_info", "last_queued");
}

static bool has_helper(const struct btf *btf, const char *name)
{
	int id = btf__find_by_name_kind(btf, "bpf_func_id", BTF_KIND_ENUM);
	const struct btf_type *t = id > 0 ? btf__type_by_id(btf, (uint32_t)id) : NULL;

	for (uint32_t i = 0; t && i < btf_vlen(t); i++)
		if (!strcmp(btf__name_by_offset(btf, btf_enum(t)[i].name_off), name))
			return true;
	return false;
}

bool btf_has_task_regs(const struct btf *btf)
{
	return has_helper(btf, "BPF_FUNC_task_pt_regs");
}
