-- Three years of a shop: :subscriptions subscriptions that began at any time of them, seven of ten monthly, three yearly;
-- three of ten with a week's trial; a tenth of the monthly ones and a third of the yearly ones leaves at each renewal.
-- Always the same for the same day. Into an empty database that `perennial migrate` made:
--     psql -v subscriptions=1000000 -f Benchmarks/summaries/generate.sql
\set ON_ERROR_STOP on
\if :{?subscriptions}
\else
\set subscriptions 1000000
\endif
SET synchronous_commit = off;
SET work_mem = '256MB';
SET maintenance_work_mem = '512MB';
BEGIN;
CREATE FUNCTION pg_temp.luck(i bigint, question int) RETURNS float8 LANGUAGE sql IMMUTABLE AS
    'SELECT ((hashint8extended(i, question) & 16777215) + 0.5) / 16777216';

INSERT INTO ledger.app (bundle_id, name) VALUES ('com.example.large', 'Large');
INSERT INTO ledger.app_budget (app_id) SELECT app_id FROM ledger.app;
INSERT INTO ledger.product (app_id, product_id, group_id, level, period, price_milliunits, currency)
SELECT app_id, p.* FROM ledger.app CROSS JOIN (VALUES
    ('monthly', 'g', 2, 'P1M', 9990, 'USD'), ('yearly', 'g', 1, 'P1Y', 79990, 'USD')) p;
SELECT count(ledger.say_price(app_id, 'monthly', '', tstzrange(NULL, NULL), 9990, 'USD', '2020-01-01Z')) FROM ledger.app;
SELECT count(ledger.say_price(app_id, 'yearly', '', tstzrange(NULL, NULL), 79990, 'USD', '2020-01-01Z')) FROM ledger.app;

-- One row a subscription: its length, its first paid instant, how many periods it pays if time allows.
CREATE TEMPORARY TABLE life AS
SELECT i, is_monthly, has_trial, step, begins, begins + CASE WHEN has_trial THEN interval '7 days' ELSE '0' END AS pays_from,
       LEAST(wanted, 1 + floor(extract(epoch FROM midnight - begins
           - CASE WHEN has_trial THEN interval '7 days' ELSE '0' END) / extract(epoch FROM step))::int) AS paid, wanted
FROM (
    SELECT i, is_monthly, pg_temp.luck(i, 2) < 0.3 AS has_trial,
           CASE WHEN is_monthly THEN interval '30 days 10 hours' ELSE interval '365 days' END AS step,
           midnight - pg_temp.luck(i, 3) * interval '1095 days' AS begins,
           1 + floor(-ln(pg_temp.luck(i, 4)) * CASE WHEN is_monthly THEN 10 ELSE 3 END)::int AS wanted, midnight
    FROM (SELECT i, pg_temp.luck(i, 1) < 0.7 AS is_monthly, date_trunc('day', now(), 'UTC') AS midnight
          FROM generate_series(1, :subscriptions) i) kind) drawn;
ALTER TABLE life ADD COLUMN ends timestamptz, ADD COLUMN runs boolean;
UPDATE life SET paid = GREATEST(paid, 0);
UPDATE life SET ends = CASE WHEN paid = 0 THEN pays_from ELSE pays_from + paid * step END, runs = paid < wanted;
ANALYZE life;

INSERT INTO ledger.customer (customer_id, app_id, name) OVERRIDING SYSTEM VALUE
SELECT i, (SELECT app_id FROM ledger.app), 'customer-' || lpad(i::text, 7, '0') FROM life ORDER BY i;
INSERT INTO ledger.receipt (receipt_id, app_id, digest, data, environment, received_at, outcome, asked_at, verified_at,
                            first_verified_at)
OVERRIDING SYSTEM VALUE
SELECT i, (SELECT app_id FROM ledger.app), sha256(i::text::bytea), '\x3082', 'Production', now() - interval '1 day',
       'verified', now() - pg_temp.luck(i, 5) * interval '1 day', now() - interval '1 day', now() - interval '1 day'
