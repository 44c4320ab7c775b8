"""Checks a value against a JSON Schema, as far as plain contracts go.

That is `type`, `enum`, `properties`, `required`, `additionalProperties: false`, `items`, and the limits of texts, numbers
and lists. Other keywords are left to the task.
"""

import json

_KINDS = {
    "array": lambda value: isinstance(value, list),
    "boolean": lambda value: isinstance(value, bool),
    "integer": lambda value: _is_number(value) and value == int(value),
    "null": lambda value: value is None,
    "number": lambda value: _is_number(value),
    "object": lambda value: isinstance(value, dict),
    "string": lambda value: isinstance(value, str),
}


def misfit(schema, value, at=""):
    """Returns a sentence about what is wrong with `value` at `at`, a JSON Pointer; None: it fits."""
    if not isinstance(schema, dict):
        return None
    place = f"`{at}`" if at else "the input"
    types = schema.get("type", [])
    types = [types] if isinstance(types, str) else types
    if types and not any(_KINDS[kind](value) for kind in types if kind in _KINDS):
        return f"{place} is not {' or '.join(types)}"
    if "enum" in schema and not any(_same(value, one) for one in schema["enum"]):
        return f"{place} is none of {json.dumps(schema['enum'])}"
    return _misfit_of_size(schema, value, place) or _misfit_of_parts(schema, value, at, place)


def _is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _same(one, other):
    """Python takes `True` for 1; JSON does not."""
    return one == other and isinstance(one, bool) == isinstance(other, bool)


def _misfit_of_size(schema, value, place):
    if _is_number(value):
        size, least, most = value, "minimum", "maximum"
    elif isinstance(value, list):
        size, least, most = len(value), "minItems", "maxItems"
    elif isinstance(value, str):
        size, least, most = len(value), "minLength", "maxLength"
    else:
        return None
    if least in schema and size < schema[least]:
        return f"{place} has {size}, less than `{least}` {schema[least]}"
    if most in schema and size > schema[most]:
        return f"{place} has {size}, more than `{most}` {schema[most]}"
    return None


def _misfit_of_parts(schema, value, at, place):
    if isinstance(value, list):
        found = (misfit(schema.get("items"), item, f"{at}/{index}") for index, item in enumerate(value))
        return next(filter(None, found), None)
    if not isinstance(value, dict):
        return None
    known = schema.get("properties", {})
    for name in schema.get("required", []):
        if name not in value:
            return f"{place} lacks `{name}`"
    for name, member in value.items():
        if name not in known and schema.get("additionalProperties") is False:
            return f"{place} has a member `{name}` that nobody knows"
        found = misfit(known.get(name), member, f"{at}/{name}")
        if found:
            return found
    return None
