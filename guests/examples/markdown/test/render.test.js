import assert from "node:assert/strict";
import { test } from "node:test";

import { run } from "../src/module.js";
import { MARKDOWN_CHARS_MAX, render } from "../src/render.js";

test("headings are listed with unique ids", () => {
  const { html, headings } = render({ markdown: "# A *fine* day\n\ntext\n\n## Über `x`\n\n## Über x\n\n## Über x 1\n" });
  assert.deepEqual(headings, [
    { level: 1, text: "A fine day", id: "a-fine-day" },
    { level: 2, text: "Über x", id: "über-x" },
    { level: 2, text: "Über x", id: "über-x-1" },
    { level: 2, text: "Über x 1", id: "über-x-1-1" },
  ]);
  assert.match(html, /<h1 id="a-fine-day">A <em>fine<\/em> day<\/h1>/);
});

test("tables are rendered", () => {
  assert.match(render({ markdown: "|a|b|\n|-|-|\n|1|2|" }).html, /<td>2<\/td>/);
});

test("nothing in a text becomes a script", () => {
  const { html } = render({
    markdown: "<script>alert(1)</script>\n\n<img src=x onerror=alert(1)> [a](javascript:alert(1)) " +
      "[b](<JavaScript :alert(1)>) [c](javascript&colon;alert(1)) ![d](data:text/html,x) [e](https://a.test/?q=\"x)",
  });
  assert.doesNotMatch(html, /<script|<img|="(javascript|data):/i);
  assert.match(html, /<a href="https:\/\/a\.test/);
});

test("empty and overlong texts are typed errors", async () => {
  await assert.rejects(run("markdown.render", '{"markdown":" "}'), { code: "EMPTY_TEXT", retryable: false });
  const long = JSON.stringify({ markdown: "x".repeat(MARKDOWN_CHARS_MAX + 1) });
  await assert.rejects(run("markdown.render", long), { code: "INVALID_INPUT" });
});
