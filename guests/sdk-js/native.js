// A stand-in for the host under Node: one first attempt of nothing in particular, log lines on standard error.

let progress;

export function current() {
  return {
    tenant: "default",
    executionId: "native",
    run: 1,
    workflow: "native",
    workflowVersion: "0.0.0",
    unit: "native",
    task: "native",
    attempt: 1,
    redelivery: false,
    idempotencyKey: "native",
    deadlineMs: undefined,
  };
}

export function cancelled() {
  return false;
}

export function reportProgress(details) {
  progress = details;
}

export function lastProgress() {
  return progress;
}

export function write(level, message, fields) {
  process.stderr.write(`${level.toUpperCase()} ${message}${fields === undefined ? "" : ` ${fields}`}\n`);
}

export function getSecret(name) {
  throw new Error(`there is no secret \`${name}\` outside of a server`);
}
