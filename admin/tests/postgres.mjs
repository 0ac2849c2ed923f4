/** A PostgreSQL server that tests stop and start, in a temporary folder, on a Unix socket. */
import { execFileSync } from "node:child_process";
import { accessSync, chownSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const exists = (path) => {
  try {
    accessSync(path);
    return true;
  } catch {
    return false;
  }
};

/** The folder of the newest installed server's programs, or `undefined`. */
function programs() {
  const root = "/usr/lib/postgresql";
  const versions = exists(root) ? readdirSync(root).sort((a, b) => Number(b) - Number(a)) : [];
  const folders = [
    ...versions.map((version) => join(root, version, "bin")),
    ...(process.env.PATH ?? "").split(":"),
  ];
  return folders.find((folder) =>
    ["initdb", "pg_ctl", "createdb"].every((name) => exists(join(folder, name))),
  );
}

/** The prefix that runs a program as an ordinary user: PostgreSQL refuses to run as root. */
function userFor(folder) {
  if (process.getuid() !== 0) return [];
  const id = (user, flag) => {
    try {
      return Number(execFileSync("id", [flag, user], { stdio: ["ignore", "pipe", "ignore"] }));
    } catch {
      return undefined;
    }
  };
  const user = ["postgres", "nobody"].find((name) => id(name, "-u") !== undefined);
  const [uid, gid] = [id(user, "-u"), id(user, "-g")];
  chownSync(folder, uid, gid);
  return ["setpriv", `--reuid=${uid}`, `--regid=${gid}`, "--clear-groups"];
}

/** Starts a server; `undefined` if PostgreSQL is not installed. */
export function startPostgres() {
  const bin = programs();
  if (bin === undefined) return undefined;
  const folder = mkdtempSync(join(tmpdir(), "tollgate-pg-"));
  const user = userFor(folder);
  const run = (name, ...args) => {
    const [program, ...words] = [...user, join(bin, name), ...args];
    execFileSync(program, words, { cwd: "/", stdio: "ignore" });
  };
  const control = (...args) => run("pg_ctl", "-D", join(folder, "data"), ...args);
  const options = `-k ${folder} -h '' -c fsync=off`;
  const start = () =>
    control("-w", "-t", "60", "-l", join(folder, "server.log"), "-o", options, "start");
  let up = true;
  let databases = 0;
  run(
    "initdb",
    "-D",
    join(folder, "data"),
    "-U",
    "postgres",
    "-A",
    "trust",
    "-E",
    "UTF8",
    "--locale=C",
    "--no-sync",
  );
  start();
  const server = {
    /** Creates an empty database and returns its URL. */
    database() {
      const name = `tollgate${++databases}`;
      run("createdb", "-h", folder, "-U", "postgres", "-T", "template0", name);
      return `postgres://postgres@localhost/${name}?host=${folder}`;
    },
    stop() {
      if (up) control("-m", "immediate", "stop");
      up = false;
    },
    start() {
      if (!up) start();
      up = true;
    },
    remove() {
      server.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
  return server;
}
