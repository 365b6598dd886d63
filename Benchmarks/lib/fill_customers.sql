-- Adds :customers customers to the app :app, each with a subscription that runs and what is stored of it.
\set ON_ERROR_STOP on
SET synchronous_commit = off;
SET maintenance_work_mem = '1GB';
CREATE TEMPORARY TABLE filled AS
SELECT a.app_id, nextval(pg_get_serial_sequence('ledger.customer', 'customer_id')) AS customer_id,
       nextval(pg_get_serial_sequence('ledger.subscription', 'subscription_id')) AS subscription_id, n.number,
       now() + interval '1 day' + n.number % 25 * interval '1 day' AS expires_at
FROM ledger.app a CROSS JOIN generate_series(0, :customers - 1) AS n(number)
WHERE a.bundle_id = :'app';
INSERT INTO ledger.customer (customer_id, app_id, name) OVERRIDING SYSTEM VALUE
SELECT customer_id, app_id, 'f' || lpad(number::text, 7, '0') FROM filled;
INSERT INTO ledger.subscription
    (subscription_id, app_id, environment, original_transaction_id, version, as_of, checked_at, recorded_at, expires_at,
     will_renew, leeway_ms) OVERRIDING SYSTEM VALUE
SELECT subscription_id, app_id, 'Production', 'filled' || number, 1, now(), now(), now(), expires_at, true, 7200000
FROM filled;
INSERT INTO ledger.subscription_span
    (subscription_id, valid, known, state, reason, entitled, product_id, allowed_until, version)
SELECT f.subscription_id, s.valid, tstzrange(now(), NULL), s.state::ledger.state, s.reason::ledger.reason, s.entitled,
       'com.example.tracker.monthly', s.allowed_until, 1
FROM filled f
CROSS JOIN LATERAL (VALUES
    (tstzrange(f.expires_at - interval '30 days', f.expires_at), 'active', NULL, true, NULL::timestamptz),
    (tstzrange(f.expires_at, f.expires_at + interval '2 hours'), 'awaiting_renewal', 'renewal', true, NULL),
    (tstzrange(f.expires_at + interval '2 hours', NULL), 'expired', 'unknown', false,
     f.expires_at + interval '30 days 2 hours')) s(valid, state, reason, entitled, allowed_until);
INSERT INTO ledger.ownership (subscription_id, customer_id, valid, known)
SELECT subscription_id, customer_id, tstzrange(NULL, NULL), tstzrange(now(), NULL) FROM filled;
ANALYZE ledger.customer, ledger.subscription, ledger.subscription_span, ledger.ownership;
INSERT INTO ledger.current_entitlements
    (customer_id, app_id, catalog_changed_at, computed_at, spans, subscriptions, purchases)
SELECT e.customer_id, e.app_id, e.catalog_changed_at, e.computed_at, e.spans, e.subscriptions, e.purchases
FROM (SELECT array_agg(customer_id) AS customers FROM filled GROUP BY number / 500) slice
CROSS JOIN LATERAL ledger.compute_entitlements(slice.customers) e;
VACUUM (ANALYZE) ledger.customer, ledger.subscription, ledger.current_entitlements;
