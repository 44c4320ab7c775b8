-- Schema 6: tenants as rows, their policies, and the settings of their modules.

CREATE TABLE tenants (
    tenant       TEXT    NOT NULL PRIMARY KEY,
    display_name TEXT,
    created_at   INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX tenants_listed ON tenants (created_at, tenant);

INSERT INTO tenants (tenant, display_name, created_at) VALUES ('default', NULL, 0);

CREATE TABLE policies (
    tenant   TEXT    NOT NULL PRIMARY KEY,
    revision INTEGER NOT NULL,
    policy   BLOB    NOT NULL,
    set_at   INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Every revision is kept: an attempt that is recorded names the one that it had.
CREATE TABLE module_settings (
    tenant   TEXT    NOT NULL,
    module   TEXT    NOT NULL,
    revision INTEGER NOT NULL,
    settings BLOB    NOT NULL,
    set_at   INTEGER NOT NULL,
    PRIMARY KEY (tenant, module, revision)
) STRICT;

-- The settings that an attempt has, where any were set for its module.
ALTER TABLE ready ADD COLUMN settings_module TEXT;
ALTER TABLE ready ADD COLUMN settings_revision INTEGER;
