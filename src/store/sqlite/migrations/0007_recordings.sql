-- Schema 7: recorded attempts, for running them again elsewhere.

CREATE TABLE recordings (
    -- Grows with each one that is kept: of a tenant the highest are its newest.
    number      INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant      TEXT    NOT NULL,
    execution   TEXT    NOT NULL,
    run         INTEGER NOT NULL,
    unit        TEXT    NOT NULL,
    attempt     INTEGER NOT NULL,
    recorded_at INTEGER NOT NULL,
    -- JSON: what brings the attempt about again, but for the module.
    bundle      BLOB    NOT NULL,
    UNIQUE (tenant, execution, run, unit, attempt)
) STRICT;

CREATE INDEX recordings_of ON recordings (tenant, number);
