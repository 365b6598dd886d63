-- Settlement: returns the instant to record, read once and only after all locks are taken.
SELECT clock_timestamp() AS recorded_at
