-- The app asks both channels. A and B have access and are asked about by a receipt; only A was compared since. Three ends of
-- periods agreed after 60, 60 and 120 s. One renewal is unexplained, a restored purchase is explained, a period that
-- verifyReceipt alone has is young. What differed before both were asked is left out.
UPDATE ledger.app SET verifier = 'both', compares_since = '2026-03-01Z';
UPDATE ledger.subscription SET polled_by = NULL;
DELETE FROM ledger.subscription_span p USING ledger.subscription s
WHERE p.subscription_id = s.subscription_id AND s.original_transaction_id IN ('A', 'B');
INSERT INTO ledger.subscription_span (subscription_id, valid, known, state, entitled, product_id, version)
SELECT subscription_id, '[2026-01-01Z,)', '[2026-03-24Z,)', 'active', true, 'monthly', 1
FROM ledger.subscription WHERE original_transaction_id IN ('A', 'B');
UPDATE ledger.subscription SET polled_by = (SELECT min(receipt_id) FROM ledger.receipt) WHERE original_transaction_id IN ('A', 'B');
INSERT INTO ledger.channel_comparison (subscription_id, tried_at, compared_at)
SELECT subscription_id, '2026-03-24Z',
       CASE original_transaction_id WHEN 'A' THEN '2026-03-24Z'::timestamptz ELSE '2026-02-01Z' END
FROM ledger.subscription WHERE original_transaction_id IN ('A', 'B');
INSERT INTO ledger.channel_difference (
    app_id, environment, original_transaction_id, transaction_id, fact, verify_receipt, server_api, explanation,
    first_seen_at, last_seen_at, waits_until, agreed_at)
SELECT app_id, 'Production', d.id, d.transaction, d.fact, d.ours, d.theirs, d.explanation, d.seen, d.seen, d.waits, d.agreed
FROM ledger.app CROSS JOIN (VALUES
    ('A', 'A1', 'expires_at', '1', '2', NULL, '2026-03-02Z'::timestamptz, '2026-03-03Z'::timestamptz, '2026-03-02 00:01Z'::timestamptz),
    ('A', 'A2', 'expires_at', '1', '2', NULL, '2026-03-02Z', '2026-03-03Z', '2026-03-02 00:01Z'),
    ('B', 'B1', 'expires_at', '1', '2', NULL, '2026-03-02Z', '2026-03-03Z', '2026-03-02 00:02Z'),
    ('B', '', 'will_renew', 'true', 'false', NULL, '2026-03-02Z', '2026-03-03Z', NULL),
    ('P', 'P', 'purchased_at', '3', '1', 'restored', '2026-03-02Z', '2026-03-03Z', NULL),
    ('A', 'A9', 'period', 'monthly', NULL, NULL, '2026-03-02Z', 'infinity', NULL),
    ('A', '', 'will_renew', 'true', 'false', NULL, '2026-02-02Z', '2026-02-03Z', NULL)
) AS d (id, transaction, fact, ours, theirs, explanation, seen, waits, agreed);
