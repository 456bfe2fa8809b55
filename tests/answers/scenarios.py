"""The scenarios: small services whose trouble is known, a row each.

Each row declares its truth: the cause, and the function that the last sentence has to name ("" where there is none to
name). What makes the trouble is the service itself, a slow peer, other programs that have the CPUs, or a CPU quota.

Rows marked held_out are no guide: no rule or threshold of the verdict may be changed because of what they say. They
were chosen before the first run, a third of all.
"""

import collections

Scenario = collections.namedtuple("Scenario", "name language mode command cause function seconds held_out quick")

# The mode of the service, the cause, and whether a function can be named.
MODES = {
    "hot": "cpu", "leak": "leak", "lock": "lock", "disk": "disk", "peer": "peer", "starved": "starved",
    "quota": "quota", "idle": "idle", "cache": "healthy",
}
# How long is recorded: a leak must go on for a while before it is one.
SECONDS = {"leak": 25, "cache": 12}

FUNCTIONS = {
    "c": {"hot": "hash_records", "leak": "remember_session", "lock": "update_totals", "disk": "write_journal",
          "peer": "ask_backend", "starved": "", "quota": "", "idle": "", "cache": ""},
    "c++": {"hot": "rank_offers", "leak": "remember", "lock": "add_order", "disk": "commit",
            "peer": "fetch_price", "starved": "", "quota": "", "idle": "", "cache": ""},
    "python": {"hot": "score_documents", "leak": "remember_session", "lock": "update_totals", "disk": "write_journal",
               "peer": "ask_backend", "starved": "", "quota": "", "idle": "", "cache": ""},
}
HELD_OUT = {
    "c-leak", "c-peer", "c-quota", "c++-hot", "c++-disk", "c++-starved", "python-lock", "python-idle", "python-cache",
    "go-hot", "java-hot", "rust-lock", "postgres-idle",
}
# A dozen for `make check`; none that takes long.
QUICK = {
    "c-hot", "c-lock", "c-disk", "c-idle", "c++-peer", "c++-lock", "python-hot", "python-peer", "python-disk",
    "java-idle", "node-idle", "redis-idle",
}


def scenario(language, mode, command, function, cause=None):
    name = f"{language}-{mode}"
    return Scenario(name, language, mode, command, cause or MODES[mode], function, SECONDS.get(mode, 5),
                    name in HELD_OUT, name in QUICK)


def service_mode(mode):
    """Who is short of CPU computes: that is its work, and others' doing is the trouble."""
    return "hot" if mode in ("starved", "quota") else mode


def scenarios():
    """BUILT: the folder of what was built; SOURCES: that of the sources; ARGUMENT: of the mode."""
    rows = []
    for language, program in (("c", ["BUILT/service"]), ("c++", ["BUILT/service_cxx"]),
                              ("python", ["python3", "SOURCES/service.py"])):
        for mode, function in FUNCTIONS[language].items():
            rows.append(scenario(language, mode, program + [service_mode(mode), "ARGUMENT"], function))
    rows += [
        scenario("go", "hot", ["BUILT/service_go", "hot"], "rankPages"),
        scenario("go", "idle", ["BUILT/service_go", "idle"], ""),
        scenario("rust", "hot", ["BUILT/service_rust", "hot"], "digest_rows"),
        scenario("rust", "lock", ["BUILT/service_rust", "lock"], "book_order"),
        scenario("perl", "hot", ["perl", "SOURCES/service.pl"], "weigh_words"),
        scenario("java", "hot", ["java", "-cp", "BUILT", "Service", "hot"], "rankOrders"),
        scenario("java", "idle", ["java", "-cp", "BUILT", "Service", "idle"], ""),
        scenario("node", "hot", ["node", "SOURCES/service.js", "hot"], "rankItems"),
        scenario("node", "idle", ["node", "SOURCES/service.js", "idle"], ""),
        scenario("redis", "idle", ["redis-server", "--port", "0", "--save", "", "--unixsocket", "ARGUMENT"], ""),
        scenario("postgres", "idle", ["POSTGRES"], ""),
    ]
    return rows
