"""A task is a function with JSON Schemas of its input and output."""

from sandkeep import TaskError, attempt, log, task


@task(
    "{{task}}.hello",
    "1.0.0",
    input={
        "type": "object",
        "required": ["name"],
        "properties": {"name": {"type": "string", "description": "The name, as it shall be written."}},
    },
    output={"type": "object", "required": ["text"], "properties": {"text": {"type": "string"}}},
)
def hello(input):
    """Greets somebody by name."""
    name = input["name"].strip()
    if not name:
        raise TaskError.permanent("NAME_MISSING", "there is nobody to greet")
    log.info(f"greeting {name}", attempt=attempt.current().attempt)
    return {"text": f"Hello, {name}!"}
