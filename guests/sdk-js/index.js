// Tasks of Sandkeep as plain functions with JSON Schemas.
//
//     import { TaskError, log, tasks } from "../sdk/js/index.js";
//
//     export const { describe, run } = tasks({
//       "greet.hello": { version: "1.0.0", input: {…}, output: {…}, run: ({ name }) => ({ text: `Hello, ${name}!` }) },
//     });
//
// In a module the host is the server; under Node, in tests, it is a stand-in (`native.js`). Which of both is decided by
// the condition `sandkeep`, with which the bundle is made.

export { TaskError } from "./error.js";
export * as attempt from "./attempt.js";
export * as log from "./log.js";
export * as secrets from "./secrets.js";
export { tasks } from "./tasks.js";
