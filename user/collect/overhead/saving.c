#include "collect/overhead/saving.h"

bool saving_decide(struct saving *s, double percent)
{
	uint32_t was = s->made;

	s->over = percent > s->limit * SAVING_OVER ? s->over + 1 : 0;
	s->back = percent < s->limit * SAVING_BACK ? s->back + 1 : 0;
	if (s->over >= SAVING_AGREE && s->made < s->most)
		s->made++;
	else if (s->back >= SAVING_AGREE + s->burst && s->made)
		s->made--;
	if (s->made != was)
		s->over = s->back = 0;
	return s->made != was;
}
