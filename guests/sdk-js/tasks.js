// The two exports of a module, made from a table of tasks.

import { TaskError } from "./error.js";
import { error as logError } from "./log.js";
import { misfit } from "./schema.js";

/**
 * Makes `describe` and `run` of `table`, which names each task: `{ version, description, input, output, run }`. `input`
 * and `output` are JSON Schemas; `run` takes the input and returns the output, or a promise of it.
 *
 * An input that does not fit its schema fails with `INVALID_INPUT` before `run` is called. A `TaskError` ends the attempt
 * with its code; whatever else is thrown is logged with its stack and ends it as `TRAP`.
 */
export function tasks(table) {
  return { describe: () => Object.entries(table).map(specOf), run: (name, input) => serve(table, name, input) };
}

function specOf([name, task]) {
  const schema = (value) => (value === undefined ? undefined : JSON.stringify(value));
  return {
    name,
    version: task.version,
    description: task.description,
    inputSchema: schema(task.input),
    outputSchema: schema(task.output),
  };
}

async function serve(table, name, text) {
  try {
    const output = await call(table, name, text);
    return JSON.stringify(output === undefined ? null : output);
  } catch (thrown) {
    // The contract's error is whatever is thrown as a record; anything else ends the instance.
    if (thrown instanceof TaskError) throw thrown.toRecord();
    logError(thrown?.stack ? `${thrown}\n${thrown.stack}` : String(thrown));
    throw thrown;
  }
}

async function call(table, name, text) {
  if (!Object.hasOwn(table, name)) throw TaskError.permanent("UNKNOWN_TASK", `this module has no task \`${name}\``);
  const task = table[name];
  const input = JSON.parse(text);
  const problem = misfit(task.input, input);
  if (problem !== undefined) throw TaskError.permanent("INVALID_INPUT", problem);
  return task.run(input);
}
