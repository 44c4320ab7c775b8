import assert from "node:assert/strict";
import { test } from "node:test";

import { run } from "../src/module.js";

const call = (input) => run("{{task}}.hello", JSON.stringify(input));

test("somebody is greeted", async () => {
  assert.equal(await call({ name: " Ada " }), '{"text":"Hello, Ada!"}');
});

test("nobody is a typed error", async () => {
  await assert.rejects(call({ name: "" }), { code: "NAME_MISSING" });
  await assert.rejects(call({}), { code: "INVALID_INPUT" });
});
