-- Schema 5: the life of modules: what aliases named before, how one alias may name several digests, and which live runs need which.

-- JSON: `[{"digest": …, "percent": …}]`. Where it is there, `digest` is that of its first share.
ALTER TABLE aliases ADD COLUMN split BLOB;

-- What each alias named before, the newest with the highest number. A rollback takes from the top.
CREATE TABLE alias_moves (
    tenant   TEXT    NOT NULL,
    module   TEXT    NOT NULL,
    alias    TEXT    NOT NULL,
    number   INTEGER NOT NULL,
    digest   TEXT    NOT NULL,
    split    BLOB,
    moved_at INTEGER NOT NULL,
    PRIMARY KEY (tenant, module, alias, number)
) STRICT, WITHOUT ROWID;

-- The digests that each live run needs: written when it first uses one, gone when it ends.
CREATE TABLE pins (
    tenant    TEXT    NOT NULL,
    execution TEXT    NOT NULL,
    run       INTEGER NOT NULL,
    module    TEXT    NOT NULL,
    digest    TEXT    NOT NULL,
    PRIMARY KEY (tenant, execution, run, module, digest)
) STRICT, WITHOUT ROWID;

CREATE INDEX pins_of ON pins (tenant, module, digest, execution);

-- Once, for the runs that are live now: what their histories say.
INSERT OR IGNORE INTO pins (tenant, execution, run, module, digest)
SELECT e.tenant, e.id, e.run,
       json_extract(CAST(h.fields AS TEXT), '$.module.name'), json_extract(CAST(h.fields AS TEXT), '$.module.digest')
FROM executions e JOIN events h ON h.tenant = e.tenant AND h.execution = e.id AND h.run = e.run
WHERE (e.status = 'RUNNING' OR e.status = 'COMPENSATING') AND h.kind = 'StepScheduled'
  AND json_extract(CAST(h.fields AS TEXT), '$.module.name') IS NOT NULL;
