-- set as_known_at=2026-03-25Z
-- set until=2025-12-01
-- Four were first seen in March, with two paid periods each in the past; no event tells about these periods. I: ten
-- days lie between them, and it is unknown whether renewal was on: come back, as churn says of the same four. L: half
-- an hour: renewed. M: ten days, but Apple says that it had been trying: recovered. O: 70 days: come back, though Apple
-- tried. Two more were watched. V came back ten days after it had turned renewal off: come back. R was charged five
-- hours late, its renewal on: recovered, because its event says so.
INSERT INTO ledger.subscription (app_id, environment, original_transaction_id)
SELECT app_id, 'Production', unnest('{I,L,M,O,V,R}'::text[]) FROM ledger.app;
INSERT INTO ledger.period (subscription_id, web_order_line_item_id, product_id, quantity, purchased_at, expires_at,
                           is_upgraded, is_trial, is_intro, path, recorded_at)
SELECT subscription_id, p.line, 'monthly', 1, p.since::timestamptz, p.until::timestamptz, false, false, false, 'row',
       p.known::timestamptz
FROM (VALUES
    ('I', 'I1', '2025-10-01Z', '2025-11-01Z', '2026-03-01Z'), ('I', 'I2', '2025-11-11Z', '2025-12-11Z', '2026-03-01Z'),
    ('L', 'L1', '2025-10-01Z', '2025-11-01Z', '2026-03-01Z'), ('L', 'L2', '2025-11-01 00:30Z', '2025-12-01Z', '2026-03-01Z'),
    ('M', 'M1', '2025-10-01Z', '2025-11-01Z', '2026-03-01Z'), ('M', 'M2', '2025-11-11Z', '2025-12-11Z', '2026-03-01Z'),
    ('O', 'O1', '2025-10-01Z', '2025-11-01Z', '2026-03-01Z'), ('O', 'O2', '2026-01-10Z', '2026-02-10Z', '2026-03-01Z'),
    ('V', 'V1', '2025-10-01Z', '2025-11-01Z', '2025-10-01Z'), ('V', 'V2', '2025-11-11Z', '2025-12-11Z', '2025-11-11Z'),
    ('R', 'R1', '2025-10-01Z', '2025-11-01Z', '2025-10-01Z'), ('R', 'R2', '2025-11-01 05:00Z', '2025-12-01Z', '2025-11-01 06:00Z')
) AS p (otid, line, since, until, known)
JOIN ledger.subscription ON original_transaction_id = p.otid;
-- Where nothing is known of an end the timeline waits two hours for a renewal; of M Apple said more.
INSERT INTO ledger.subscription_span (subscription_id, valid, known, state, reason, entitled, product_id, version)
SELECT s.subscription_id, t.valid, tstzrange('2026-03-01Z', NULL), t.state::ledger.state, t.reason::ledger.reason,
       t.state IN ('active', 'awaiting_renewal'), 'monthly', 1
FROM (
    SELECT subscription_id, original_transaction_id AS otid, min(p.purchased_at) AS begins, min(p.expires_at) AS ends,
           max(p.purchased_at) AS again, max(p.expires_at) AS last
    FROM ledger.period p JOIN ledger.subscription USING (subscription_id)
    WHERE original_transaction_id IN ('I', 'L', 'M', 'O', 'V', 'R') GROUP BY subscription_id, original_transaction_id) s
CROSS JOIN LATERAL (
    SELECT tstzrange(s.begins, s.ends), 'active', NULL
    UNION ALL SELECT tstzrange(s.ends, LEAST(s.ends + interval '2 hours', s.again)), 'awaiting_renewal', 'renewal'
    WHERE s.otid NOT IN ('M', 'O', 'V')
    UNION ALL SELECT tstzrange(s.ends + interval '2 hours', s.again), 'expired', 'unknown' WHERE s.otid IN ('I', 'R')
    UNION ALL SELECT tstzrange(s.ends, s.again), 'billing_retry', NULL WHERE s.otid IN ('M', 'O')
    UNION ALL SELECT tstzrange(s.ends, s.again), 'expired', 'voluntary' WHERE s.otid = 'V'
    UNION ALL SELECT tstzrange(s.again, s.last), 'active', NULL
    UNION ALL SELECT tstzrange(s.last, NULL), 'expired', 'voluntary') AS t (valid, state, reason);
INSERT INTO ledger.transaction_alias (period_id, transaction_id)
SELECT period_id, web_order_line_item_id FROM ledger.period WHERE web_order_line_item_id IN ('V2', 'R2');
INSERT INTO ledger.event (public_id, app_id, environment, subscription_id, version, ordinal, kind, product_id, occurred_at,
                          as_of, recorded_at, detail)
SELECT gen_random_uuid(), app_id, environment, subscription_id, 2, 0, e.kind::ledger.event_kind, 'monthly',
       e.at::timestamptz, e.at::timestamptz, e.at::timestamptz, jsonb_build_object('transaction_id', e.line)
FROM (VALUES ('V', 'subscription.reactivated', '2025-11-11Z', 'V2'),
             ('R', 'subscription.recovered', '2025-11-01 05:00Z', 'R2')) AS e (otid, kind, at, line)
JOIN ledger.subscription ON original_transaction_id = e.otid;
