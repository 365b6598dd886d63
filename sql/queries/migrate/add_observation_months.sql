-- Creates the partitions for the observations of this month and the next.
SELECT ledger.add_observation_month(now() + m * interval '1 month')::text FROM generate_series(0, 1) m
