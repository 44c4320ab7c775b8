// The module: one task.

import { tasks } from "../../../sdk-js/index.js";
import { MARKDOWN_CHARS_MAX, render } from "./render.js";

export const { describe, run } = tasks({
  "markdown.render": {
    version: "1.0.0",
    description: "Renders Markdown to HTML without scripts and lists its headings.",
    input: {
      type: "object",
      required: ["markdown"],
      additionalProperties: false,
      properties: { markdown: { type: "string", maxLength: MARKDOWN_CHARS_MAX } },
    },
    output: {
      type: "object",
      required: ["html", "headings"],
      properties: {
        html: { type: "string" },
        headings: {
          type: "array",
          items: {
            type: "object",
            required: ["level", "text", "id"],
            properties: {
              level: { type: "integer", minimum: 1, maximum: 6 },
              text: { type: "string" },
              id: { type: "string" },
            },
          },
        },
      },
    },
    run: render,
  },
});
