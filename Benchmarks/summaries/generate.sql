-- Three years of a shop: :subscriptions subscriptions that began at any time of them, seven of ten monthly, three yearly;
-- three of ten with a week's trial; a tenth of the monthly ones and a third of the yearly ones leaves at each renewal.
-- A fifth of the customers named a storefront with prices of its own, two of a hundred their price; the monthly price rose
-- a year ago; one charge of a hundred was refunded; one customer of twenty bought something else. The shop was imported 30
-- days ago and watched since: what happened in these days was learnt as it happened, and what was said before is kept.
-- Always the same for the same day. Into an empty database that `perennial migrate` made, as a superuser:
--     psql -v subscriptions=1000000 -f Benchmarks/summaries/generate.sql
\set ON_ERROR_STOP on
\if :{?subscriptions}
\else
\set subscriptions 1000000
\endif
SET synchronous_commit = off;
SET work_mem = '256MB';
SET maintenance_work_mem = '512MB';
SET jit = off;
BEGIN;
-- Rows are written without looking at each; indexes and exclusions are made when all are there. Keys stay.
SET LOCAL session_replication_role = replica;
CREATE TEMPORARY TABLE set_aside AS
SELECT format('ALTER TABLE %s DROP CONSTRAINT %I', conrelid::regclass, conname) AS away,
       format('ALTER TABLE %s ADD CONSTRAINT %I %s', conrelid::regclass, conname, pg_get_constraintdef(oid)) AS back
FROM pg_constraint WHERE contype = 'x' AND conrelid IN ('ledger.subscription_span'::regclass, 'ledger.ownership'::regclass)
UNION ALL
SELECT format('DROP INDEX %s', i.indexrelid::regclass), pg_get_indexdef(i.indexrelid)
FROM pg_index i
WHERE i.indrelid IN ('ledger.period'::regclass, 'ledger.subscription_span'::regclass, 'ledger.ownership'::regclass,
                     'ledger.customer'::regclass, 'ledger.subscription'::regclass, 'ledger.poll_schedule'::regclass)
  AND NOT EXISTS (SELECT FROM pg_constraint c WHERE c.conindid = i.indexrelid);
SELECT away FROM set_aside \gexec

CREATE FUNCTION pg_temp.luck(i bigint, question int) RETURNS float8 LANGUAGE sql IMMUTABLE AS
    'SELECT ((hashint8extended(i, question) & 16777215) + 0.5) / 16777216';
SELECT date_trunc('day', now(), 'UTC') AS midnight, date_trunc('day', now(), 'UTC') - interval '30 days' AS imported \gset

INSERT INTO ledger.app (bundle_id, name) VALUES ('com.example.large', 'Large') RETURNING app_id AS app \gset
INSERT INTO ledger.app_budget (app_id) VALUES (:app);
INSERT INTO ledger.product (app_id, product_id, group_id, level, period, price_milliunits, currency) VALUES
    (:app, 'monthly', 'g', 2, 'P1M', 9990, 'USD'), (:app, 'yearly', 'g', 1, 'P1Y', 79990, 'USD'),
    (:app, 'pack', NULL, NULL, NULL, 2990, 'USD');
SELECT count(ledger.record_price(:app, p.product_id, p.storefront, p.valid, p.price, p.currency, '2020-01-01Z'))
FROM (VALUES
    ('monthly', '', tstzrange(NULL, :'midnight'::timestamptz - interval '365 days'), 8990, 'USD'),
    ('monthly', '', tstzrange(:'midnight'::timestamptz - interval '365 days', NULL), 9990, 'USD'),
    ('monthly', 'DEU', tstzrange(NULL, NULL), 8490, 'EUR'), ('yearly', 'DEU', tstzrange(NULL, NULL), 69990, 'EUR'),
    ('yearly', '', tstzrange(NULL, NULL), 79990, 'USD'), ('pack', '', tstzrange(NULL, NULL), 2990, 'USD')
) AS p (product_id, storefront, valid, price, currency);

-- One row a subscription: its length, its first paid instant, how many periods it pays if time allows. Each step is computed
-- once (OFFSET 0).
CREATE TEMPORARY TABLE life AS
SELECT d.*, CASE WHEN paid = 0 THEN pays_from ELSE pays_from + paid * step END AS ends, paid < wanted AS runs,
       -- When what is said now was learnt, and whether something else was said before.
       GREATEST(:'imported', CASE WHEN paid = 0 THEN begins ELSE pays_from + (paid - 1) * step END + interval '1 minute') AS told,
       paid > 1 AND pays_from <= :'imported' AND pays_from + (paid - 1) * step > :'imported' AS retold,
       CASE WHEN is_monthly THEN 'monthly' ELSE 'yearly' END AS product_id
