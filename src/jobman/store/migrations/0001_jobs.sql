-- Jobs, their runs, owners, slots, dependencies and history. Times are integer Unix nanoseconds. The invariants of the
-- model are repeated here, so that no writer, ours or another, can store what the model would refuse. A CHECK that comes
-- to NULL passes: a column that may be NULL is compared by IS or through coalesce.

CREATE TABLE schema_migrations (
    version        INTEGER PRIMARY KEY,
    applied_at_ns  INTEGER NOT NULL,
    jobman_version TEXT NOT NULL,
    checksum       TEXT NOT NULL
) STRICT;

CREATE TABLE jobs (
    id                            TEXT PRIMARY KEY CHECK (length(id) = 36),
    name                          TEXT NOT NULL,
    phase                         TEXT NOT NULL CHECK (phase IN ('submitting', 'waiting', 'queued', 'starting',
                                      'running', 'backoff', 'paused', 'stopping', 'completed')),
    outcome                       TEXT CHECK (outcome IN ('success', 'failure', 'timed_out', 'cancelled', 'aborted',
                                      'lost', 'submission_failed')),
    revision                      INTEGER NOT NULL CHECK (revision >= 1),
    submitted_at_ns               INTEGER NOT NULL,
    claim_hash                    BLOB CHECK (length(claim_hash) = 32),
    claim_deadline_ns             INTEGER,
    supervisor_id                 TEXT REFERENCES supervisors (id) DEFERRABLE INITIALLY DEFERRED,
    claimed_at_ns                 INTEGER CHECK (claimed_at_ns >= submitted_at_ns),
    started_at_ns                 INTEGER CHECK (started_at_ns >= submitted_at_ns),
    completed_at_ns               INTEGER CHECK (completed_at_ns >= submitted_at_ns),
    cancellation_requested_at_ns  INTEGER CHECK (cancellation_requested_at_ns >= submitted_at_ns),
    active_run_id                 TEXT REFERENCES runs (id) DEFERRABLE INITIALLY DEFERRED,
    intent                        TEXT CHECK (intent IN ('cancellation', 'timeout')),
    run_count                     INTEGER NOT NULL DEFAULT 0 CHECK (run_count = success_count + failure_count),
    success_count                 INTEGER NOT NULL DEFAULT 0 CHECK (success_count >= 0),
    failure_count                 INTEGER NOT NULL DEFAULT 0 CHECK (failure_count >= 0),
    total_paused_ns               INTEGER NOT NULL DEFAULT 0 CHECK (total_paused_ns >= 0),
    paused_from                   TEXT CHECK (paused_from IN ('waiting', 'queued', 'backoff', 'running')),
    paused_at_ns                  INTEGER CHECK (paused_at_ns >= submitted_at_ns),
    paused_monotonic_ns           INTEGER,
    waiting_reason                TEXT,
    next_run_at_ns                INTEGER,
    prerequisites_satisfied_at_ns INTEGER CHECK (prerequisites_satisfied_at_ns >= submitted_at_ns),
    diagnostic_code               TEXT,
    diagnostic                    TEXT,
    CHECK ((phase = 'completed') = (outcome IS NOT NULL)),
    CHECK ((phase = 'completed') = (completed_at_ns IS NOT NULL)),
    CHECK (phase <> 'completed' OR active_run_id IS NULL),
    CHECK ((phase = 'submitting') = (claim_hash IS NOT NULL)),
    CHECK ((claim_hash IS NULL) = (claim_deadline_ns IS NULL)),
    CHECK ((supervisor_id IS NULL) = (claimed_at_ns IS NULL)),
    CHECK ((supervisor_id IS NULL) = (phase = 'submitting' OR outcome IS 'submission_failed')),
    CHECK (phase <> 'running' OR (active_run_id IS NOT NULL AND started_at_ns IS NOT NULL)),
    CHECK (phase NOT IN ('waiting', 'queued', 'backoff') OR active_run_id IS NULL),
    CHECK (phase <> 'backoff' OR next_run_at_ns IS NOT NULL),
    CHECK (phase <> 'stopping' OR active_run_id IS NOT NULL OR intent IS NOT NULL),
    CHECK (intent IS NULL OR phase = 'stopping' OR coalesce(outcome, '') IN ('cancelled', 'timed_out', 'lost')),
    CHECK ((phase = 'paused') = (paused_from IS NOT NULL)),
    CHECK ((paused_from IS NULL) = (paused_at_ns IS NULL) AND (paused_from IS NULL) = (paused_monotonic_ns IS NULL))
) STRICT;

