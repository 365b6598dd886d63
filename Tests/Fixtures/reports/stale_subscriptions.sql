-- L is held for longer than this test will live, M's check is overdue, N is well.
DELETE FROM ledger.subscription;
INSERT INTO ledger.receipt (app_id, digest, data) SELECT app_id, sha256('stale'), 'x' FROM ledger.app;
INSERT INTO ledger.subscription (app_id, environment, original_transaction_id, version, as_of, checked_at, recorded_at, will_renew,
                                 expires_at, next_check_at, polled_by)
SELECT app_id, 'Production', s.name, 1, '2026-01-31Z', '2026-01-31Z', '2026-01-31Z', true, s.expires_at::timestamptz,
       s.next::timestamptz, (SELECT max(receipt_id) FROM ledger.receipt)
FROM ledger.app CROSS JOIN (VALUES ('L', '2026-02-01Z', '9999-01-01Z'), ('M', '9999-01-01Z', '2026-02-07Z'),
                                   ('N', '9999-01-01Z', '9999-01-01Z')) AS s (name, expires_at, next);
INSERT INTO ledger.subscription_span
    (subscription_id, valid, known, state, reason, entitled, product_id, allowed_until, version)
SELECT subscription_id, tstzrange('2026-01-01Z', expires_at), tstzrange('2026-01-31Z', NULL), 'active'::ledger.state,
       NULL::ledger.reason, true, 'monthly', NULL::timestamptz, 1 FROM ledger.subscription
UNION ALL
SELECT subscription_id, tstzrange('2026-02-01Z', NULL), tstzrange('2026-01-31Z', NULL), 'expired', 'unknown', false, 'monthly',
       '9999-01-01Z', 1 FROM ledger.subscription WHERE original_transaction_id = 'L';
