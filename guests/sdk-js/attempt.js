// The attempt that is being served.

import * as host from "#host";

/**
 * Returns the attempt being served: `tenant`, `executionId`, `run`, `workflow`, `workflowVersion`, `unit`, `task`,
 * `attempt` (from 1), `redelivery` (whether its effects may be there already), `idempotencyKey` (the same in every
 * attempt: give it to the systems you call), `deadlineMs` (since 1970; undefined where nothing limits it).
 */
export function current() {
  const info = host.current();
  return { ...info, deadlineMs: info.deadlineMs === undefined ? undefined : Number(info.deadlineMs) };
}

/** Returns whether the attempt is no longer wanted. The host ends it soon after; this lets it end well. */
export function cancelled() {
  return host.cancelled();
}

/** Keeps `details`, any JSON, with the attempt and shows it live. The next attempt can read the last one reported. */
export function reportProgress(details) {
  host.reportProgress(JSON.stringify(details));
}

/** Returns what was reported last for this unit, by this attempt or an earlier one; undefined: nothing yet. */
export function lastProgress() {
  const details = host.lastProgress();
  return details === undefined ? undefined : JSON.parse(details);
}
