#include "container/homes.h"

#include "base/grow.h"

#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static struct {
	const char **list;
	uint32_t n, cap;
	struct stat passwd;
	uint64_t read_ns; /* 0: never */
} homes;

static bool is_same_file(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
	       a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void forget(void)
{
	for (uint32_t i = 0; i < homes.n; i++)
		free((char *)homes.list[i]);
	homes.n = 0;
}

/* Users of services share one. */
static void drop_doubles(void)
{
	uint32_t n = 0;

	if (homes.n)
		qsort(homes.list, homes.n, sizeof(*homes.list), by_name);
	for (uint32_t i = 0; i < homes.n; i++)
		if (n && strcmp(homes.list[n - 1], homes.list[i]) == 0)
			free((char *)homes.list[i]);
		else
			homes.list[n++] = homes.list[i];
	homes.n = n;
}

#ifdef MEMSCOPE_STATIC
/* Without the host's modules of name services: of /etc/passwd alone. */
static FILE *users;

static void users_open(void)
{
	users = fopen("/etc/passwd", "re");
}

static struct passwd *users_next(void)
{
	return users ? fgetpwent(users) : NULL;
}

static void users_close(void)
{
	if (users)
		fclose(users);
	users = NULL;
}
#else
#define users_open  setpwent
#define users_next  getpwent
#define users_close endpwent
#endif

static void read_all(void)
{
	struct passwd *pw;

	forget();
	users_open();
	while (homes.n < HOMES_MAX && (pw = users_next())) {
		char *home;

		if (!pw->pw_uid || !pw->pw_dir || strcmp(pw->pw_dir, "/") == 0)
			continue;
		if (!GROW(homes.list, homes.n, homes.cap))
			break;
		home = strdup(pw->pw_dir);
		if (!home)
			break;
		homes.list[homes.n++] = home;
	}
	users_close();
	drop_doubles();
}

const char *const *homes_of_users(const char *passwd, uint64_t now_ns, uint32_t *ret_n)
{
	struct stat now = { 0 };

	stat(passwd, &now);
	if (!homes.read_ns || now_ns - homes.read_ns >= HOMES_NS ||
	    !is_same_file(&now, &homes.passwd)) {
		read_all();
		homes.read_ns = now_ns;
		homes.passwd = now;
	}
	*ret_n = homes.n;
	return homes.list;
}
