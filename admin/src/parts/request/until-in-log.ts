/** Reads of one request that are repeated, because it reaches the log shortly after its end. */
import { ApiError } from "@/api/client";

/** The largest number of repetitions. */
const TIMES = 50;

export const untilInLog = {
  retry: (failed: number, error: unknown) =>
    failed < TIMES && error instanceof ApiError && error.code === "NOT_FOUND",
  /** Milliseconds between them. */
  retryDelay: 400,
};
