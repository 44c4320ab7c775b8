import { TaskError, attempt, log } from "../sdk/js/index.js";

/** Greets somebody by name. */
export function hello(input) {
  const name = input.name.trim();
  if (name === "") throw TaskError.permanent("NAME_MISSING", "there is nobody to greet");
  log.info(`greeting ${name}`, { attempt: attempt.current().attempt });
  return { text: `Hello, ${name}!` };
}
