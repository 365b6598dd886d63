-- bea's receipt has been due since 10 January, eve's lease was over on the 11th, pat's crashed three workers; no worker lives.
INSERT INTO ledger.poll_schedule (receipt_id, app_id, lane, due_at, scheduled_for, lease_token, leased_by, attempts, crashes)
SELECT receipt_id, app_id, s.lane::ledger.lane, s.due::timestamptz, s.due::timestamptz, 1, s.leased_by, s.attempts, s.crashes
FROM (VALUES ('bea', 'sweep', '2026-01-10Z', NULL, 0, 0), ('eve', 'expiring', '2026-01-11Z', 7, 1, 0), ('pat', 'quarantine', '2026-01-12Z', NULL, 3, 3)
) AS s (name, lane, due, leased_by, attempts, crashes)
JOIN ledger.receipt r ON r.data = s.name::bytea;