CREATE INDEX jobs_by_submission ON jobs (submitted_at_ns DESC, id DESC);
CREATE INDEX jobs_by_name ON jobs (name) WHERE name <> '';
CREATE INDEX jobs_not_completed ON jobs (phase, submitted_at_ns DESC, id DESC) WHERE phase <> 'completed';

CREATE TABLE job_specs (
    job_id    TEXT PRIMARY KEY REFERENCES jobs (id) ON DELETE CASCADE,
    spec_json TEXT NOT NULL
) STRICT;

CREATE TABLE job_labels (
    job_id TEXT NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
    kind   TEXT NOT NULL CHECK (kind IN ('group', 'tag')),
    label  TEXT NOT NULL,
    PRIMARY KEY (kind, label, job_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX job_labels_by_job ON job_labels (job_id);

CREATE TABLE supervisors (
    id                  TEXT PRIMARY KEY,
    job_id              TEXT NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
    phase               TEXT NOT NULL CHECK (phase IN ('claimed', 'released')),
    revision            INTEGER NOT NULL CHECK (revision >= 1),
    pid                 INTEGER NOT NULL,
    creation_id         TEXT NOT NULL,
    boot_id             TEXT NOT NULL,
    pid_namespace       TEXT NOT NULL,
    lock_device         INTEGER NOT NULL,
    lock_inode          INTEGER NOT NULL,
    claimed_at_ns       INTEGER NOT NULL,
    lease_expires_at_ns INTEGER NOT NULL CHECK (lease_expires_at_ns >= claimed_at_ns),
    released_at_ns      INTEGER CHECK (released_at_ns >= claimed_at_ns),
    CHECK ((phase = 'released') = (released_at_ns IS NOT NULL))
) STRICT;

CREATE UNIQUE INDEX one_supervisor_per_job ON supervisors (job_id);

CREATE TABLE runs (
    id                   TEXT PRIMARY KEY,
    job_id               TEXT NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
    number               INTEGER NOT NULL CHECK (number >= 1),
    phase                TEXT NOT NULL CHECK (phase IN ('starting', 'running', 'paused', 'stopping', 'completed')),
    outcome              TEXT CHECK (outcome IN ('success', 'failure', 'timed_out', 'cancelled', 'start_failed',
                             'lost')),
    revision             INTEGER NOT NULL CHECK (revision >= 1),
    reserved_at_ns       INTEGER NOT NULL,
    resolved_executable  BLOB,
    pid                  INTEGER,
    creation_id          TEXT,
    boot_id              TEXT,
    pid_namespace        TEXT,
    started_at_ns        INTEGER CHECK (started_at_ns >= reserved_at_ns),
    stop_reason          TEXT CHECK (stop_reason IN ('cancellation', 'timeout')),
    stop_requested_at_ns INTEGER CHECK (stop_requested_at_ns >= reserved_at_ns),
    signalled_at_ns      INTEGER CHECK (signalled_at_ns >= reserved_at_ns),
    completed_at_ns      INTEGER CHECK (completed_at_ns >= reserved_at_ns),
    exit_observed_at_ns  INTEGER CHECK (exit_observed_at_ns >= reserved_at_ns),
    exit_code            INTEGER,
    exit_signal          TEXT,
    platform_reason      TEXT,
    log_integrity        TEXT NOT NULL CHECK (log_integrity IN ('pending', 'valid', 'partial', 'corrupt')),
    log_health           TEXT NOT NULL CHECK (log_health IN ('healthy', 'degraded')),
    log_diagnostic_code  TEXT,
    log_index_version    INTEGER NOT NULL CHECK (log_index_version IN (1, 2)),
    stdout_bytes         INTEGER,
    stderr_bytes         INTEGER,
    max_rss_bytes        INTEGER,
    user_cpu_ns          INTEGER,
    system_cpu_ns        INTEGER,
    diagnostic_code      TEXT,
    diagnostic           TEXT,
    UNIQUE (job_id, number),
    CHECK ((phase = 'completed') = (outcome IS NOT NULL)),
    CHECK ((phase = 'completed') = (completed_at_ns IS NOT NULL)),
    CHECK (phase <> 'completed' OR log_integrity <> 'pending'),
    CHECK ((stop_reason IS NULL) = (stop_requested_at_ns IS NULL)),
    CHECK (phase <> 'stopping' OR stop_reason IS NOT NULL),
    CHECK (phase NOT IN ('running', 'paused')
           OR (pid IS NOT NULL AND resolved_executable IS NOT NULL AND started_at_ns IS NOT NULL)),
    CHECK ((pid IS NULL) = (creation_id IS NULL) AND (pid IS NULL) = (boot_id IS NULL)
           AND (pid IS NULL) = (pid_namespace IS NULL)),
    CHECK (exit_code IS NULL OR coalesce(outcome, '') IN ('success', 'failure')),
    CHECK ((exit_observed_at_ns IS NOT NULL)
           = (exit_code IS NOT NULL) + (exit_signal IS NOT NULL) + (platform_reason IS NOT NULL)),
    CHECK (outcome IS NULL OR outcome IN ('start_failed', 'lost') OR exit_observed_at_ns IS NOT NULL
           OR (outcome IN ('cancelled', 'timed_out') AND started_at_ns IS NULL))
) STRICT;

CREATE UNIQUE INDEX one_active_run_per_job ON runs (job_id) WHERE phase <> 'completed';

CREATE TABLE dependencies (
    job_id            TEXT NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
    depends_on        TEXT NOT NULL REFERENCES jobs (id),
    predicate         TEXT NOT NULL,
    observed_revision INTEGER,
    observed_outcome  TEXT,
    satisfied_at_ns   INTEGER,
    PRIMARY KEY (job_id, depends_on),
    CHECK (job_id <> depends_on),
    CHECK ((observed_revision IS NULL) = (observed_outcome IS NULL)),
    CHECK (satisfied_at_ns IS NULL OR observed_outcome IS NOT NULL)
) STRICT, WITHOUT ROWID;

CREATE INDEX dependents ON dependencies (depends_on, job_id);

CREATE TABLE admissions (
    id                  TEXT PRIMARY KEY,
    job_id              TEXT NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
    run_id              TEXT REFERENCES runs (id) DEFERRABLE INITIALLY DEFERRED,
    slots               INTEGER NOT NULL CHECK (slots >= 1),
    acquired_at_ns      INTEGER NOT NULL,
    lease_expires_at_ns INTEGER NOT NULL,
    released_at_ns      INTEGER CHECK (released_at_ns >= acquired_at_ns)
) STRICT;

CREATE UNIQUE INDEX one_admission_per_job ON admissions (job_id) WHERE released_at_ns IS NULL;
CREATE INDEX admissions_by_job ON admissions (job_id, acquired_at_ns);

CREATE TABLE state_events (
    sequence        INTEGER PRIMARY KEY,
    id              TEXT NOT NULL UNIQUE,
    kind            TEXT NOT NULL CHECK (kind IN ('job', 'run', 'supervisor')),
    entity_id       TEXT NOT NULL,
    job_id          TEXT NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
    revision        INTEGER NOT NULL,
    type            TEXT NOT NULL,
    at_ns           INTEGER NOT NULL,
    reason          TEXT,
    diagnostic_code TEXT,
    next_run_at_ns  INTEGER,
    UNIQUE (entity_id, revision)
) STRICT;

CREATE INDEX state_events_by_job ON state_events (job_id, sequence);

CREATE TRIGGER state_events_are_append_only BEFORE UPDATE ON state_events
BEGIN
    SELECT RAISE(ABORT, 'events are never changed');
END;

-- The history of a job goes only with the job itself: then the row that the event belongs to is gone already.
CREATE TRIGGER state_events_are_kept BEFORE DELETE ON state_events
WHEN EXISTS (SELECT 1 FROM jobs WHERE id = OLD.job_id)
BEGIN
    SELECT RAISE(ABORT, 'events are never removed');
END;
