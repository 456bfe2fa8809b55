#include "run/look_again.h"

static void look_at(struct look_again *l, pid_t pid, uint32_t tries, look_fn look, void *self,
		    uint64_t now_ns)
{
	if (look(self, pid, now_ns) || tries >= LOOK_AGAIN_TRIES || l->n >= LOOK_AGAIN_MAX)
		return;
	l->pending[l->n].pid = pid;
	l->pending[l->n++].tries = tries + 1;
}

void look_again_process(struct look_again *l, const struct process_event *event, look_fn look,
			void *self, uint64_t now_ns)
{
	switch (event->kind) {
	case PROCESS_ADDED:
	case PROCESS_MEMBER:
	case PROCESS_LISTED:
	case PROCESS_EXEC:
	case PROCESS_HELD:
		if (event->target)
			look_at(l, event->pid, 0, look, self, now_ns);
		break;
	default:
		break;
	}
}

void look_again_tick(struct look_again *l, look_fn look, void *self, uint64_t now_ns)
{
	uint32_t n = l->n;

	l->n = 0;
	for (uint32_t i = 0; i < n; i++)
		look_at(l, l->pending[i].pid, l->pending[i].tries, look, self, now_ns);
}