FROM (
    SELECT b.*, GREATEST(0, LEAST(wanted, 1 + floor(
               extract(epoch FROM :'midnight' - pays_from) / extract(epoch FROM step))::int)) AS paid
    FROM (
        SELECT a.*, begins + CASE WHEN has_trial THEN interval '7 days' ELSE '0' END AS pays_from,
               CASE WHEN is_monthly THEN interval '30 days 10 hours' ELSE interval '365 days' END AS step,
               1 + floor(-ln(pg_temp.luck(i, 4)) * CASE WHEN is_monthly THEN 10 ELSE 3 END)::int AS wanted
        FROM (
            SELECT i, pg_temp.luck(i, 1) < 0.7 AS is_monthly, pg_temp.luck(i, 2) < 0.3 AS has_trial,
                   :'midnight'::timestamptz - pg_temp.luck(i, 3) * interval '1095 days' AS begins
            FROM generate_series(1::bigint, :subscriptions) i OFFSET 0) a OFFSET 0) b OFFSET 0) d;
ALTER TABLE life ADD PRIMARY KEY (i);
ANALYZE life;

INSERT INTO ledger.customer (customer_id, app_id, name) OVERRIDING SYSTEM VALUE
SELECT i, :app, 'customer-' || lpad(i::text, 7, '0') FROM life ORDER BY i;
INSERT INTO ledger.receipt (receipt_id, app_id, digest, data, environment, received_at, outcome, asked_at, verified_at,
                            first_verified_at)
OVERRIDING SYSTEM VALUE
SELECT i, :app, sha256(i::text::bytea), '\x3082', 'Production', GREATEST(begins, :'imported'), 'verified',
       now() - pg_temp.luck(i, 5) * interval '1 day', now() - interval '1 day', GREATEST(begins, :'imported')
FROM life ORDER BY i;
INSERT INTO ledger.upload (receipt_id, customer_id, uploaded_at, imported, settled, storefront, price_milliunits, currency)
SELECT i, i, GREATEST(begins, :'imported'), true, true, CASE WHEN pg_temp.luck(i, 7) < 0.2 THEN 'DEU' END,
       CASE WHEN pg_temp.luck(i, 8) < 0.02 THEN 4990 END, CASE WHEN pg_temp.luck(i, 8) < 0.02 THEN 'USD' END
FROM life ORDER BY i;
INSERT INTO ledger.stated_price (receipt_id, customer_id, stated_at, storefront, price_milliunits, currency)
SELECT receipt_id, customer_id, uploaded_at, storefront, price_milliunits, currency FROM ledger.upload
WHERE num_nonnulls(storefront, price_milliunits) > 0 ORDER BY receipt_id;
INSERT INTO ledger.poll_schedule (receipt_id, app_id, lane, due_at, scheduled_for)
SELECT i, :app, 'sweep', at, at
FROM life CROSS JOIN LATERAL (SELECT now() + pg_temp.luck(i, 6) * interval '7 days' AS at) due WHERE runs ORDER BY i;
INSERT INTO ledger.subscription
    (subscription_id, app_id, environment, original_transaction_id, group_id, polled_by, version, as_of, checked_at,
     recorded_at, next_check_at, will_renew, renews_to_product_id, expires_at, head_starts_at, started_at, periods)
OVERRIDING SYSTEM VALUE
SELECT i, :app, 'Production', (1000000000000 + i)::text, 'g', i, 1 + retold::int, now() - interval '1 day',
       now() - interval '1 day', told, now() + interval '1 day', runs, CASE WHEN runs THEN product_id END, ends,
       ends - step, begins, paid + has_trial::int
FROM life ORDER BY i;
INSERT INTO ledger.receipt_subscription (receipt_id, subscription_id) SELECT i, i FROM life ORDER BY i;
INSERT INTO ledger.ownership (subscription_id, customer_id, valid, known)
SELECT i, i, tstzrange(NULL, NULL), tstzrange(GREATEST(begins, :'imported'), NULL) FROM life ORDER BY i;

-- Refunds are of charges that another one followed, so that they end no access.
INSERT INTO ledger.period
    (subscription_id, web_order_line_item_id, product_id, quantity, purchased_at, expires_at, is_upgraded, is_trial, is_intro,
     path, cancelled_at, cancellation_recorded_at, recorded_at, facts_recorded_at)
SELECT i, (2000000000000 + i * 64 + n)::text, product_id, 1, at.since, at.until, false, n = 0, false,
       'latest_receipt_info[' || n || ']', back.at, back.learnt, at.learnt, NULLIF(back.learnt, at.learnt)
FROM life
CROSS JOIN LATERAL generate_series(CASE WHEN has_trial THEN 0 ELSE 1 END, paid) n
CROSS JOIN LATERAL (
    SELECT p.*, GREATEST(:'imported', p.since + interval '1 minute') AS learnt
    FROM (SELECT CASE WHEN n = 0 THEN begins ELSE pays_from + (n - 1) * step END AS since,
                 CASE WHEN n = 0 THEN pays_from ELSE pays_from + n * step END AS until) p) at
