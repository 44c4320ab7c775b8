-- Schema 2: lists of executions by workflow and version.
--
-- None of these columns changes with a step: these indexes are written when an execution starts, and the last one when
-- one ends badly.

CREATE INDEX executions_of_workflow ON executions (tenant, workflow, created_at, id);
CREATE INDEX executions_of_version ON executions (tenant, version, created_at, id);
CREATE INDEX executions_of_workflow_version ON executions (tenant, workflow, version, created_at, id);
CREATE INDEX executions_unsuccessful_of_workflow ON executions (tenant, workflow, created_at, id)
    WHERE status = 'FAILED' OR status = 'CANCELLED' OR status = 'TIMED_OUT';
