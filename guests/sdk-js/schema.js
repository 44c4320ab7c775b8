// Checks a value against a JSON Schema, as far as plain contracts go: `type`, `enum`, `properties`, `required`,
// `additionalProperties: false`, `items`, and the limits of texts, numbers and lists. Other keywords are left to the
// task. Returns a sentence about the first misfit; undefined when the value fits.

const kinds = {
  array: Array.isArray,
  boolean: (value) => typeof value === "boolean",
  integer: Number.isInteger,
  null: (value) => value === null,
  number: (value) => typeof value === "number",
  object: (value) => typeof value === "object" && value !== null && !Array.isArray(value),
  string: (value) => typeof value === "string",
};

/** Returns what is wrong with `value` at `at`, a JSON Pointer; undefined: it fits. */
export function misfit(schema, value, at = "") {
  if (typeof schema !== "object" || schema === null) return undefined;
  const place = at === "" ? "the input" : `\`${at}\``;
  const types = schema.type === undefined ? [] : [schema.type].flat();
  if (types.length > 0 && !types.some((type) => kinds[type]?.(value))) return `${place} is not ${types.join(" or ")}`;
  if (schema.enum && !schema.enum.some((one) => JSON.stringify(one) === JSON.stringify(value))) {
    return `${place} is none of ${JSON.stringify(schema.enum)}`;
  }
  const size = typeof value === "number" ? value : Array.isArray(value) ? value.length : [...String(value)].length;
  const [least, most] = typeof value === "number" ? ["minimum", "maximum"] :
    Array.isArray(value) ? ["minItems", "maxItems"] : typeof value === "string" ? ["minLength", "maxLength"] : [];
  if (size < schema[least]) return `${place} has ${size}, less than \`${least}\` ${schema[least]}`;
  if (size > schema[most]) return `${place} has ${size}, more than \`${most}\` ${schema[most]}`;
  if (Array.isArray(value)) return firstOf(value, (item, index) => misfit(schema.items, item, `${at}/${index}`));
  if (kinds.object(value)) return misfitOfObject(schema, value, at, place);
  return undefined;
}

function misfitOfObject(schema, value, at, place) {
  const known = schema.properties ?? {};
  const missing = (schema.required ?? []).find((name) => !Object.hasOwn(value, name));
  if (missing !== undefined) return `${place} lacks \`${missing}\``;
  return firstOf(Object.entries(value), ([name, member]) => {
    if (Object.hasOwn(known, name)) return misfit(known[name], member, `${at}/${name}`);
    return schema.additionalProperties === false ? `${place} has a member \`${name}\` that nobody knows` : undefined;
  });
}

function firstOf(list, find) {
  for (const [index, item] of list.entries()) {
    const found = find(item, index);
    if (found !== undefined) return found;
  }
  return undefined;
}