LEFT JOIN LATERAL (
    SELECT at.since + interval '5 days' AS at, GREATEST(at.learnt, at.since + interval '7 days') AS learnt
    WHERE n BETWEEN 1 AND paid - 1 AND pg_temp.luck(i * 64 + n, 9) < 0.01) back ON true
ORDER BY i, n;
INSERT INTO ledger.period_history
    (period_id, subscription_id, known, product_id, quantity, purchased_at, expires_at, is_upgraded, is_trial, is_intro,
     promotional_offer_id, offer_code_ref_name, ownership, recorded_at)
SELECT period_id, subscription_id, tstzrange(recorded_at, cancellation_recorded_at), product_id, quantity, purchased_at,
       expires_at, false, is_trial, is_intro, promotional_offer_id, offer_code_ref_name, ownership, recorded_at
FROM ledger.period WHERE cancellation_recorded_at > recorded_at;

INSERT INTO ledger.subscription_span
    (subscription_id, valid, known, state, reason, entitled, product_id, flags, allowed_until, version)
SELECT i, tstzrange(span.since, NULLIF(span.until, 'infinity')), telling.known, span.state::ledger.state,
       span.reason::ledger.reason, span.state <> 'expired', product_id, span.flags::text[],
       CASE WHEN span.reason = 'unknown' THEN span.since + interval '30 days' END, telling.version
FROM life
CROSS JOIN LATERAL (
    SELECT ends, runs, tstzrange(told, NULL) AS known, 1 + retold::int AS version
    UNION ALL
    SELECT ends - step, true, tstzrange(:'imported', told), 1 WHERE retold) telling
CROSS JOIN LATERAL (VALUES
    (begins, CASE WHEN has_trial THEN pays_from END, 'active', NULL, '{trial}'),
    (pays_from, CASE WHEN paid > 0 THEN telling.ends END, 'active', NULL, '{}'),
    (telling.ends, CASE WHEN telling.runs THEN telling.ends + interval '2 hours' END, 'awaiting_renewal', 'renewal', '{}'),
    (CASE WHEN telling.runs THEN telling.ends + interval '2 hours' ELSE telling.ends END, 'infinity', 'expired',
     CASE WHEN telling.runs THEN 'unknown' WHEN i % 3 = 0 THEN 'billing_error' ELSE 'voluntary' END, '{}')
) AS span (since, until, state, reason, flags)
WHERE span.until IS NOT NULL AND span.since < span.until ORDER BY i;

INSERT INTO ledger.purchase
    (purchase_id, app_id, environment, original_transaction_id, product_id, transaction_id, facts, quantity, purchased_at,
     version, as_of, checked_at, recorded_at, first_recorded_at, revoked_at, revocation_recorded_at)
OVERRIDING SYSTEM VALUE
SELECT i, :app, 'Production', (3000000000000 + i)::text, 'pack', (3000000000000 + i)::text, '{}', 1, begins, 1, told, told,
       told, GREATEST(begins, :'imported'), CASE WHEN i % 1000 = 0 THEN begins + interval '1 day' END,
       CASE WHEN i % 1000 = 0 THEN GREATEST(begins + interval '1 day', :'imported') END
FROM life WHERE i % 20 = 0 AND begins < :'midnight'::timestamptz - interval '2 days' ORDER BY i;
INSERT INTO ledger.receipt_purchase (receipt_id, purchase_id) SELECT purchase_id, purchase_id FROM ledger.purchase;

INSERT INTO ledger.event (event_id, public_id, app_id, environment, subscription_id, version, ordinal, kind, product_id,
                          occurred_at, as_of, recorded_at)
OVERRIDING SYSTEM VALUE
SELECT row_number() OVER (ORDER BY e.recorded_at, i, e.version), md5(i || '.' || e.version)::uuid, :app, 'Production', i,
       e.version, 0, e.kind::ledger.event_kind, product_id, e.occurred_at, e.recorded_at, e.recorded_at
FROM life CROSS JOIN LATERAL (
    SELECT 1 AS version, CASE WHEN has_trial THEN 'trial.started' ELSE 'subscription.started' END AS kind,
           begins AS occurred_at, GREATEST(:'imported', begins + interval '1 minute') AS recorded_at
    UNION ALL
    SELECT 2, 'subscription.renewed', ends - step, told WHERE retold) e;
INSERT INTO ledger.event_feed (position, event_id) SELECT event_id, event_id FROM ledger.event ORDER BY event_id;
SELECT back FROM set_aside ORDER BY back \gexec
COMMIT;
VACUUM ANALYZE;
