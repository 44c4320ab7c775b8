// Renders Markdown that nobody vouched for: HTML in it is shown as text, and links run nothing.

import MarkdownIt from "markdown-it";

import { TaskError, log } from "../../../sdk-js/index.js";

/** The longest text that is rendered, in characters. */
export const MARKDOWN_CHARS_MAX = 200_000;

/** What ends a word of an id. The engine of a module knows no `\p{L}`, so letters are what is not listed here. */
const BETWEEN_WORDS = /[\u0000-\u002f\u003a-\u0040\u005b-\u0060\u007b-\u00bf\u2000-\u206f\u3000-\u303f]+/g;

const renderer = new MarkdownIt({ html: false, linkify: true });

/** Renders `markdown`; returns its HTML and its headings, each with the id by which a link finds it. */
export function render({ markdown }) {
  if (markdown.trim() === "") throw TaskError.permanent("EMPTY_TEXT", "there is nothing to render");
  const tokens = renderer.parse(markdown, {});
  const headings = nameHeadings(tokens);
  const html = renderer.renderer.render(tokens, renderer.options, {});
  log.info("rendered", { characters: markdown.length, headings: headings.length });
  return { html, headings };
}

/** Gives each heading an id and lists them. */
function nameHeadings(tokens) {
  const seen = new Map();
  return tokens.flatMap((token, index) => {
    if (token.type !== "heading_open") return [];
    const text = plainText(tokens[index + 1].children);
    const id = uniqueId(seen, text);
    token.attrSet("id", id);
    return [{ level: Number(token.tag.slice(1)), text, id }];
  });
}

function plainText(tokens) {
  return tokens.map((token) => (token.children ? plainText(token.children) : token.content)).join("");
}

/** Numbers what comes again, also where a heading is called like a numbered one. */
function uniqueId(seen, text) {
  const words = text.toLowerCase().replace(BETWEEN_WORDS, "-").replace(/^-|-$/g, "") || "section";
  let number = seen.get(words) ?? 0;
  let id = number === 0 ? words : `${words}-${number}`;
  while (seen.has(id)) id = `${words}-${++number}`;
  seen.set(words, number + 1);
  seen.set(id, seen.get(id) ?? 1);
  return id;
}
