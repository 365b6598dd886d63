-- set as_known_at=2026-03-25Z
-- set from=2026-02-01
-- set until=2026-03-02
-- K's introductory January was said to cost 2 USD; February costs 10: first full price, 8. In March K buys in Germany: 10 USD
-- go and 9 EUR come, which is neither churn nor expansion. H's 12 are its first full price; J is new, E's 2.50 expansion.
-- On 1 February A 10, C 8, E 7.50, G 8, K 2 made 35.50.
INSERT INTO ledger.subscription (app_id, environment, original_transaction_id) SELECT app_id, 'Production', 'K' FROM ledger.app;
INSERT INTO ledger.period (subscription_id, web_order_line_item_id, product_id, quantity, purchased_at, expires_at,
                           is_upgraded, is_trial, is_intro, path, recorded_at)
SELECT subscription_id, p.line, 'monthly', 1, p.since::timestamptz, p.until::timestamptz, false, false, p.line = 'K1', 'row',
       p.since::timestamptz + interval '1 minute'
FROM (VALUES ('K1', '2026-01-01Z', '2026-02-01Z'), ('K2', '2026-02-01Z', '2026-03-01Z'),
             ('K3', '2026-03-01Z', '2026-04-01Z')) AS p (line, since, until)
JOIN ledger.subscription ON original_transaction_id = 'K';
INSERT INTO ledger.subscription_span (subscription_id, valid, known, state, reason, entitled, product_id, flags, version)
SELECT subscription_id, t.valid, tstzrange('2026-03-01 00:01Z', NULL), t.state::ledger.state, t.reason::ledger.reason,
       t.state = 'active', 'monthly', t.flags, 1
FROM ledger.subscription
CROSS JOIN (VALUES (tstzrange('2026-01-01Z', '2026-02-01Z'), 'active', NULL, '{intro}'::text[]),
                   (tstzrange('2026-02-01Z', '2026-04-01Z'), 'active', NULL, '{}'),
                   (tstzrange('2026-04-01Z', NULL), 'expired', 'voluntary', '{}')) AS t (valid, state, reason, flags)
WHERE original_transaction_id = 'K';
INSERT INTO ledger.customer (app_id, name) SELECT app_id, 'kim' FROM ledger.app;
INSERT INTO ledger.receipt (app_id, digest, data, environment, received_at, asked_at, verified_at, outcome)
SELECT app_id, sha256(n::bytea), n::bytea, 'Production', '2026-01-01Z', '2026-03-24Z', '2026-03-24Z', 'verified'
FROM ledger.app CROSS JOIN unnest('{kim,kim again}'::text[]) n;
INSERT INTO ledger.upload (receipt_id, customer_id, uploaded_at, imported, storefront, price_milliunits, currency)
SELECT r.receipt_id, c.customer_id, u.at::timestamptz, false, u.storefront, u.price, u.currency
FROM (VALUES ('kim', '2026-01-01 00:01Z', 'USA', 2000, 'USD'), ('kim again', '2026-03-01 12:00Z', 'DEU', NULL, NULL))
    AS u (data, at, storefront, price, currency)
JOIN ledger.customer c ON c.name = 'kim' JOIN ledger.receipt r ON r.data = u.data::bytea;
INSERT INTO ledger.receipt_subscription (receipt_id, subscription_id)
SELECT receipt_id, subscription_id FROM ledger.receipt JOIN ledger.subscription ON original_transaction_id = 'K'
WHERE data IN ('kim', 'kim again');
