/*
 * What operators apply, beside the schemas of those who read it, from npm: Kubernetes' objects and the Prometheus operator's, the
 * Compose specification, Grafana's dashboards. TAP; skipped where npm cannot install them.
 */
import { spawnSync } from "node:child_process";
import { readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { dir, equal, install, ok, run_tests, test } from "../browser/chromium.mjs";

const packaging = resolve("user/packaging");
const modules = install(["kubernetes-models@5", "@kubernetes-models/prometheus-operator@6", "dclint@3", "ajv@8",
	"ajv-formats@3", "js-yaml@4", "typescript@5", "@grafana/schema@11"], "schemas");
const load = (path) => import(pathToFileURL(join(modules, path)));
const yaml = await load("js-yaml/dist/js-yaml.mjs");

function documents(path) {
	return yaml.loadAll(readFileSync(join(packaging, path), "utf8"));
}

const KINDS = {
	ServiceAccount: "kubernetes-models/_schemas/IoK8sApiCoreV1ServiceAccount.js",
	ConfigMap: "kubernetes-models/_schemas/IoK8sApiCoreV1ConfigMap.js",
	DaemonSet: "kubernetes-models/_schemas/IoK8sApiAppsV1DaemonSet.js",
	NetworkPolicy: "kubernetes-models/_schemas/IoK8sApiNetworkingV1NetworkPolicy.js",
	PodMonitor: "@kubernetes-models/prometheus-operator/_schemas/ComGithubPrometheusOperatorPrometheusOperatorPkgApisMonitoringV1PodMonitor.js",
};

/* Those validators pass over fields that the schema does not have: what they never read is unknown. */
function watched(data, path, unknown) {
	if (data === null || typeof data !== "object")
		return data;
	const own = Object.fromEntries(Object.keys(data).map((k) => [k, watched(data[k], `${path}/${k}`, unknown)]));
	if (Array.isArray(data))
		return Object.values(own);
	for (const key of Object.keys(own))
		unknown.add(`${path}/${key}`);
	return new Proxy(own, {
		get(target, key) {
			unknown.delete(`${path}/${String(key)}`);
			return target[key];
		},
	});
}

async function faults(object) {
	const { validate } = await load(KINDS[object.kind]);
	const unknown = new Set();
	const good = validate(watched(object, "", unknown));
	return [...good ? [] : validate.errors.map((e) => `${e.instancePath} ${e.keyword} ${JSON.stringify(e.params)}`),
		...[...unknown].map((path) => `${path} is unknown`)];
}

test("kubernetes knows every field of the objects", async () => {
	const objects = [...documents("kubernetes/memscope.yaml"), ...documents("kubernetes/podmonitor.yaml")];
	equal(objects.map((o) => o.kind), Object.keys(KINDS), "kinds");
	for (const object of objects)
		equal(await faults(object), [], object.kind);
});

test("a field that kubernetes does not have is found, and one of the wrong type", async () => {
	const set = documents("kubernetes/memscope.yaml").find((o) => o.kind === "DaemonSet");
	const pod = set.spec.template.spec;
	pod.hostPids = true;
	pod.containers[0].securityContext.capabilities.adds = ["BPF"];
	equal(await faults(set), ["/spec/template/spec/containers/0/securityContext/capabilities/adds is unknown",
		"/spec/template/spec/hostPids is unknown"], "faults");
	delete pod.hostPids;
	delete pod.containers[0].securityContext.capabilities.adds;
	pod.hostPID = "yes";
	ok((await faults(set)).some((f) => f.startsWith("/spec/template/spec/hostPID type")), "a word for a truth value");
});

test("compose knows every field of the service", async () => {
	const { default: Ajv } = await load("ajv/dist/ajv.js"), { default: formats } = await load("ajv-formats/dist/index.js");
	const schema = JSON.parse(readFileSync(join(modules, "dclint/schemas/compose.schema.json"), "utf8"));
	const ajv = new (Ajv.default || Ajv)({ strict: false, allErrors: true });
	(formats.default || formats)(ajv);
	/* Durations are Go's; the others are of fields that are not used. */
	ajv.addFormat("duration", /^([0-9.]+(h|m|s|ms))+$/).addFormat("expose", true).addFormat("ports", true);
	delete schema.$schema;
	const validate = ajv.compile(schema), [compose] = documents("container/compose.yaml");
	validate(compose);
	equal((validate.errors || []).map((e) => `${e.instancePath} ${e.message} ${JSON.stringify(e.params)}`), [], "faults");
	compose.services.memscope.cap_adds = ["BPF"];
	ok(!validate(compose), "a field that is not there is not found");
});

/* Types of TypeScript, whose enums take the texts that they stand for; each literal is checked for fields that are too many. */
const TYPES = `
import type { AnnotationQuery, Dashboard, Panel, RowPanel } from "@grafana/schema/dist/esm/raw/dashboard/x/dashboard_types.gen";
import type { Options, FieldConfig } from "@grafana/schema/dist/esm/raw/composable/timeseries/panelcfg/x/TimeSeriesPanelCfg_types.gen";
import type { DataQuery } from "@grafana/schema/dist/esm/common/common.gen";
type Plain<T> = T extends string ? \`\${T}\` : T extends (infer U)[] ? Plain<U>[] : T extends object ? { [K in keyof T]: Plain<T[K]> } : T;
type Config = NonNullable<Panel["fieldConfig"]>;
type Ref = { type: "prometheus"; uid: string };
type Query = Omit<DataQuery, "datasource"> & { datasource: Ref; expr: string; legendFormat: string };
type Series = Omit<Panel, "type" | "options" | "fieldConfig" | "targets"> & { type: "timeseries"; options: Options; targets: Query[];
	fieldConfig: Omit<Config, "defaults"> & { defaults: Omit<Config["defaults"], "custom"> & { custom: FieldConfig } } };
type Row = RowPanel;
/* Prometheus' plugin has its expression and the words of a mark there. */
type Annotations = { list: (AnnotationQuery & { expr?: string; titleFormat?: string; textFormat?: string })[] };
type Head = Omit<Dashboard, "panels" | "annotations"> & { annotations: Annotations };
`;

function type_errors(dashboard) {
	const { panels, ...head } = dashboard;
	const text = TYPES + `export const head: Plain<Head> = ${JSON.stringify(head)};\n` + panels.map((p, i) =>
		`export const panel${i}: Plain<${p.type === "row" ? "Row" : "Series"}> = ${JSON.stringify(p)};\n`).join("");
	writeFileSync(join(dir, "dashboard.ts"), text);
	const tsc = spawnSync("node", [join(modules, "typescript/bin/tsc"), "--noEmit", "--strict", "--skipLibCheck", "--moduleResolution",
		"node10", "--module", "es2020", "--target", "es2020", "dashboard.ts"], { cwd: dir, encoding: "utf8" });
	return tsc.stdout.trim();
}

test("grafana's types have every field of the dashboard", () => {
	symlinkSync(modules, join(dir, "node_modules"));
	const dashboard = JSON.parse(readFileSync(join(packaging, "grafana/memscope.json"), "utf8"));
	equal(type_errors(dashboard), "", "what TypeScript says");
	const series = dashboard.panels.find((p) => p.type === "timeseries");
	series.fieldConfig.defaults.custom.lineWidths = 1;
	series.options.tooltip.sort = "down";
	const said = type_errors(dashboard);
	ok(said.includes("lineWidths") && said.includes('"down"'), "a field that is not there, or no value of one, is not found: " + said);
});

await run_tests({ close() {} });
