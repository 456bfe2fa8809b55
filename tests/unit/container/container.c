#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <errno.h>
#include <ftw.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "container/container.h"
#include "container/engine.h"

#define ID_A "aaaa567890123456789012345678901234567890123456789012345678901234"
#define ID_B "aabb567890123456789012345678901234567890123456789012345678901234"
#define ID_C "cccc567890123456789012345678901234567890123456789012345678901234"

static char root[64];
static struct container_list all;

static void put(const char *path, const char *text)
{
	char full[512];
	FILE *f;

	snprintf(full, sizeof(full), "%s/%s", root, path);
	for (char *slash = strchr(full + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		mkdir(full, 0700);
		*slash = '/';
	}
	f = fopen(full, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	return remove(path);
}

static int set_up(void **state)
{
	snprintf(root, sizeof(root), "/tmp/memscope-unit-XXXXXX");
	assert_non_null(mkdtemp(root));
	all = (struct container_list){ 0 };
	return 0;
}

static int tear_down(void **state)
{
	containers_fini(&all);
	nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	return 0;
}

static void put_podman(const char *json)
{
	put("var/lib/containers/storage/overlay-containers/containers.json", json);
}

/* As CRI-O 1.37 writes them (internal/storage/runtime.go): what it leaves empty is not there. */
static const char crio[] =
	"[{\"id\":\"" ID_B "\",\"names\":[\"k8s_app_web-0_shop_u1_2\"],"
	"\"metadata\":\"{\\\"pod-name\\\":\\\"k8s_web-0_shop_u1_0\\\",\\\"pod-id\\\":\\\"" ID_A
	"\\\",\\\"image-name\\\":\\\"quay.io/shop/app:1\\\",\\\"name\\\":"
	"\\\"k8s_app_web-0_shop_u1_2\\\",\\\"metadata-name\\\":\\\"app\\\",\\\"attempt\\\":2}\"},"
	"{\"id\":\"" ID_A "\",\"names\":[\"k8s_POD_web-0_shop_u1_0\",\"k8s_web-0_shop_u1_0\"],"
	"\"metadata\":\"{\\\"pod-name\\\":\\\"k8s_web-0_shop_u1_0\\\",\\\"pod-id\\\":\\\"" ID_A
	"\\\",\\\"metadata-name\\\":\\\"web-0\\\",\\\"uid\\\":\\\"u1\\\","
	"\\\"namespace\\\":\\\"shop\\\",\\\"pod\\\":true}\"}]";

static void put_crio(const char *list)
{
	char path[256];

	snprintf(path, sizeof(path), "var/lib/containers/storage/overlay-containers/%s", list);
	put(path, crio);
}

static void put_task(const char *space, const char *id, const char *json)
{
	char path[256];

	snprintf(path, sizeof(path),
		 "run/containerd/io.containerd.runtime.v2.task/%s/%s/config.json", space, id);
	put(path, json);
}

static void put_docker(const char *id, const char *json)
{
	char path[256];

	snprintf(path, sizeof(path), "var/lib/docker/containers/%s/config.v2.json", id);
	put(path, json);
}

static void read_all(void)
{
	assert_int_equal(containers_read(root, NULL, &all, NULL), 0);
}

static void each_engine_tells_its_containers(void **state)
{
	const struct container *c;

	put_podman("[{\"id\":\"" ID_A "\",\"names\":[\"web\"],"
		   "\"metadata\":\"{\\\"image-name\\\":\\\"localhost/hog:1\\\"}\"}]");
	put_docker(ID_B, "{\"Name\":\"/db\",\"Config\":{\"Image\":\"postgres\"}}");
	put_task("k8s.io", ID_C,
		 "{\"annotations\":{\"io.kubernetes.cri.container-name\":\"app\","
		 "\"io.kubernetes.cri.sandbox-name\":\"pod-1\"},"
		 "\"linux\":{\"cgroupsPath\":\"/kubepods/x/" ID_C "\"}}");
	put_task("default", "plain", "{\"linux\":{\"cgroupsPath\":\"/default/plain\"}}");
	read_all();
	assert_int_equal(all.n, 4);
	c = container_by_id(&all, ID_A);
	assert_string_equal(c->engine, "podman");
	assert_string_equal(c->name, "web");
	assert_string_equal(c->image, "localhost/hog:1");
	c = container_by_id(&all, ID_B);
	assert_string_equal(c->engine, "docker");
	assert_string_equal(c->name, "db");
	c = container_by_id(&all, ID_C);
	assert_string_equal(c->name, "pod-1/app");
	assert_string_equal(c->alias, "app");
	assert_string_equal(c->cgroup, "/kubepods/x/" ID_C);
	c = container_by_id(&all, "plain");
	assert_string_equal(container_title(c), "plain");
}

static void containers_of_cri_o_have_the_names_of_kubernetes(void **state)
{
	static const char *const lists[] = { "containers.json", "volatile-containers.json" };

	for (int i = 0; i < 2; i++) {
		set_up(NULL);
		put_crio(lists[i]);
		read_all();
		assert_int_equal(all.n, 1); /* the pod's own holds its namespaces, runs nothing */
		assert_string_equal(all.list[0].engine, "crio");
		assert_string_equal(all.list[0].id, ID_B);
		assert_string_equal(all.list[0].name, "web-0/app");
		assert_string_equal(all.list[0].alias, "app");
		assert_string_equal(all.list[0].pod, "web-0");
		assert_string_equal(all.list[0].namespace, "shop");
		assert_string_equal(all.list[0].image, "quay.io/shop/app:1");
		tear_down(NULL);
	}
	set_up(NULL);
}

static void one_store_of_podman_and_cri_o_is_told_apart(void **state)
{
	struct engine_finding f[8];

	put_crio("volatile-containers.json");
	put_podman("[{\"id\":\"" ID_C "\",\"names\":[\"tool\"],\"metadata\":\"{}\"}]");
	read_all();
	assert_int_equal(all.n, 2);
	assert_string_equal(container_by_id(&all, ID_C)->engine, "podman");
	assert_null(container_by_id(&all, ID_C)->pod);
	assert_string_equal(container_by_id(&all, ID_B)->engine, "crio");
	assert_int_equal(engines_find(root, &all, f, 8), 4);
	assert_int_equal(f[0].containers, 1);
	assert_string_equal(f[1].name, "crio");
	assert_string_equal(f[1].where, "/var/lib/containers/storage");
	assert_int_equal(f[1].containers, 1);
}

static void a_pod_that_is_not_known_leaves_its_containers_their_own_name(void **state)
{
	put_podman("[{\"id\":\"" ID_B "\",\"metadata\":"
		   "\"{\\\"pod-id\\\":\\\"" ID_A "\\\",\\\"metadata-name\\\":\\\"app\\\"}\"},"
		   "{\"id\":\"" ID_C "\",\"metadata\":\"{\\\"pod-id\\\":\\\"" ID_A "\\\"}\"}]");
	read_all();
	assert_int_equal(all.n, 2);
	assert_string_equal(container_by_id(&all, ID_B)->name, "app");
	assert_null(container_by_id(&all, ID_B)->pod);
	assert_string_equal(container_by_id(&all, ID_C)->name, "");
}

static void what_podman_removes_at_its_end_is_in_a_list_of_its_own(void **state)
{
	put("run/containers/storage/overlay-containers/volatile-containers.json",
	    "[{\"id\":\"" ID_A "\",\"names\":[\"transient\"]}]");
	put("var/lib/containers/storage/overlay-containers/volatile-containers.json",
	    "[{\"id\":\"" ID_B "\",\"names\":[\"rm\"]}]");
	read_all();
	assert_int_equal(all.n, 2);
	assert_string_equal(container_by_id(&all, ID_A)->name, "transient");
	assert_string_equal(container_by_id(&all, ID_B)->name, "rm");
}

static void kubelet_s_containers_have_the_same_names_with_every_engine(void **state)
{
	static const char *const ids[] = { ID_A, ID_C };

	put_task("k8s.io", ID_A,
		 "{\"annotations\":{\"io.kubernetes.cri.container-name\":\"app\","
		 "\"io.kubernetes.cri.sandbox-name\":\"web-0\","
		 "\"io.kubernetes.cri.sandbox-namespace\":\"shop\"}}");
	put_docker(ID_C, "{\"Name\":\"/k8s_app_web-0_shop_u1_0\",\"Config\":{\"Labels\":{"
			 "\"io.kubernetes.container.name\":\"app\","
			 "\"io.kubernetes.docker.type\":\"container\","
			 "\"io.kubernetes.pod.name\":\"web-0\","
			 "\"io.kubernetes.pod.namespace\":\"shop\"}}}");
	put_docker(ID_B, "{\"Name\":\"/k8s_POD_web-0_shop_u1_0\",\"Config\":{\"Labels\":{"
			 "\"io.kubernetes.docker.type\":\"podsandbox\"}}}");
	read_all();
	assert_int_equal(all.n, 2);
	for (int i = 0; i < 2; i++) {
		const struct container *c = container_by_id(&all, ids[i]);

		assert_string_equal(c->name, "web-0/app");
		assert_string_equal(c->pod, "web-0");
		assert_string_equal(c->namespace, "shop");
	}
}

static void what_docker_runs_through_containerd_is_docker_s(void **state)
{
	put_docker(ID_B, "{\"Name\":\"/db\"}");
	put_task("moby", ID_B, "{}");
	read_all();
	assert_int_equal(all.n, 1);
	assert_string_equal(all.list[0].engine, "docker");
}

static void a_sandbox_is_no_container(void **state)
{
	put_task("k8s.io", ID_A,
		 "{\"annotations\":{\"io.kubernetes.cri.container-type\":\"sandbox\"}}");
	read_all();
	assert_int_equal(all.n, 0);
}

static void state_files_that_are_not_what_they_should_be_are_passed_over(void **state)
{
	char link[256];

	put_podman("[{\"id\":7},{\"id\":\"\"},{\"names\":3,\"id\":\"" ID_A
		   "\",\"metadata\":\"{\"},7,"
		   "{\"id\":\"" ID_A "\"}]");
	put_docker(ID_B, "{\"Name\":");
	put_docker(ID_C, "[]");
	snprintf(link, sizeof(link), "%s/var/lib/docker/containers/loop", root);
	assert_int_equal(symlink("loop", link), 0);
	put_task("default", "x", "{\"linux\":{\"cgroupsPath\":\"/\"}}");
	read_all();
	assert_int_equal(all.n, 2);
	assert_string_equal(all.list[0].name, "");
	assert_null(container_by_id(&all, "x")->cgroup);
}

static void a_link_leads_nowhere_but_below_the_root(void **state)
{
	char path[256];

	put("outside.json", "[{\"id\":\"" ID_A "\",\"names\":[\"web\"]}]");
	put("host/etc/passwd", "");
	put("host/var/lib/containers/storage/overlay-containers/lock", "");
	snprintf(path, sizeof(path),
		 "%s/host/var/lib/containers/storage/overlay-containers/containers.json", root);
	assert_int_equal(symlink("../../../../../../../outside.json", path), 0);
	snprintf(path, sizeof(path), "%s/host", root);
	assert_int_equal(containers_read(path, NULL, &all, NULL), 0);
	assert_int_equal(all.n, 0);
}

static void where_files_are_configured_to_be_they_are_found(void **state)
{
	put("etc/docker/daemon.json", "{\"data-root\":\"/big/docker\"}");
	put("big/docker/containers/" ID_A "/config.v2.json", "{\"Name\":\"/db\"}");
	put("etc/containers/storage.conf",
	    "# graphroot = \"/no\"\n[storage]\n  graphroot = \"/big/pods\"\n");
	put("big/pods/overlay-containers/containers.json",
	    "[{\"id\":\"" ID_B "\",\"names\":[\"web\"]}]");
	read_all();
	assert_int_equal(all.n, 2);
}

static void a_variable_names_another_place_below_the_root(void **state)
{
	struct engine_finding f[8];

	put("big/docker/containers/" ID_A "/config.v2.json", "{\"Name\":\"/db\"}");
	put("big/pods/overlay-containers/containers.json",
	    "[{\"id\":\"" ID_B "\",\"names\":[\"web\"]}]");
	put("run/k3s/containerd/io.containerd.runtime.v2.task/k8s.io/" ID_C "/config.json", "{}");
	read_all();
	assert_int_equal(all.n, 1); /* k3s' place is known */
	containers_fini(&all);
	setenv("MEMSCOPE_DOCKER_ROOT", "/big/docker", 1);
	setenv("MEMSCOPE_PODMAN_ROOT", "/big/pods", 1);
	setenv("MEMSCOPE_CONTAINERD_STATE", "../../etc", 1); /* no absolute path: none */
	read_all();
	assert_int_equal(all.n, 3);
	assert_int_equal(engines_find(root, &all, f, 8), 4);
	assert_string_equal(f[0].where, "/big/pods");
	assert_string_equal(f[1].where, "");
	assert_string_equal(f[2].where, "/big/docker");
	assert_string_equal(f[3].where, "/run/k3s/containerd");
	assert_string_equal(f[3].env, "MEMSCOPE_CONTAINERD_STATE");
	unsetenv("MEMSCOPE_DOCKER_ROOT");
	unsetenv("MEMSCOPE_PODMAN_ROOT");
	unsetenv("MEMSCOPE_CONTAINERD_STATE");
}

static void cri_o_is_found_where_its_configuration_says(void **state)
{
	put_crio("containers.json");
	setenv("MEMSCOPE_CRIO_ROOT", "/big/crio", 1);
	read_all();
	assert_int_equal(all.n, 0);
	put("big/crio/overlay-containers/volatile-containers.json", crio);
	read_all();
	assert_int_equal(all.n, 1);
	containers_fini(&all);
	unsetenv("MEMSCOPE_CRIO_ROOT");
	tear_down(NULL);
	set_up(NULL);
	put("etc/crio/crio.conf", "[crio]\n# root = \"/no\"\nroot = \"/big/crio\"\n"
				  "[crio.runtime]\ndefault_runtime = \"runc\"\n");
	put("big/crio/overlay-containers/volatile-containers.json", crio);
	read_all();
	assert_int_equal(all.n, 1);
}

static int give_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	return lchown(path, (uid_t)33, (gid_t)33);
}

/* Debian's user 33, whose home is /var/www, writes what it likes. */
static void what_a_user_says_of_others_containers_is_not_believed(void **state)
{
	const struct passwd *user = getpwuid(33);
	const struct container *c = NULL;
	char home[128];

	if (geteuid() != 0 || !user || strcmp(user->pw_dir, "/var/www") != 0) {
		print_message("needs root, and a user 33 whose home is /var/www\n");
		skip();
	}
	put("var/www/.local/share/containers/storage/overlay-containers/containers.json",
	    "[{\"id\":\"" ID_A "\",\"names\":[\"evil\"]},{\"id\":\"" ID_B "\",\"names\":[\"own\"]},"
	    "{\"id\":\"" ID_C "\",\"names\":[\"web\"]}]");
	snprintf(home, sizeof(home), "%s/var/www", root);
	assert_int_equal(nftw(home, give_one, 16, FTW_PHYS), 0);
	put_docker(ID_A, "{\"Name\":\"/web\"}");
	read_all();
	assert_int_equal(all.n, 3);
	assert_string_equal(container_by_id(&all, ID_A)->name, "web");
	assert_int_equal(container_by_id(&all, ID_A)->uid, 0);
	assert_string_equal(container_by_id(&all, ID_B)->name, "own");
	assert_int_equal(container_by_id(&all, ID_B)->uid, 33);
	/* Its own are where it may make groups, root's are not there. */
	assert_null(container_by_path(&all, "/system.slice/docker-" ID_B ".scope"));
	assert_null(container_by_path(&all, "/user.slice/user-1000.slice/libpod-" ID_B ".scope"));
	c = container_by_path(&all,
			      "/user.slice/user-33.slice/user@33.service/libpod-" ID_B ".scope/x");
	assert_non_null(c);
	assert_string_equal(c->name, "own");
	assert_null(container_by_path(&all, "/user.slice/user-33.slice/docker-" ID_A ".scope"));
	c = container_by_path(&all, "/system.slice/docker-" ID_A ".scope");
	assert_non_null(c);
	assert_string_equal(c->name, "web");
	for (uint32_t i = 0; i < all.n; i++)
		all.list[i].running = true;
	assert_int_equal(container_find(&all, "web", &c, NULL), 0);
	assert_string_equal(c->id, ID_A);
	assert_int_equal(container_find(&all, "own", &c, NULL), 0);
	assert_string_equal(c->id, ID_B);
}

/* --- which one is meant --- */

static void put_two(void)
{
	put_podman("[{\"id\":\"" ID_A "\",\"names\":[\"web-1\"]},"
		   "{\"id\":\"" ID_B "\",\"names\":[\"web-2\"]},"
		   "{\"id\":\"" ID_C "\",\"names\":[\"aab\"]}]");
	read_all();
	for (uint32_t i = 0; i < all.n; i++)
		all.list[i].running = true;
}

static void a_name_goes_before_the_beginning_of_an_id(void **state)
{
	const struct container *c = NULL;

	put_two();
	assert_int_equal(container_find(&all, "aab", &c, NULL), 0);
	assert_string_equal(c->id, ID_C);
	assert_int_equal(container_find(&all, "aabb", &c, NULL), 0);
	assert_string_equal(c->id, ID_B);
	assert_int_equal(container_find(&all, ID_A, &c, NULL), 0);
	assert_string_equal(c->id, ID_A);
}

static void two_that_fit_are_listed_and_refused(void **state)
{
	const struct container *c = NULL;
	struct err e;

	put_two();
	all.list[0].alias = strdup("web");
	all.list[1].alias = strdup("web");
	assert_int_equal(container_find(&all, "web", &c, &e), -EEXIST);
	assert_null(c);
	assert_non_null(strstr(e.msg, "2 containers are called \"web\""));
	assert_non_null(strstr(e.msg, "web-1 (podman aaaa56789012)"));
	assert_non_null(strstr(e.msg, "web-2"));
	assert_null(strstr(e.msg, "aab "));
	all.list[1].running = false; /* then only one is left to be meant */
	assert_int_equal(container_find(&all, "web", &c, &e), 0);
	assert_string_equal(c->id, ID_A);
}

static void names_of_kubernetes_are_taken_with_and_without_their_namespace(void **state)
{
	static const char *const names[] = { "shop/web-0/app", "shop/web-0", "db", "db-0" };
	static const char *const of[] = { ID_A, ID_A, ID_C, ID_C };
	const struct container *c = NULL;
	struct err e;

	put_two();
	for (uint32_t i = 0; i < 3; i++) {
		const struct kubernetes_names is[] = { { "shop", "web-0", "app" },
						       { "test", "web-0", "app" },
						       { "shop", "db-0", "db" } };
		struct container_list one = { 0 };

		assert_non_null(
			container_add_kubernetes(&one, "crio", all.list[i].id, &is[i], NULL));
		one.list[0].running = true;
		free(all.list[i].id);
		free(all.list[i].name);
		all.list[i] = one.list[0];
		free(one.list);
	}
	for (int i = 0; i < 4; i++) {
		assert_int_equal(container_find(&all, names[i], &c, NULL), 0);
		assert_string_equal(c->id, of[i]);
	}
	assert_true(container_is_called(c, "shop/db-0/db"));
	assert_false(container_is_called(c, "db")); /* what comes next may be another pod's */
	assert_int_equal(container_find(&all, "web-0/app", &c, &e), -EEXIST);
	assert_non_null(strstr(e.msg, "shop/web-0/app (crio aaaa56789012)"));
	assert_non_null(strstr(e.msg, "test/web-0/app"));
	assert_int_equal(container_find(&all, "prod/web-0/app", &c, &e), -ENOENT);
}

static void an_unknown_name_lists_those_that_run(void **state)
{
	const struct container *c;
	struct err e;

	put_two();
	all.list[2].running = false;
	assert_int_equal(container_find(&all, "nobody", &c, &e), -ENOENT);
	assert_non_null(strstr(e.msg, "there is no container \"nobody\""));
	assert_non_null(strstr(e.msg, "web-1"));
	assert_non_null(strstr(e.msg, "web-2"));
	assert_null(strstr(e.msg, "cccc"));
	assert_null(strstr(e.msg, "doctor"));
	all.list[0].engine = ""; /* only its group was found */
	assert_int_equal(container_find(&all, "nobody", &c, &e), -ENOENT);
	assert_non_null(strstr(e.msg, "memscope doctor"));
	assert_int_equal(container_find(&all, "aa", &c, &e),
			 -ENOENT); /* two characters name nothing */
}

static void one_that_does_not_run_is_told_from_one_that_is_not(void **state)
{
	const struct container *c;
	struct err e;

	put_two();
	all.list[0].running = false;
	assert_int_equal(container_find(&all, "web-1", &c, &e), -ESRCH);
	assert_non_null(strstr(e.msg, "does not run"));
	assert_non_null(strstr(e.msg, "web-2"));
}

/* --- paths --- */

static void an_id_is_found_in_every_form_of_a_group_s_name(void **state)
{
	static const char *const paths[] = {
		"/docker/" ID_A,
		"/system.slice/docker-" ID_A ".scope",
		"/libpod_parent/libpod-" ID_A,
		"/machine.slice/libpod-" ID_A ".scope/container",
		"/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" ID_A ".scope",
		"/kubepods/burstable/pod7c7e4c7e-0000-0000-0000-000000000000/" ID_A,
		"/kubepods.slice/kubepods-pod7c7e.slice/cri-containerd-" ID_A ".scope",
		"/kubepods.slice/kubepods-pod7c7e.slice/crio-" ID_A ".scope/inner",
		"/system.slice/containerd.service/kubepods-pod7:cri-containerd:" ID_A,
		"/docker/" ID_A "/docker/" ID_B,
	};
	char id[CONTAINER_ID_HEX + 1];
	size_t len;

	for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++) {
		assert_true(container_id_in(paths[i], id, &len));
		assert_string_equal(id, ID_A);
		assert_true(len <= strlen(paths[i]));
		assert_true(paths[i][len] == '/' || !paths[i][len]);
	}
}

