-- Who is told of what, the outbox, and every attempt to send. A delivery is queued in the transaction of its event; who
-- sends it holds it by a token until the lease runs out, or until the lock of the sender's place is free.

CREATE TABLE notification_subscriptions (
    job_id       TEXT NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
    event_type   TEXT NOT NULL,
    notifier     TEXT NOT NULL,
    max_attempts INTEGER NOT NULL CHECK (max_attempts BETWEEN 1 AND 100),
    budget_ns    INTEGER NOT NULL CHECK (budget_ns > 0),
    PRIMARY KEY (job_id, event_type, notifier)
) STRICT, WITHOUT ROWID;

CREATE TABLE notification_deliveries (
    event_id            TEXT NOT NULL REFERENCES state_events (id) ON DELETE CASCADE,
    notifier            TEXT NOT NULL,
    job_id              TEXT NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
    event_type          TEXT NOT NULL,
    run_id              TEXT,
    status              TEXT NOT NULL CHECK (status IN ('pending', 'delivering', 'succeeded', 'failed')),
    summary_json        TEXT NOT NULL,
    occurred_at_ns      INTEGER NOT NULL,
    created_at_ns       INTEGER NOT NULL,
    deadline_ns         INTEGER NOT NULL CHECK (deadline_ns > created_at_ns),
    max_attempts        INTEGER NOT NULL CHECK (max_attempts BETWEEN 1 AND 100),
    attempt_count       INTEGER NOT NULL DEFAULT 0 CHECK (attempt_count BETWEEN 0 AND max_attempts),
    next_attempt_at_ns  INTEGER,
    claim_token         TEXT,
    claim_place         INTEGER,
    claimed_at_ns       INTEGER,
    claim_expires_at_ns INTEGER,
    completed_at_ns     INTEGER,
    diagnostic_code     TEXT,
    diagnostic          TEXT,
    PRIMARY KEY (event_id, notifier),
    CHECK ((status IN ('pending', 'delivering')) = (next_attempt_at_ns IS NOT NULL)),
    CHECK ((status = 'delivering') = (claim_token IS NOT NULL)),
    CHECK ((claim_token IS NULL) = (claim_expires_at_ns IS NULL) AND (claim_token IS NULL) = (claim_place IS NULL)),
    CHECK ((status IN ('succeeded', 'failed')) = (completed_at_ns IS NOT NULL)),
    CHECK (status <> 'succeeded' OR diagnostic_code IS NULL)
) STRICT, WITHOUT ROWID;

CREATE INDEX notification_outbox ON notification_deliveries (next_attempt_at_ns, created_at_ns, event_id, notifier)
WHERE status IN ('pending', 'delivering');
CREATE INDEX notification_deliveries_by_job ON notification_deliveries (job_id, created_at_ns);

CREATE TABLE notification_attempts (
    id                   TEXT PRIMARY KEY CHECK (length(id) = 36),
    event_id             TEXT NOT NULL,
    notifier             TEXT NOT NULL,
    number               INTEGER NOT NULL CHECK (number >= 1),
    status               TEXT NOT NULL CHECK (status IN ('delivering', 'succeeded', 'failed')),
    created_at_ns        INTEGER NOT NULL,
    started_at_ns        INTEGER NOT NULL,
    completed_at_ns      INTEGER,
    next_attempt_at_ns   INTEGER,
    retryable            INTEGER NOT NULL DEFAULT 0 CHECK (retryable IN (0, 1)),
    response_truncated   INTEGER NOT NULL DEFAULT 0 CHECK (response_truncated IN (0, 1)),
    diagnostic_code      TEXT,
    diagnostic           TEXT,
    response_status_code INTEGER,
    command_exit_code    INTEGER,
    message_id           TEXT,
    UNIQUE (event_id, notifier, number),
    FOREIGN KEY (event_id, notifier) REFERENCES notification_deliveries (event_id, notifier) ON DELETE CASCADE,
    CHECK ((status = 'delivering') = (completed_at_ns IS NULL)),
    CHECK ((status = 'failed') = (diagnostic_code IS NOT NULL))
) STRICT;
