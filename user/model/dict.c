#include "model/dict.h"

#include "model/tables.h"

/* Index 0 of each kind is the empty one: a zeroed entry that no hash index knows. */
static bool add_empty(struct dict *d)
{
	return chunks_add(&d->strings) && chunks_add(&d->modules) && chunks_add(&d->locations) &&
	       stack_tree_init(&d->stacks) == 0 && chunks_add(&d->label_sets);
}

struct dict *dict_new(void)
{
	_cleanup_(dict_freep) struct dict *d = calloc(1, sizeof(*d));

	if (!d)
		return NULL;
	d->strings = CHUNKS_OF(struct str_entry);
	d->modules = CHUNKS_OF(struct module_entry);
	d->locations = CHUNKS_OF(struct location_entry);
	d->label_sets = CHUNKS_OF(struct labels_entry);
	return add_empty(d) ? TAKE_PTR(d) : NULL;
}

void dict_use(struct dict *d, struct dict_user *user,
	      void (*mark)(const struct dict_user *, struct id_marks *))
{
	*user = (struct dict_user){ .next = d->users, .at = &d->users, .mark = mark };
	if (d->users)
		d->users->at = &user->next;
	d->users = user;
}

void dict_use_end(struct dict_user *user)
{
	if (!user->at)
		return;
	*user->at = user->next;
	if (user->next)
		user->next->at = user->at;
	*user = (struct dict_user){ 0 };
}

void dict_free(struct dict *d)
{
	if (!d)
		return;
	while (d->users) /* freed after it, and asked for nothing more */
		dict_use_end(d->users);
	id_index_free(&d->by_text);
	HASH_CLEAR(hh, d->by_identity);
	HASH_CLEAR(hh, d->by_vaddr);
	HASH_CLEAR(hh, d->by_lines);
	HASH_CLEAR(hh, d->by_labels);
	chunks_free(&d->strings);
	chunks_free(&d->modules);
	chunks_free(&d->locations);
	stack_tree_fini(&d->stacks);
	chunks_free(&d->label_sets);
	arena_free(&d->arena);
	free(d);
}

bool dict_oom(const struct dict *d)
{
	return d->oom;
}
