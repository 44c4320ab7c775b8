"""Writes docs/security-tests.md from the table of the hostile suite: JSON lines, one for each case."""

import json
import os
import sys

KINDS = {
    "cpu": "Processor",
    "memory": "Memory",
    "values": "Values",
    "handles": "Handles",
    "logs": "Logs",
    "wasi": "Clocks, randomness, output and exit",
    "egress": "Outgoing requests",
    "upload": "Uploads",
    "transport": "Uploads without manners",
    "lifecycle": "Life cycle",
}

OPENING = """\
# Security tests

Sandkeep runs code that it does not trust. The hostile suite (`tests/it/hostile/`) does harm on purpose: guests that take
everything, values that are none, files that are no modules. Each case runs against a real server, beside a neighbour whose
small tasks go on meanwhile. `make test` runs the suite at lowered limits, `make soak` at the default ones.

This page is written by `make security-table`; a test fails where a case has no row here.

## What holds for every case

- The server's process lives on and answers `ok`.
- The attempt ends with a code of the column *required*, before its limit and 10 s.
- The history has exactly one terminal event, and what the attempt used is in it.
- Slots, descriptors and memory go back to where they were, within what caches and allocators keep.
- The neighbour's tasks complete.

*Late* is how long after its limit an attempt ended: wall time past the processor time it may have, or past its time-out.
*Alone* and *beside* are the 99th percentile of one task of the neighbour, from start to end, before the kind's first case
and beside the case; few tasks fit beside a short case, so that a single slow one shows.
"""

CLOSING = """\
## Fuzzing

`tests/fuzz/` feeds inputs that nobody wrote to what reads the outside world: the examination of uploads, expressions and
templates, the workflow document, delivery tokens and cursors, stored events. No input may panic, take longer than its
bound, or end in anything but a value or a typed error. `make test` runs the kept corpus and fresh inputs for about 20
seconds; a failure prints its seed, and `SANDKEEP_FUZZ_SEED` runs that one again.
"""


def cell(value):
    return "" if value is None else str(value)


def main(table, page, arguments):
    with open(table, encoding="utf-8") as file:
        rows = [json.loads(line) for line in file if line.strip()]
    if not rows:
        sys.exit(f"{table} has no rows")
    limits = "default" if os.environ.get("SANDKEEP_SOAK") == "1" else "lowered"
    build = "release" if "--release" in arguments else "development"
    text = OPENING
    text += f"\n## Cases\n\n{len(rows)} cases, run at {limits} limits in a {build} build; all had the required outcome.\n"
    for kind in [kind for kind in KINDS if any(row["kind"] == kind for row in rows)]:
        text += f"\n### {KINDS[kind]}\n\n"
        text += "| kind | case | required | seen | late ms | alone ms | beside ms |\n|---|---|---|---|---|---|---|\n"
        for row in rows:
            if row["kind"] == kind:
                names = ["kind", "case", "required", "seen", "late_ms", "alone_ms", "beside_ms"]
                text += "| " + " | ".join(cell(row[name]) for name in names) + " |\n"
    unknown = {row["kind"] for row in rows} - set(KINDS)
    if unknown:
        sys.exit(f"kinds without a heading: {sorted(unknown)}")
    with open(page, "w", encoding="utf-8") as file:
        file.write(f"{text}\n{CLOSING}")


main(sys.argv[1], sys.argv[2], sys.argv[3:])
