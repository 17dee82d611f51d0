-- A list of the jobs that ended in some way, or of one name, must not walk through all that there are to find them.

CREATE INDEX jobs_by_outcome ON jobs (outcome, submitted_at_ns DESC, id DESC) WHERE outcome IS NOT NULL;

-- Leads to a name as the old one did, and on in the order of a list.
CREATE INDEX jobs_by_name_and_submission ON jobs (name, submitted_at_ns DESC, id DESC) WHERE name <> '';
DROP INDEX jobs_by_name;
