-- set from=2023-01-01
-- set until=2023-05-01
-- K paid for January and was charged again on 31 January at ten o'clock, an hour late, and refunded at three: the cause of that day's
-- churn is the refund. L's grace began at two and ended at eight in the evening of 31 January: billing. M was charged and
-- refunded on 10 January, which no day's end sees; in March it came back: it had paid before.
INSERT INTO ledger.subscription (app_id, environment, original_transaction_id)
SELECT app_id, 'Production', unnest('{K,L,M}'::text[]) FROM ledger.app;
INSERT INTO ledger.period (subscription_id, product_id, quantity, purchased_at, expires_at, cancelled_at,
                           cancellation_recorded_at, is_upgraded, is_trial, is_intro, path, recorded_at)
SELECT subscription_id, 'monthly', 1, p.since::timestamptz, p.until::timestamptz, p.cancelled::timestamptz,
       p.cancelled::timestamptz, false, false, false, 'row', p.since::timestamptz
FROM (VALUES ('K', '2023-01-01 09:00Z', '2023-01-31 09:00Z', NULL),
             ('K', '2023-01-31 10:00Z', '2023-02-28 10:00Z', '2023-01-31 15:00Z'),
             ('L', '2023-01-01 02:00Z', '2023-01-31 02:00Z', NULL),
             ('M', '2023-01-10 09:00Z', '2023-02-10 09:00Z', '2023-01-10 12:00Z'),
             ('M', '2023-03-10 09:00Z', '2023-04-10 09:00Z', NULL)) AS p (otid, since, until, cancelled)
JOIN ledger.subscription ON original_transaction_id = p.otid;
INSERT INTO ledger.subscription_span (subscription_id, valid, known, state, reason, entitled, product_id, version)
SELECT subscription_id, tstzrange(t.since::timestamptz, t.until::timestamptz), tstzrange('2023-01-01Z', NULL),
       t.state::ledger.state, t.reason::ledger.reason, t.state IN ('active', 'grace_period'), 'monthly', 1
FROM (VALUES ('K', '2023-01-01 09:00Z', '2023-01-31 09:00Z', 'active', NULL),
             ('K', '2023-01-31 09:00Z', '2023-01-31 10:00Z', 'expired', 'unknown'),
             ('K', '2023-01-31 10:00Z', '2023-01-31 15:00Z', 'active', NULL),
             ('K', '2023-01-31 15:00Z', NULL, 'revoked', 'refund'),
             ('L', '2023-01-01 02:00Z', '2023-01-31 02:00Z', 'active', NULL),
             ('L', '2023-01-31 02:00Z', '2023-01-31 20:00Z', 'grace_period', NULL),
             ('L', '2023-01-31 20:00Z', NULL, 'billing_retry', NULL),
             ('M', '2023-01-10 09:00Z', '2023-01-10 12:00Z', 'active', NULL),
             ('M', '2023-01-10 12:00Z', '2023-03-10 09:00Z', 'revoked', 'refund'),
             ('M', '2023-03-10 09:00Z', '2023-04-10 09:00Z', 'active', NULL),
             ('M', '2023-04-10 09:00Z', NULL, 'expired', 'voluntary')) AS t (otid, since, until, state, reason)
JOIN ledger.subscription ON original_transaction_id = t.otid;
