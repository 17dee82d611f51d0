-- What became of logs that were removed, and which removals have not come to their end. Pruning is no change of state: a
-- run keeps its revision.

ALTER TABLE runs ADD COLUMN pruned_at_ns INTEGER
    CHECK (pruned_at_ns IS NULL OR coalesce(pruned_at_ns >= completed_at_ns, 0));
ALTER TABLE runs ADD COLUMN pruned_files INTEGER
    CHECK ((pruned_files IS NULL) = (pruned_at_ns IS NULL) AND pruned_files >= 0);
ALTER TABLE runs ADD COLUMN pruned_bytes INTEGER
    CHECK ((pruned_bytes IS NULL) = (pruned_at_ns IS NULL) AND pruned_bytes >= 0);
-- Set with the other three, and cleared when nothing of the logs is left on disk.
ALTER TABLE runs ADD COLUMN pruning_unfinished INTEGER
    CHECK (pruning_unfinished IS NULL OR (pruning_unfinished = 1 AND pruned_at_ns IS NOT NULL));

CREATE INDEX runs_with_logs ON runs (job_id) WHERE phase = 'completed' AND pruned_at_ns IS NULL;
CREATE INDEX runs_half_pruned ON runs (job_id) WHERE pruning_unfinished = 1;

-- A job that is removed takes its runs and its supervisor with it. SQLite then looks for rows that refer to those: in the
-- whole table, unless an index leads to them.
CREATE INDEX jobs_by_supervisor ON jobs (supervisor_id) WHERE supervisor_id IS NOT NULL;
CREATE INDEX jobs_by_active_run ON jobs (active_run_id) WHERE active_run_id IS NOT NULL;
CREATE INDEX admissions_by_run ON admissions (run_id) WHERE run_id IS NOT NULL;
CREATE INDEX live_inputs_by_run ON live_inputs (eof_run_id) WHERE eof_run_id IS NOT NULL;
