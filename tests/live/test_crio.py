"""CRI-O's containers. There is none here: runc makes them with the control groups that CRI-O asks it for, and the
state files are written as its source says (cri-o 1.37: internal/storage/runtime.go, internal/config/cgmgr;
containers/storage: containers.go)."""

import datetime

from bundles import *
from containers import *
from harness import *

HZ = 499
BOX_SPIN = ("/bin/sh", "-c", "while :; do :; done")


class Crio(Engines):
    """A store of CRI-O below a root of its own, and the containers of it."""

    def __init__(self):
        super().__init__()
        self.rows, self.image, self.uid = [], image(), f"{os.urandom(4).hex()}"
        self.made = []

    def _row(self, ident, names, metadata):
        metadata = {"image-id": new_id(), "created-at": 1790000000, "privileged": False, **metadata}
        self.rows.append({"id": ident, "names": names, "image": metadata["image-id"], "layer": new_id(),
                          "metadata": json.dumps(metadata), "created": datetime.datetime.now().isoformat() + "Z",
                          "flags": {"MountLabel": "", "ProcessLabel": "", "Volatile": True}})
        self._put("var/lib/containers/storage/overlay-containers/volatile-containers.json", self.rows)

    def slice(self, pod):
        """Of a burstable pod, as kubelet's systemd driver names it."""
        return f"kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{pod}_{self.uid}.slice"

    def sandbox(self, namespace, pod):
        """A pod's infrastructure container, which runs pause."""
        ident, full = new_id(), f"k8s_{pod}_{namespace}_{self.uid}_0"
        self._row(ident, [full.replace("k8s_", "k8s_POD_"), full],
                  {"pod-name": full, "pod-id": ident, "name": full.replace("k8s_", "k8s_POD_"), "metadata-name": pod,
                   "uid": self.uid, "namespace": namespace, "pod": True, "image-name": "registry.k8s.io/pause:3.10"})
        self.made.append(Contained(ident, spec_of(self.image, BOX_SPIN, f"/{self.slice(pod)}/crio-{ident}.scope")))
        return ident, full

    def container(self, sandbox, namespace, pod, name, argv, attempt=0):
        (pod_id, pod_full), ident = sandbox, new_id()
        full = f"k8s_{name}_{pod}_{namespace}_{self.uid}_{attempt}"
        self.rows = [r for r in self.rows if f"k8s_{name}_{pod}_{namespace}_" not in r["names"][0]]
        self._row(ident, [full], {"pod-name": pod_full, "pod-id": pod_id, "name": full, "metadata-name": name,
                                  "image-name": "quay.io/shop/app:1", **({"attempt": attempt} if attempt else {})})
        self.made.append(Contained(ident, spec_of(self.image, argv, f"/{self.slice(pod)}/crio-{ident}.scope")))
        self.made[-1].conmon = f"{self.slice(pod)}/crio-conmon-{ident}.scope"
        return self.made[-1]

    def end(self):
        """Its containers, and the slices that runc left."""
        for made in self.made:
            made.end()
        for top in {m for m in mounts().values() if m}:
            for pod in glob.glob(f"{top}/kubepods.slice/kubepods-burstable.slice/*_{self.uid}.slice"):
                os.rmdir(pod)
            for name in ("kubepods.slice/kubepods-burstable.slice", "kubepods.slice"):
                try:
                    os.rmdir(os.path.join(top, name))
                except OSError:
                    pass  # of others, or not there


@fact
@grouped
def containers_of_cri_o_are_profiled_by_pod_and_namespace_and_found_again():
    crio = Crio()
    try:
        shop, test = crio.sandbox("shop", "web-0"), crio.sandbox("test", "web-1")
        app = crio.container(shop, "shop", "web-0", "app", BOX_SPIN)
        beside = crio.container(test, "test", "web-1", "app", BOX_SPIN)
        run = Run("-c", "shop/web-0/app", "-F", HZ, "--only", "oncpu", "-v", env=crio.env)
        run.ready()
        has_worked(app.pid, 0.2)
        app.end()
        again = crio.container(shop, "shop", "web-0", "app", BOX_SPIN, attempt=1)
        until(lambda: " is there again" in run.stderr, "the container is found again")
        has_worked(again.pid, 0.3)
        run.stop()
        run.must()
        keys, samples = ("container", "container_id", "pod", "namespace"), run.profile("oncpu").samples
        equal({tuple(s.labels.get(k) for k in keys) for s in samples},
              {("web-0/app", c.ident, "web-0", "shop") for c in (app, again)}, "labels")
        # What made the second one was in its group, too.
        equal({s.labels["container_id"] for s in samples if s.labels.get("ns_pid") == 1}, {app.ident, again.ident},
              "containers whose first process was sampled")
        target = run.summary()["target"]["groups"][0]
        equal([target[k] for k in ("container", "container_id", "engine", "image", "pod", "namespace", "restarts")],
              ["web-0/app", again.ident, "crio", "quay.io/shop/app:1", "web-0", "shop", 1], "what the summary says of it")
        run = Run("-c", "app", "-d", "0.1", env=crio.env)
        equal(run.finish(), 1, "exit status of -c app")
        for word in ("2 containers are called \"app\"", "shop/web-0/app (crio ", "test/web-1/app (crio ", beside.ident[:12]):
            check(word in run.stderr, f"{word!r} in {run.stderr!r}")
    finally:
        crio.end()


@fact
@grouped
def helpers_of_cri_o_are_in_no_container():
    crio = Crio()
    try:
        shop = crio.sandbox("shop", "db-0")
        db = crio.container(shop, "shop", "db-0", "db", BOX_SPIN)
        where = next(h for h, top in mounts().items() if os.path.isdir(os.path.join(top, crio.slice("db-0"))))
        conmon = Inside(Group(db.conmon, where), "cpu_split", 20000)
        conmon.say("go")
        pids = [db.pid, conmon.pid]
        run, _ = record(("-p", ",".join(map(str, pids)), "-F", HZ, "--only", "oncpu"), lambda: has_worked(pids, 0.2),
                        env=crio.env)
        of = {s.labels["pid"]: s.labels.get("container") for s in run.profile("oncpu").samples}
        equal(of, {db.pid: "db-0/db", conmon.pid: None}, "containers of processes")
        doctor = subprocess.run([MEMSCOPE, "doctor"], env=crio.env, capture_output=True, text=True, check=False,
                                timeout=FINISH_SEC).stdout
        check(re.search(r"crio.*1", doctor), f"doctor says: {doctor}")
    finally:
        for child in list(Child.living):
            child.end()
        for group in Group.made:
            group.remove()
        Group.made.clear()
        crio.end()


main()
