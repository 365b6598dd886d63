-- Settlement: reserves $1 observation ids and $2 period ids.
SELECT 'observation' AS of, nextval('ledger.observation_id_seq') AS id FROM generate_series(1, $1::int)
UNION ALL
SELECT 'period', nextval(pg_get_serial_sequence('ledger.period', 'period_id')) FROM generate_series(1, $2::int)
