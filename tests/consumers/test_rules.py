#!/usr/bin/python3
"""Alerts and dashboard as they are installed: promtool tries each alert on series that must fire it and on some that must not; every
name that they use is one that /metrics has. TAP."""

import json
import os
import re
import subprocess
import sys
import tempfile

from facts import run_facts

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
RULES = os.path.join(TOP, "user/packaging/prometheus/memscope.rules.yml")
DASHBOARD = os.path.join(TOP, "user/packaging/grafana/memscope.json")
SOURCE = os.path.join(TOP, "user/run/serve/http_metrics.c")
MIB = 1048576

WEB = 'instance="a",container="web"'
# (alert, {series: values, a minute apart}, when to look, does it fire?)
CASES = (
    ("MemscopeMemoryLeak", {f'memscope_container_memory_bytes{{{WEB},part="anonymous"}}': f"{50 * MIB}+{2 * MIB}x120"}, 100, True),
    # A cache that fills up and stays, and one that goes up and down.
    ("MemscopeMemoryLeak", {f'memscope_container_memory_bytes{{{WEB},part="anonymous"}}':
                            f"{50 * MIB}+{20 * MIB}x10 {250 * MIB}x110"}, 100, False),
    ("MemscopeMemoryLeak", {f'memscope_container_memory_bytes{{{WEB},part="anonymous"}}':
                            " ".join([f"{50 * MIB}+{9 * MIB}x14 {176 * MIB}-{8 * MIB}x14"] * 5)}, 100, False),
    ("MemscopeMemoryLeak", {f'memscope_container_memory_bytes{{{WEB},part="page_cache"}}': f"0+{2 * MIB}x120"}, 100, False),
    ("MemscopeOutOfMemoryNear", {f"memscope_container_charged_bytes{{{WEB}}}": f"{600 * MIB}+{8 * MIB}x60",
                                 f'memscope_container_memory_bytes{{{WEB},part="page_cache"}}': f"{10 * MIB}x60",
                                 f"memscope_container_memory_limit_bytes{{{WEB}}}": f"{1000 * MIB}x60"}, 40, True),
    # All of it is page cache, which is dropped first.
    ("MemscopeOutOfMemoryNear", {f"memscope_container_charged_bytes{{{WEB}}}": f"{600 * MIB}+{8 * MIB}x60",
                                 f'memscope_container_memory_bytes{{{WEB},part="page_cache"}}': f"{590 * MIB}+{8 * MIB}x60",
                                 f"memscope_container_memory_limit_bytes{{{WEB}}}": f"{1000 * MIB}x60"}, 40, False),
    ("MemscopeOutOfMemoryNear", {f"memscope_container_charged_bytes{{{WEB}}}": f"{970 * MIB}x60",
                                 f'memscope_container_memory_bytes{{{WEB},part="page_cache"}}': "0x60",
                                 f"memscope_container_memory_limit_bytes{{{WEB}}}": f"{1000 * MIB}x60"}, 40, True),
    ("MemscopeOutOfMemoryKill", {f"memscope_container_oom_kills_total{{{WEB}}}": "0x20 1x20"}, 25, True),
    ("MemscopeOutOfMemoryKill", {f"memscope_container_oom_kills_total{{{WEB}}}": "3x40"}, 25, False),
    ("MemscopeThrottled", {f"memscope_container_quota_periods_total{{{WEB}}}": "0+600x60",
                           f"memscope_container_quota_periods_throttled_total{{{WEB}}}": "0+300x60"}, 40, True),
    ("MemscopeThrottled", {f"memscope_container_quota_periods_total{{{WEB}}}": "0+600x60",
                           f"memscope_container_quota_periods_throttled_total{{{WEB}}}": "0+60x60"}, 40, False),
    ("MemscopeBlockedOnDisk", {f'memscope_container_stalled_seconds_total{{{WEB},resource="io"}}': "0+30x60"}, 40, True),
    ("MemscopeBlockedOnDisk", {f'memscope_container_stalled_seconds_total{{{WEB},resource="io"}}': "0+3x60"}, 40, False),
    ("MemscopeBlockedOnDisk", {f'memscope_container_stalled_seconds_total{{{WEB},resource="cpu"}}': "0+30x60"}, 40, False),
    ("MemscopeLosesSamples", {'memscope_lost_total{instance="a",cause="totals_full"}': "0+120x60"}, 40, True),
    # A run that begins again counts from 0.
    ("MemscopeLosesSamples", {'memscope_lost_total{instance="a",cause="totals_full"}': "5000x20 0x40"}, 40, False),
    ("MemscopeOverItsLimit", {'memscope_own_cpu_ratio{instance="a"}': "0.02x60", 'memscope_limit_cpu_ratio{instance="a"}': "0.01x60"}, 40, True),
    ("MemscopeOverItsLimit", {'memscope_own_cpu_ratio{instance="a"}': "0.01x60", 'memscope_limit_cpu_ratio{instance="a"}': "0.01x60"}, 40, False),
    ("MemscopeDoesNotWrite", {'memscope_windows_total{instance="a",result="failed"}': "0x20 0+1x20"}, 35, True),
    ("MemscopeDoesNotWrite", {'memscope_read_age_seconds{instance="a"}': "90x60"}, 35, True),
    ("MemscopeDoesNotWrite", {'memscope_windows_total{instance="a",result="closed"}': "0+1x60",
                              'memscope_read_age_seconds{instance="a"}': "4x60"}, 35, False),
)


