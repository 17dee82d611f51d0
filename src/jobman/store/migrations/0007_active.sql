-- What is active is told by the time of completion, which is set once, instead of by the phase: SQLite writes a partial
-- index anew whenever a column of its condition changes, so that each change of phase wrote both of these.

DROP INDEX jobs_not_completed;
CREATE INDEX jobs_active ON jobs (submitted_at_ns DESC, id DESC) WHERE completed_at_ns IS NULL;

DROP INDEX one_active_run_per_job;
CREATE UNIQUE INDEX one_active_run_per_job ON runs (job_id) WHERE completed_at_ns IS NULL;
