-- Capacities, the queue for them, and what is known of wait conditions. The queue row of a job lives from its first
-- refused attempt until it is admitted or ends, whatever happens to the attempts in between (M19).

-- The scope '' is the whole store; any other is a pool. No capacity means unlimited; a pool must be here to be used.
CREATE TABLE concurrency_limits (
    scope    TEXT PRIMARY KEY,
    capacity INTEGER CHECK (capacity >= 1)
) STRICT, WITHOUT ROWID;

ALTER TABLE admissions ADD COLUMN pool TEXT;
ALTER TABLE admissions ADD COLUMN slot_scope TEXT;
ALTER TABLE admissions ADD COLUMN slot_indexes TEXT;

CREATE INDEX admissions_held ON admissions (pool, slots) WHERE released_at_ns IS NULL;

CREATE TABLE admission_requests (
    job_id         TEXT PRIMARY KEY REFERENCES jobs (id) ON DELETE CASCADE,
    pool           TEXT,
    slots          INTEGER NOT NULL CHECK (slots >= 1),
    eligible_at_ns INTEGER NOT NULL,
    bypassed       INTEGER NOT NULL DEFAULT 0 CHECK (bypassed BETWEEN 0 AND 3),
    fits_since_ns  INTEGER
) STRICT, WITHOUT ROWID;

CREATE INDEX admission_queue ON admission_requests (eligible_at_ns, job_id);

CREATE TABLE wait_evaluations (
    job_id          TEXT NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
    place           INTEGER NOT NULL,
    kind            TEXT NOT NULL CHECK (kind IN ('until', 'delay', 'file_exists', 'probe')),
    attempts        INTEGER NOT NULL CHECK (attempts >= 1),
    evaluated_at_ns INTEGER NOT NULL,
    satisfied_at_ns INTEGER,
    code            TEXT,
    PRIMARY KEY (job_id, place)
) STRICT, WITHOUT ROWID;
