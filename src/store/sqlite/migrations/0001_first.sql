-- Schema 1.
--
-- Every key begins with the tenant. Times are milliseconds since 1970, payloads are JSON bytes as they came. A table of
-- small rows is its own primary key (WITHOUT ROWID); one of large rows is not, so that the tree of its keys stays shallow.

-- The database itself: `epoch` (its random number) and `clean` (1: the last server ended with a close).
CREATE TABLE meta (
    name  TEXT    NOT NULL PRIMARY KEY,
    value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- The last run of each execution. `last_seq` is what an append is checked against.
CREATE TABLE executions (
    tenant          TEXT    NOT NULL,
    id              TEXT    NOT NULL,
    run             INTEGER NOT NULL,
    workflow        TEXT    NOT NULL,
    version         TEXT    NOT NULL,
    definition_hash TEXT    NOT NULL,
    status          TEXT    NOT NULL,
    last_seq        INTEGER NOT NULL,
    waiting         TEXT    NOT NULL,
    next_wake       INTEGER,
    created_at      INTEGER NOT NULL,
    updated_at      INTEGER NOT NULL,
    finished_at     INTEGER,
    PRIMARY KEY (tenant, id)
) STRICT, WITHOUT ROWID;

-- Conditions are spelt with OR: for IN, each write would make a temporary table of the list.
CREATE INDEX executions_listed ON executions (tenant, created_at, id);
CREATE INDEX executions_active ON executions (tenant, id) WHERE status = 'RUNNING' OR status = 'COMPENSATING';
CREATE INDEX executions_in_use ON executions (tenant, workflow, version)
    WHERE status = 'RUNNING' OR status = 'COMPENSATING';
CREATE INDEX executions_unsuccessful ON executions (tenant, created_at, id)
    WHERE status = 'FAILED' OR status = 'CANCELLED' OR status = 'TIMED_OUT';
CREATE INDEX executions_turns ON executions (tenant, id) WHERE waiting = 'turn';

-- Labels of runs, in the order of lists. Those of an earlier run stay and join nothing.
CREATE TABLE labels (
    tenant     TEXT    NOT NULL,
    key        TEXT    NOT NULL,
    value      TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    id         TEXT    NOT NULL,
    run        INTEGER NOT NULL,
    PRIMARY KEY (tenant, key, value, created_at, id, run)
) STRICT, WITHOUT ROWID;

-- Histories. Appended by all executions in turn: a table in order of arrival dirties few pages in a commit.
CREATE TABLE events (
    tenant    TEXT    NOT NULL,
    execution TEXT    NOT NULL,
    run       INTEGER NOT NULL,
    seq       INTEGER NOT NULL,
    at        INTEGER NOT NULL,
    kind      TEXT    NOT NULL,
    format    INTEGER NOT NULL,
    fields    BLOB    NOT NULL,
    PRIMARY KEY (tenant, execution, run, seq)
) STRICT;

-- Classes of ready units, so that a hot row holds a number in place of six texts. `contract` and `node` are '' for none.
CREATE TABLE ready_classes (
    id       INTEGER PRIMARY KEY,
    tenant   TEXT NOT NULL,
    queue    TEXT NOT NULL,
    target   TEXT NOT NULL,
    task     TEXT NOT NULL,
    contract TEXT NOT NULL,
    node     TEXT NOT NULL,
    UNIQUE (tenant, queue, target, task, contract, node)
) STRICT;

-- Units that are ready or out. The `note_` columns are a delivery to a worker, or all NULL.
CREATE TABLE ready (
    tenant           TEXT    NOT NULL,
    execution        TEXT    NOT NULL,
    run              INTEGER NOT NULL,
    unit             TEXT    NOT NULL,
    class            INTEGER NOT NULL,
    attempt          INTEGER NOT NULL,
    workflow         TEXT    NOT NULL,
    workflow_version TEXT    NOT NULL,
    module           TEXT,
    priority         INTEGER NOT NULL,
    attempt_ms       INTEGER NOT NULL,
    heartbeat_ms     INTEGER,
    queue_ms         INTEGER,
    ready_at         INTEGER NOT NULL,
    queue_ends_at    INTEGER,
    losses           INTEGER NOT NULL,
    redelivery       INTEGER NOT NULL,
    input_seq        INTEGER NOT NULL,
    note_delivery    BLOB,
    note_worker      TEXT,
    note_session     TEXT,
    note_handed_at   INTEGER,
    PRIMARY KEY (tenant, execution, run, unit)
) STRICT, WITHOUT ROWID;

-- Serves the order by priority as it is, and the order by age with one range for each priority that occurs.
CREATE INDEX ready_line ON ready (class, priority DESC, ready_at);
CREATE INDEX ready_queue_ends ON ready (queue_ends_at) WHERE queue_ends_at IS NOT NULL;
CREATE INDEX ready_noted ON ready (tenant) WHERE note_delivery IS NOT NULL;

-- Armed timers.
CREATE TABLE timers (
    tenant    TEXT    NOT NULL,
    execution TEXT    NOT NULL,
    run       INTEGER NOT NULL,
    timer     TEXT    NOT NULL,
    due_at    INTEGER NOT NULL,
    PRIMARY KEY (tenant, execution, run, timer)
) STRICT, WITHOUT ROWID;

CREATE INDEX timers_due ON timers (due_at);

-- Captured log lines, numbered from 1 in each run.
CREATE TABLE logs (
    tenant    TEXT    NOT NULL,
    execution TEXT    NOT NULL,
    run       INTEGER NOT NULL,
    number    INTEGER NOT NULL,
    at        INTEGER NOT NULL,
    unit      TEXT    NOT NULL,
    attempt   INTEGER NOT NULL,
    level     TEXT    NOT NULL,
    message   TEXT    NOT NULL,
    fields    BLOB,
    PRIMARY KEY (tenant, execution, run, number)
) STRICT, WITHOUT ROWID;

-- Answers kept for `Idempotency-Key`s.
CREATE TABLE keys (
    tenant       TEXT    NOT NULL,
    scope        TEXT    NOT NULL,
    request_hash TEXT    NOT NULL,
    seq          INTEGER NOT NULL,
    expires_at   INTEGER NOT NULL,
    PRIMARY KEY (tenant, scope)
) STRICT, WITHOUT ROWID;

CREATE INDEX keys_expire ON keys (expires_at);

-- Registered documents.
CREATE TABLE workflows (
    tenant          TEXT    NOT NULL,
    name            TEXT    NOT NULL,
    version         TEXT    NOT NULL,
    definition_hash TEXT    NOT NULL,
    document        BLOB    NOT NULL,
    created_at      INTEGER NOT NULL,
    PRIMARY KEY (tenant, name, version)
) STRICT;

CREATE INDEX workflows_listed ON workflows (tenant, created_at, name, version);

CREATE TABLE workflow_defaults (
    tenant  TEXT NOT NULL,
    name    TEXT NOT NULL,
    version TEXT NOT NULL,
    PRIMARY KEY (tenant, name)
) STRICT, WITHOUT ROWID;

-- Uploaded components without their bytes. `tasks` and `imports` are JSON.
CREATE TABLE modules (
    tenant     TEXT    NOT NULL,
    name       TEXT    NOT NULL,
    digest     TEXT    NOT NULL,
    size_bytes INTEGER NOT NULL,
    tasks      BLOB    NOT NULL,
    imports    BLOB    NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (tenant, name, digest)
) STRICT;

CREATE INDEX modules_listed ON modules (tenant, created_at, name, digest);
CREATE INDEX modules_digest ON modules (digest);

CREATE TABLE aliases (
    tenant   TEXT    NOT NULL,
    module   TEXT    NOT NULL,
    alias    TEXT    NOT NULL,
    digest   TEXT    NOT NULL,
    moved_at INTEGER NOT NULL,
    PRIMARY KEY (tenant, module, alias)
) STRICT, WITHOUT ROWID;

-- The bytes of components in pieces, once for all who have the same. Only a row of `modules` gives a tenant access.
CREATE TABLE module_chunks (
    digest TEXT    NOT NULL,
    number INTEGER NOT NULL,
    bytes  BLOB    NOT NULL,
    PRIMARY KEY (digest, number)
) STRICT;
