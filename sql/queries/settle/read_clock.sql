-- Returns the database's clock. Settlements and changes of the catalog record this instant: they read it once, after
-- all their locks.
SELECT clock_timestamp() AS recorded_at
