-- Schema 4: uploads that are not modules yet.
--
-- `compiling` ones were acknowledged and go on after a restart; `rejected` ones say why for a while. The bytes of either are
-- in `module_chunks`; those of a rejected one go with its refusal. A row keeps its bytes from going with another's.

CREATE TABLE uploads (
    tenant     TEXT    NOT NULL,
    name       TEXT    NOT NULL,
    digest     TEXT    NOT NULL,
    size_bytes INTEGER NOT NULL,
    reason     TEXT,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (tenant, name, digest)
) STRICT, WITHOUT ROWID;

CREATE INDEX uploads_digest ON uploads (digest) WHERE reason IS NULL;
