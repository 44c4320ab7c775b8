// The module `{{name}}`: each task is a function with JSON Schemas of its input and output.

import { tasks } from "../sdk/js/index.js";
import { hello } from "./hello.js";

export const { describe, run } = tasks({
  "{{task}}.hello": {
    version: "1.0.0",
    description: "Greets somebody by name.",
    input: {
      type: "object",
      required: ["name"],
      properties: { name: { type: "string", description: "The name, as it shall be written." } },
    },
    output: { type: "object", required: ["text"], properties: { text: { type: "string" } } },
    run: hello,
  },
});