FROM life ORDER BY i;
INSERT INTO ledger.upload (receipt_id, customer_id, imported, settled) SELECT i, i, true, true FROM life ORDER BY i;
INSERT INTO ledger.poll_schedule (receipt_id, app_id, lane, due_at, scheduled_for)
SELECT i, (SELECT app_id FROM ledger.app), 4, at, at
FROM life CROSS JOIN LATERAL (SELECT now() + pg_temp.luck(i, 6) * interval '7 days' AS at) due WHERE runs ORDER BY i;
INSERT INTO ledger.subscription
    (subscription_id, app_id, environment, original_transaction_id, group_id, polled_by, version, as_of, checked_at,
     recorded_at, next_check_at, will_renew, renews_to_product_id, expires_at, head_starts_at, started_at, periods)
OVERRIDING SYSTEM VALUE
SELECT i, (SELECT app_id FROM ledger.app), 'Production', (1000000000000 + i)::text, 'g', i, 1, now() - interval '1 day',
       now() - interval '1 day', now() - interval '1 day', now() + interval '1 day', runs,
       CASE WHEN runs THEN CASE WHEN is_monthly THEN 'monthly' ELSE 'yearly' END END, ends, ends - step, begins,
       paid + has_trial::int
FROM life ORDER BY i;
INSERT INTO ledger.receipt_subscription (receipt_id, subscription_id) SELECT i, i FROM life ORDER BY i;
INSERT INTO ledger.ownership (subscription_id, customer_id, valid, known)
SELECT i, i, tstzrange(NULL, NULL), tstzrange(now() - interval '1 day', NULL)
FROM life ORDER BY i;
INSERT INTO ledger.period
    (subscription_id, web_order_line_item_id, product_id, quantity, purchased_at, expires_at, is_upgraded, is_trial,
     is_intro, path, recorded_at)
SELECT i, (2000000000000 + i * 64 + n)::text, CASE WHEN is_monthly THEN 'monthly' ELSE 'yearly' END, 1,
       CASE WHEN n = 0 THEN begins ELSE pays_from + (n - 1) * step END,
       CASE WHEN n = 0 THEN pays_from ELSE pays_from + n * step END, false, n = 0, false,
       'latest_receipt_info[' || n || ']', now() - interval '1 day'
FROM life CROSS JOIN LATERAL generate_series(CASE WHEN has_trial THEN 0 ELSE 1 END, paid) n ORDER BY i, n;
INSERT INTO ledger.subscription_span
    (subscription_id, valid, known, state, reason, entitled, product_id, flags, version)
SELECT i, tstzrange(span.since, span.until), tstzrange(now() - interval '1 day', NULL), span.state::ledger.state,
       span.reason::ledger.reason, span.state <> 'expired', CASE WHEN is_monthly THEN 'monthly' ELSE 'yearly' END,
       span.flags::text[], 1
FROM life CROSS JOIN LATERAL (
    VALUES (begins, CASE WHEN has_trial THEN pays_from END, 'active', NULL, '{trial}'),
           (pays_from, CASE WHEN paid > 0 THEN ends END, 'active', NULL, '{}'),
           (ends, CASE WHEN runs THEN ends + interval '2 hours' END, 'awaiting_renewal', 'renewal', '{}'),
           (CASE WHEN runs THEN ends + interval '2 hours' ELSE ends END, 'infinity', 'expired',
            CASE WHEN i % 3 = 0 THEN 'billing_error' ELSE 'voluntary' END, '{}')
) AS span (since, until, state, reason, flags)
WHERE span.until IS NOT NULL AND span.since < span.until ORDER BY i;
UPDATE ledger.subscription_span SET valid = tstzrange(lower(valid), NULL) WHERE upper(valid) = 'infinity';
INSERT INTO ledger.event (event_id, public_id, app_id, environment, subscription_id, version, ordinal, kind, product_id,
                          occurred_at, as_of, recorded_at)
OVERRIDING SYSTEM VALUE
SELECT i, md5(i::text)::uuid, (SELECT app_id FROM ledger.app), 'Production', i, 1, 0,
       CASE WHEN has_trial THEN 'trial.started' ELSE 'subscription.started' END::ledger.event_kind,
       CASE WHEN is_monthly THEN 'monthly' ELSE 'yearly' END, begins, now(), now() - interval '1 day'
FROM life ORDER BY i;
INSERT INTO ledger.event_feed (position, event_id) SELECT i, i FROM life ORDER BY i;
COMMIT;
VACUUM ANALYZE;
