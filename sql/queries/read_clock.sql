-- Settlement: the instant it records, read once and only after all its locks are held.
SELECT clock_timestamp() AS recorded_at
