-- Makes room for this month's and the next month's observations.
SELECT ledger.add_observation_month(now() + m * interval '1 month')::text FROM generate_series(0, 1) m