def promtool(*argv):
    return subprocess.run(["promtool", *argv], capture_output=True, text=True, check=False, timeout=120)


def the_rules_are_understood():
    r = promtool("check", "rules", RULES)
    assert r.returncode == 0, r.stdout + r.stderr


def fires(alert, series, minute):
    """Does promtool's own evaluation have it firing, for whatever labels?"""
    # What it prints of a test that expects nothing is what it got.
    test = {"rule_files": [RULES], "evaluation_interval": "1m",
            "tests": [{"interval": "1m", "input_series": [{"series": s, "values": v} for s, v in series.items()],
                       "alert_rule_test": [{"eval_time": f"{minute}m", "alertname": alert, "exp_alerts": []}]}]}
    with tempfile.NamedTemporaryFile("w", suffix=".json") as f:  # JSON is YAML
        json.dump(test, f)
        f.flush()
        r = promtool("test", "rules", f.name)
    said = r.stdout + r.stderr
    assert (r.returncode == 0) != ("FAILED" in said), said
    if r.returncode:
        assert f'alertname="{alert}"' in said, said
    return r.returncode != 0


def each_alert_fires_where_it_has_to_and_nowhere_else():
    for alert, series, minute, does in CASES:
        assert fires(alert, series, minute) == does, f"{alert} {'does not fire' if does else 'fires'}: {series}"


def each_alert_is_tried_both_ways():
    with open(RULES, encoding="utf-8") as f:
        alerts = set(re.findall(r"alert: (\w+)", f.read()))
    for does in (True, False):
        left = alerts - {case[0] for case in CASES if case[3] == does}
        assert not left, f"no case in which it {'fires' if does else 'does not fire'}: {left}"


def names_of(text):
    return {n for n in re.findall(r"\bmemscope_[a-z_]+\b", text)}


def families():
    with open(SOURCE, encoding="utf-8") as f:
        rows = re.findall(r'\{ \{ "(memscope_\w+)", "[^\n]*?"(, true)? \}, \w+(?:, true)? \}', f.read())
    assert len(rows) > 20, f"{len(rows)} families"
    return {name + ("_total" if counter else "") for name, counter in rows}


def every_name_that_alerts_and_dashboard_use_is_there():
    for path in (RULES, DASHBOARD):
        with open(path, encoding="utf-8") as f:
            unknown = names_of(f.read()) - families()
        assert not unknown, f"{path}: {unknown}"


def panels_of(dashboard):
    return [p for p in dashboard["panels"] if p["type"] != "row"]


def the_dashboard_is_one_and_its_expressions_are_understood():
    with open(DASHBOARD, encoding="utf-8") as f:
        dashboard = json.load(f)
    ids = [p["id"] for p in dashboard["panels"]]
    assert len(set(ids)) == len(ids), "panels of one id"
    variables = {v["name"] for v in dashboard["templating"]["list"]}
    groups = []
    for p in panels_of(dashboard):
        at = p["gridPos"]
        assert at["x"] + at["w"] <= 24, f"{p['title']} is wider than the grid"
        assert p["description"] and p["fieldConfig"]["defaults"]["unit"], p["title"]
        for t in p["targets"]:
            used = set(re.findall(r"\$(\w+)", t["expr"])) - {"__rate_interval"}
            assert used <= variables, f"{p['title']}: {used - variables}"
            expr = t["expr"].replace("$__rate_interval", "5m").replace("$instance", ".*").replace("$container", ".*")
            groups.append({"record": f"panel:{p['id']}:{t['refId'].lower()}", "expr": expr})
    with tempfile.NamedTemporaryFile("w", suffix=".json") as f:
        json.dump({"groups": [{"name": "panels", "rules": groups}]}, f)
        f.flush()
        r = promtool("check", "rules", f.name)
    assert r.returncode == 0, r.stdout + r.stderr


if __name__ == "__main__":
    sys.exit(run_facts((
        (the_rules_are_understood, ("promtool",)),
        (each_alert_fires_where_it_has_to_and_nowhere_else, ("promtool",)),
        (each_alert_is_tried_both_ways, ()),
        (every_name_that_alerts_and_dashboard_use_is_there, ()),
        (the_dashboard_is_one_and_its_expressions_are_understood, ("promtool",)),
    )))