static void what_only_looks_like_an_id_is_none(void **state)
{
	static const char *const paths[] = {
		"/",
		"",
		"/system.slice/ssh.service",
		"/machine.slice/libpod-conmon-" ID_A ".scope",
		"/kubepods.slice/crio-conmon-" ID_A ".scope",
		"/docker/" ID_A "0",
		"/docker/x" ID_A,
		"/docker/AAAA567890123456789012345678901234567890123456789012345678901234",
	};
	char id[CONTAINER_ID_HEX + 1];
	size_t len;

	for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++)
		assert_false(container_id_in(paths[i], id, &len));
}

static void a_path_below_a_container_s_group_is_its(void **state)
{
	put_task("default", "web", "{\"linux\":{\"cgroupsPath\":\"/default/web\"}}");
	read_all();
	assert_non_null(container_by_path(&all, "/default/web"));
	assert_non_null(container_by_path(&all, "/default/web/below"));
	assert_null(container_by_path(&all, "/default/web2"));
	assert_null(container_by_path(&all, "/default"));
}

#define FACT(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		FACT(each_engine_tells_its_containers),
		FACT(containers_of_cri_o_have_the_names_of_kubernetes),
		FACT(one_store_of_podman_and_cri_o_is_told_apart),
		FACT(a_pod_that_is_not_known_leaves_its_containers_their_own_name),
		FACT(what_podman_removes_at_its_end_is_in_a_list_of_its_own),
		FACT(kubelet_s_containers_have_the_same_names_with_every_engine),
		FACT(cri_o_is_found_where_its_configuration_says),
		FACT(what_a_user_says_of_others_containers_is_not_believed),
		FACT(names_of_kubernetes_are_taken_with_and_without_their_namespace),
		FACT(what_docker_runs_through_containerd_is_docker_s),
		FACT(a_sandbox_is_no_container),
		FACT(state_files_that_are_not_what_they_should_be_are_passed_over),
		FACT(a_link_leads_nowhere_but_below_the_root),
		FACT(a_variable_names_another_place_below_the_root),
		FACT(where_files_are_configured_to_be_they_are_found),
		FACT(a_name_goes_before_the_beginning_of_an_id),
		FACT(two_that_fit_are_listed_and_refused),
		FACT(an_unknown_name_lists_those_that_run),
		FACT(one_that_does_not_run_is_told_from_one_that_is_not),
		FACT(an_id_is_found_in_every_form_of_a_group_s_name),
		FACT(what_only_looks_like_an_id_is_none),
		FACT(a_path_below_a_container_s_group_is_its),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
