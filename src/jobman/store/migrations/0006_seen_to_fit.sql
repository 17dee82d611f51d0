-- Requests that somebody has seen to fit are few among the thousands that may be queued, and every admission looks for
-- them: without the index it read the whole queue.

CREATE INDEX requests_seen_to_fit ON admission_requests (fits_since_ns) WHERE fits_since_ns IS NOT NULL;
