-- set from=2026-03-01Z
-- set until=2026-03-01 13:00Z
-- bea's receipt got 21002 from 10:15 to 12:05, pat's at 12:30; eve's was refused at 11:00 exactly. pat's later trouble is out of range.
INSERT INTO ledger.observation
    (receipt_id, app_id, lease_token, outcome, status, reason, first_as_of, last_as_of, meaning, recorded_at)
SELECT r.receipt_id, r.app_id, 1, o.outcome::ledger.outcome, o.status, o.reason, o.since::timestamptz, o.until::timestamptz, '',
       o.since::timestamptz
FROM (VALUES ('bea', 'indeterminate', 21002, 'malformed', '2026-03-01 10:15Z', '2026-03-01 12:05Z'),
             ('pat', 'indeterminate', 21002, 'malformed', '2026-03-01 12:30Z', '2026-03-01 12:30Z'),
             ('pat', 'indeterminate', NULL, 'HTTP 503', '2026-03-01 14:00Z', '2026-03-01 14:00Z'),
             ('eve', 'rejected', 21003, 'forged', '2026-03-01 11:00Z', '2026-03-01 11:00Z')
) AS o (name, outcome, status, reason, since, until)
JOIN ledger.receipt r ON r.data = o.name::bytea;
