-- Schema 3: runs that wind down, which a start looks for.
--
-- Written when a run begins to wind down and when it ends, and by nothing in between.

CREATE INDEX executions_winding_down ON executions (tenant, id) WHERE status = 'COMPENSATING';
