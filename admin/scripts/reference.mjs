// Takes the libraries of the two API reference pages out of their packages, so that the gateway can
// serve them.
import { copyFileSync, mkdirSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";

const { resolve } = createRequire(import.meta.url);

/**
 * Scalar's browser build. The package is a plug-in for another server and serves the script at the
 * route that it adds. No other package has the script without 280 dependencies.
 */
async function scalar() {
  const { default: plugin } = await import("@scalar/fastify-api-reference");
  const routes = [];
  const server = {
    route: (route) => routes.push(route),
    initialConfig: {},
    hasPlugin: () => false,
  };
  plugin(server, { routePrefix: "/", configuration: { url: "unused" } }, () => {});
  const found = routes.find(({ url }) => url.endsWith("/scalar.js"));
  if (found === undefined) throw new Error("the package of Scalar no longer hands out its script");
  let script;
  const reply = { header: () => reply, send: (text) => (script = text) };
  found.handler({}, reply);
  return script.replace(/\n\/\/# sourceMappingURL=.*\s*$/, "\n");
}

/** Writes all files into `folder`. */
export async function copyReference(folder) {
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "scalar.js"), await scalar());
  const swagger = dirname(resolve("swagger-ui-dist/package.json"));
  for (const name of ["swagger-ui-bundle.js", "swagger-ui.css"])
    copyFileSync(join(swagger, name), join(folder, name));
}
