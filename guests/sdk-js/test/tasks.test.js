import assert from "node:assert/strict";
import { test } from "node:test";

import { TaskError, attempt, tasks } from "../index.js";
import { misfit } from "../schema.js";

const module = tasks({
  "n.half": {
    version: "1.0.0",
    input: { type: "object", required: ["n"], properties: { n: { type: "integer" } } },
    run: ({ n }) => {
      if (n % 2 !== 0) throw TaskError.transient("ODD", "it is odd", { retryAfterMs: 1500, details: [n] });
      return { half: n / 2 };
    },
  },
  "n.nothing": { version: "1.0.0", run: async () => undefined },
  "n.broken": { version: "1.0.0", run: () => missing() },
});

test("tasks are described with their schemas as texts", () => {
  const [half, nothing] = module.describe();
  assert.equal(half.name, "n.half");
  assert.equal(JSON.parse(half.inputSchema).required[0], "n");
  assert.equal(nothing.inputSchema, undefined);
});

test("a task gets JSON and gives JSON", async () => {
  assert.equal(await module.run("n.half", '{"n":8}'), '{"half":4}');
  assert.equal(await module.run("n.nothing", "null"), "null");
});

test("errors of tasks become the contract's record", async () => {
  await assert.rejects(module.run("n.half", '{"n":7}'), {
    code: "ODD", message: "it is odd", retryable: true, retryAfterMs: 1500n, details: "[7]",
  });
  await assert.rejects(module.run("n.half", "{}"), { code: "INVALID_INPUT", message: "the input lacks `n`" });
  await assert.rejects(module.run("toString", "{}"), { code: "UNKNOWN_TASK" });
});

test("anything else thrown is passed on", async () => {
  await assert.rejects(module.run("n.broken", "null"), ReferenceError);
});

test("misfits are told with their place", () => {
  const schema = {
    type: "object",
    additionalProperties: false,
    properties: {
      name: { type: "string", minLength: 1 },
      ages: { type: "array", maxItems: 2, items: { type: ["integer", "null"], minimum: 0 } },
      kind: { enum: ["a", 1] },
    },
  };
  assert.equal(misfit(schema, { name: "x", ages: [1, null], kind: 1 }), undefined);
  assert.equal(misfit(schema, []), "the input is not object");
  assert.equal(misfit(schema, { name: "" }), "`/name` has 0, less than `minLength` 1");
  assert.equal(misfit(schema, { ages: [1, 2.5] }), "`/ages/1` is not integer or null");
  assert.equal(misfit(schema, { ages: [-1] }), "`/ages/0` has -1, less than `minimum` 0");
  assert.equal(misfit(schema, { ages: [1, 2, 3] }), "`/ages` has 3, more than `maxItems` 2");
  assert.equal(misfit(schema, { kind: "b" }), '`/kind` is none of ["a",1]');
  assert.equal(misfit(schema, { other: 1 }), "the input has a member `other` that nobody knows");
});

test("progress is read back", () => {
  assert.equal(attempt.lastProgress(), undefined);
  attempt.reportProgress({ done: 3 });
  assert.deepEqual(attempt.lastProgress(), { done: 3 });
  assert.equal(attempt.current().attempt, 1);
});
