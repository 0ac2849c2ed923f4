/** The run of one request: sends it, collects the reply as it arrives, and can stop it. */
import { useCallback, useEffect, useRef, useState } from "react";
import { callLines, type Schemas } from "@/api/client";
import { Reply } from "./reply";
import type { toSend } from "./request";

type PlaygroundEvent = Schemas["PlaygroundEvent"];
export interface Header {
  name: string;
  value: string;
}

export interface Run {
  state: "sending" | "waiting" | "coming" | "done" | "stopped" | "failed";
  reply: Reply;
  requestId?: string;
  status?: number;
  headers: Header[];
  firstByteMs?: number;
  totalMs?: number;
  /** The reason why the reply is incomplete. */
  broken?: string;
  /** The request was not made. */
  error?: unknown;
}

const fresh = (): Run => ({ state: "sending", reply: new Reply(false), headers: [] });
export const isRunning = (run: Run | undefined) =>
  run?.state === "sending" || run?.state === "waiting" || run?.state === "coming";

function next(run: Run, event: PlaygroundEvent): Run {
  switch (event.type) {
    case "begin":
      return { ...run, state: "waiting", requestId: event.requestId };
    case "head": {
      const kind = event.headers.find(({ name }) => name === "content-type")?.value ?? "";
      const reply = new Reply(kind.startsWith("text/event-stream"));
      return { ...run, state: "coming", status: event.status, headers: event.headers, reply };
    }
    case "data":
      run.reply.take(event.text, event.atMs);
      return { ...run, firstByteMs: run.firstByteMs ?? event.atMs };
    case "bytes":
      run.reply.takeBytes(event.base64);
      return { ...run, firstByteMs: run.firstByteMs ?? event.atMs };
    case "wait":
      return run;
    case "end":
      run.reply.end(event.atMs);
      return { ...run, state: "done", totalMs: event.atMs, broken: event.error ?? undefined };
  }
}

export function useRun() {
  const [run, setRun] = useState<Run>();
  const stopping = useRef<AbortController>(undefined);
  useEffect(() => () => stopping.current?.abort(), []);
  const send = useCallback(async (asked: ReturnType<typeof toSend>) => {
    stopping.current?.abort();
    const stop = new AbortController();
    stopping.current = stop;
    let now = fresh();
    const show = (run: Run) => {
      now = run;
      if (stopping.current === stop) setRun(run);
    };
    show(now);
    try {
      for await (const event of callLines<PlaygroundEvent>(
        "actions/playground/sendRequest",
        asked,
        stop.signal,
      ))
        show(next(now, event));
      if (isRunning(now)) show({ ...now, state: "failed" });
    } catch (error) {
      if (stop.signal.aborted) show({ ...now, state: "stopped" });
      else show({ ...now, state: "failed", error });
    }
  }, []);
  const stop = useCallback(() => stopping.current?.abort(), []);
  return { run, send, stop };
}
