// Checks a set of Kubernetes manifests: each against its schema (strictly: no field that Kubernetes
// does not know), and all of them against each other and against the gateway's sources.
//
//     node manifests.mjs <schemas> <sources> <version> <manifests.yaml> [configuration to write]
import fs from "node:fs";
import path from "node:path";
import Ajv from "ajv/dist/2020.js";
import YAML from "yaml";
import { PrometheusRule } from "@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1/PrometheusRule";
import { ServiceMonitor } from "@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1/ServiceMonitor";

const [schemas, sources, version, file, configuration] = process.argv.slice(2);
const ajv = new Ajv({ strict: false, allErrors: true, validateFormats: false, logger: false });
ajv.addSchema(JSON.parse(fs.readFileSync(path.join(schemas, "_definitions.json"), "utf8")), "_definitions.json");
const faults = [];

const documents = YAML.parseAllDocuments(fs.readFileSync(file, "utf8"));
for (const document of documents) for (const error of document.errors) faults.push(error.message);
const objects = documents.map((document) => document.toJS()).filter(Boolean);
const all = (kind) => objects.filter((object) => object.kind === kind);
const named = (object) => `${object.kind} ${object.metadata?.name}`;

function schemaOf(object) {
  const [group, api] = object.apiVersion.includes("/") ? object.apiVersion.split("/") : ["", object.apiVersion];
  const name = [object.kind, group.split(".")[0], api].filter(Boolean).join("-").toLowerCase();
  const found = path.join(schemas, `${name}.json`);
  return fs.existsSync(found) ? JSON.parse(fs.readFileSync(found, "utf8")) : undefined;
}

for (const object of objects) {
  const Operator = { PrometheusRule, ServiceMonitor }[object.kind];
  if (Operator) {
    try {
      new Operator(object).validate();
    } catch (error) {
      faults.push(`${named(object)}: ${error.message}`);
    }
    continue;
  }
  const schema = schemaOf(object);
  if (!schema) {
    faults.push(`${named(object)}: Kubernetes has no ${object.apiVersion} ${object.kind}`);
    continue;
  }
  const valid = ajv.getSchema(schema.$id) ?? ajv.compile(schema);
  if (!valid(object)) {
    for (const error of valid.errors) faults.push(`${named(object)}: ${error.instancePath} ${error.message} ${JSON.stringify(error.params)}`);
  }
}

// What refers to what.
const covers = (selector, labels) => Object.entries(selector ?? {}).every(([name, value]) => labels?.[name] === value);
const pods = [...all("Deployment"), ...all("Job")].map((owner) => ({ owner, ...owner.spec.template }));
const gateways = all("Deployment").map((owner) => owner.spec.template);
const want = (truth, text) => truth || faults.push(text);
for (const object of objects) {
  if (object.kind === "Deployment") {
    want(covers(object.spec.selector.matchLabels, object.spec.template.metadata.labels), `${named(object)} does not select its pods`);
  }
  const selector = { Service: object.spec?.selector, PodDisruptionBudget: object.spec?.selector?.matchLabels }[object.kind];
  if (!selector) continue;
  const chosen = pods.filter((pod) => covers(selector, pod.metadata.labels));
  want(Object.keys(selector).length > 1 && chosen.length === 1 && chosen[0].owner.kind === "Deployment", `${named(object)} selects ${chosen.length} kinds of pods`);
  for (const port of object.kind === "Service" ? object.spec.ports : []) {
    const there = chosen.some((pod) => pod.spec.containers[0].ports.some((given) => given.name === port.targetPort));
    want(there, `${named(object)}: no container has the port ${port.targetPort}`);
  }
}
for (const policy of all("NetworkPolicy")) {
  const selector = policy.spec.podSelector.matchLabels;
  want(selector && pods.every((pod) => covers(selector, pod.metadata.labels)), `${named(policy)} does not select exactly these pods`);
  const rules = [...policy.spec.ingress, ...policy.spec.egress];
  want(rules.every((rule) => rule?.ports?.length), `${named(policy)}: a rule without ports allows all of them`);
  const administration = policy.spec.ingress.find((rule) => rule.ports.some((port) => port.port === 8081));
  want(!administration || administration.from?.length, `${named(policy)} lets everybody reach the administration`);
}
for (const monitor of all("ServiceMonitor")) {
  const chosen = all("Service").filter((service) => covers(monitor.spec.selector.matchLabels, service.metadata.labels));
  want(chosen.length === 1, `${named(monitor)} selects ${chosen.length} services`);
  want(chosen[0]?.spec.ports.some((port) => port.name === monitor.spec.endpoints[0].port), `${named(monitor)}: no service has its port`);
  want(chosen[0]?.metadata.labels[monitor.spec.jobLabel] === "tollgate", `${named(monitor)}: the job is not called tollgate, as the alerts want`);
}
const source = (name) => fs.readFileSync(path.join(sources, name), "utf8");
for (const scaler of all("HorizontalPodAutoscaler")) {
  want(all("Deployment").some((owner) => owner.metadata.name === scaler.spec.scaleTargetRef.name), `${named(scaler)} scales nothing`);
  want(all("Deployment").every((owner) => owner.spec.replicas === undefined), `${named(scaler)}: the Deployment sets replicas as well`);
  for (const metric of scaler.spec.metrics) {
    want(source("src/telemetry/metrics.rs").includes(`"${metric.pods.metric.name}"`), `${named(scaler)}: the gateway has no ${metric.pods.metric.name}`);
  }
}

