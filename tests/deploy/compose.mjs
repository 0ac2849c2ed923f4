// Checks compose.yaml as Docker Compose has resolved it, against the files that it mounts and the
// gateway's settings.
//
//     node compose.mjs <resolved.json> <version> <folder of the mounts> <conf/tollgate.yaml>
import fs from "node:fs";

const [file, version, folder, settings] = process.argv.slice(2);
const { services, secrets, volumes } = JSON.parse(fs.readFileSync(file, "utf8"));
const faults = [];
const want = (truth, text) => truth || faults.push(text);
const known = fs.readFileSync(settings, "utf8");

for (const [name, service] of Object.entries(services)) {
  want(service.healthcheck?.test?.length, `${name} has no health check`);
  want(service.restart === "unless-stopped", `${name} is not started again`);
  want(/:v?\d/.test(service.image), `${name}: ${service.image} has no version`);
  for (const port of service.ports ?? []) {
    want(port.host_ip === "127.0.0.1" || port.target === 8080, `${name}: port ${port.target} is open to the network`);
  }
  for (const mount of service.volumes ?? []) {
    if (mount.type === "bind") want(mount.source.startsWith(folder) && fs.existsSync(mount.source), `${name}: there is no ${mount.source}`);
    else want(mount.source in volumes, `${name}: there is no volume ${mount.source}`);
  }
  for (const [variable, value] of Object.entries(service.environment ?? {})) {
    want(!/(PASSWORD|TOKEN|SECRET_KEY|_URL)$/.test(variable), `${name}: ${variable} is a secret in the environment`);
    const secret = /^\/run\/secrets\/(.+)$/.exec(value)?.[1];
    want(!secret || service.secrets.some((given) => given.source === secret), `${name}: ${variable} names a secret that it does not get`);
  }
  for (const { source } of service.secrets ?? []) want(fs.statSync(secrets[source].file).size > 16, `${name}: the secret ${source} is empty`);
}
const gateways = Object.entries(services).filter(([name]) => name.startsWith("tollgate-"));
want(gateways.length === 2, `${gateways.length} gateways`);
for (const [name, service] of gateways) {
  want(service.image.endsWith(`:${version}`), `${name}: ${service.image} is not of version ${version}`);
  want(service.read_only && service.cap_drop.includes("ALL"), `${name} may do too much`);
  for (const variable of Object.keys(service.environment)) {
    want(known.includes(` · ${variable} · `), `${name}: no setting reads ${variable}`);
  }
}
want(new Set(gateways.map(([, service]) => service.volumes[0].source)).size === 2, "both gateways have one volume");
for (const fault of faults) console.error(`compose: ${fault}`);
if (faults.length) process.exit(1);
console.log(`compose.yaml: ${Object.keys(services).join(", ")}`);
