-- Where the supervisor of a job takes live input, and which run was told that there is no more of it. The mark names its
-- run, so that it means nothing for the next one.

CREATE TABLE live_inputs (
    job_id     TEXT PRIMARY KEY REFERENCES jobs (id) ON DELETE CASCADE,
    endpoint   TEXT NOT NULL,
    eof_run_id TEXT REFERENCES runs (id) ON DELETE SET NULL
) STRICT, WITHOUT ROWID;