// What the pods are allowed, and how they end.
for (const pod of pods) {
  const [container] = pod.spec.containers;
  const at = named(pod.owner);
  want(container.image.endsWith(`:${version}`) || container.image.includes("@sha256:"), `${at}: ${container.image} is not of version ${version}`);
  want(pod.spec.securityContext.runAsNonRoot && pod.spec.securityContext.runAsUser === 65532, `${at} does not run as the image's user`);
  want(container.securityContext.readOnlyRootFilesystem && container.securityContext.capabilities.drop.includes("ALL"), `${at} may do too much`);
  want(pod.spec.enableServiceLinks === false, `${at} gets variables of services`);
  want(pod.spec.automountServiceAccountToken === false, `${at} gets a token of Kubernetes`);
  for (const mount of container.volumeMounts) {
    want(pod.spec.volumes.some((volume) => volume.name === mount.name), `${at}: no volume ${mount.name}`);
  }
}
const configMap = all("ConfigMap").find((object) => "tollgate.yaml" in object.data);
const config = configMap?.data["tollgate.yaml"];
const telemetry = source("src/telemetry/server.rs");
for (const pod of gateways) {
  const [container] = pod.spec.containers;
  for (const probe of ["startupProbe", "livenessProbe", "readinessProbe"]) {
    const { httpGet, tcpSocket } = container[probe];
    want(container.ports.some((port) => port.name === (httpGet ?? tcpSocket).port), `${probe}: there is no port ${(httpGet ?? tcpSocket).port}`);
    want(!httpGet || (telemetry.includes(`.route("${httpGet.path}"`) && httpGet.port === "metrics"), `${probe}: the metrics listener has no ${httpGet?.path}`);
  }
  const grace = Number(/^(\d+)s$/.exec(YAML.parse(config).shutdown.grace)[1]);
  const given = pod.spec.terminationGracePeriodSeconds;
  want(given >= container.lifecycle.preStop.sleep.seconds + grace + 15, `a stop may take longer than ${given} s`);
  const mounted = pod.spec.volumes.find((volume) => volume.configMap)?.configMap.name;
  want(mounted === configMap.metadata.name, `no ConfigMap ${mounted}`);
}
// The chart brings our alerts and our dashboard as they are.
const same = (one, other) => JSON.stringify(one) === JSON.stringify(other);
for (const rule of all("PrometheusRule")) {
  want(same(rule.spec, YAML.parse(source("conf/prometheus/alerts.yml"))), `${named(rule)} is not conf/prometheus/alerts.yml`);
}
for (const { data } of all("ConfigMap")) {
  const dashboard = data["tollgate.json"];
  want(!dashboard || same(JSON.parse(dashboard), JSON.parse(source("conf/grafana/tollgate.json"))), "the dashboard is not conf/grafana/tollgate.json");
}
if (configuration) fs.writeFileSync(configuration, config);

for (const fault of faults) console.error(`manifests: ${path.basename(file)}: ${fault}`);
if (faults.length || !objects.length) process.exit(1);
console.log(`${path.basename(file)}: ${objects.map((object) => object.kind).sort().join(", ")}`);
