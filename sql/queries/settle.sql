-- One settlement: its locks, its clock, and what it reads before it decides.

-- name: read_linked
-- Settlement: returns what the ledger links to those of receipts ($1) about which a claim or an order is to be decided, by
-- which alone no owner is proved, or by which notifications have the Server API asked; locks nothing. An answer need not repeat
-- it. A one-time purchase that an answer leaves out was used up, and stays the receipt's; a subscription does not.
WITH claimed AS MATERIALIZED (
    -- OFFSET 0: looked up for each receipt, also by a plan that was made while the tables were empty.
    SELECT r.receipt_id FROM unnest($1::bigint[]) AS r(receipt_id)
    WHERE EXISTS (SELECT FROM ledger.upload u WHERE u.receipt_id = r.receipt_id AND NOT u.settled OFFSET 0)
       OR EXISTS (SELECT FROM ledger.order_receipt x WHERE x.receipt_id = r.receipt_id OFFSET 0)
       OR EXISTS (
           SELECT FROM ledger.receipt p
           WHERE p.receipt_id = r.receipt_id AND (p.form = 'transaction_id' OR p.form <> 'receipt' AND EXISTS (
               SELECT FROM ledger.poll_schedule q WHERE q.receipt_id = p.receipt_id AND q.follow_ups > 0)) OFFSET 0)
)
SELECT c.receipt_id, s.subscription_id, NULL::bigint AS purchase_id, s.app_id, s.environment::text AS environment,
       s.original_transaction_id, NULL::text AS product_id
FROM claimed c
CROSS JOIN LATERAL (
    SELECT l.subscription_id FROM ledger.receipt_subscription l
    WHERE l.receipt_id = c.receipt_id AND l.omitted_at IS NULL OFFSET 0) l
CROSS JOIN LATERAL (
    SELECT s.* FROM ledger.subscription s WHERE s.subscription_id = l.subscription_id AND s.version > 0 OFFSET 0) s
UNION ALL
SELECT c.receipt_id, NULL, p.purchase_id, p.app_id, p.environment::text, p.original_transaction_id, p.product_id
FROM claimed c
CROSS JOIN LATERAL (
    SELECT l.purchase_id FROM ledger.receipt_purchase l WHERE l.receipt_id = c.receipt_id OFFSET 0) l
CROSS JOIN LATERAL (
    SELECT p.* FROM ledger.purchase p WHERE p.purchase_id = l.purchase_id AND p.version > 0 OFFSET 0) p

-- name: lock_line_items
-- Settlement: locks those line items ($3) of apps ($1) and environments ($2) that are new under their original transaction
-- ids ($4), in one order, to the end of the transaction. It comes before every other lock.
SELECT pg_advisory_xact_lock(k.key)
FROM (
    SELECT DISTINCT hashtextextended(concat_ws(' ', 'ledger.line_item', n.app_id, n.environment, n.item), 0) AS key
    FROM unnest($1::int[], $2::text[], $3::text[], $4::text[]) AS n(app_id, environment, item, original_transaction_id)
    WHERE NOT EXISTS (
        SELECT FROM (SELECT p.subscription_id FROM ledger.period p WHERE p.web_order_line_item_id = n.item OFFSET 0) p
        JOIN ledger.subscription s USING (subscription_id)
        WHERE s.app_id = n.app_id AND s.environment = n.environment::ledger.environment
          AND s.original_transaction_id = n.original_transaction_id OFFSET 0)
    ORDER BY key OFFSET 0) k

-- name: find_line_item_holders
-- Settlement: returns the subscriptions that hold line items ($3) of apps ($1) and environments ($2) under another
-- original transaction id than an answer does ($4); locks nothing. "transaction" and an id stand for a line item where a
-- period has several transactions.
SELECT DISTINCT holder.subscription_id
FROM unnest($1::int[], $2::text[], $3::text[], $4::text[])
    AS n(app_id, environment, web_order_line_item_id, original_transaction_id)
-- OFFSET 0: from the line item to its holder. The planner would begin with all subscriptions of the app.
CROSS JOIN LATERAL (
    SELECT p.subscription_id FROM ledger.period p WHERE p.web_order_line_item_id = n.web_order_line_item_id
    UNION ALL
    SELECT p.subscription_id FROM ledger.transaction_alias a JOIN ledger.period p USING (period_id)
    WHERE n.web_order_line_item_id LIKE 'transaction %' AND a.transaction_id = substr(n.web_order_line_item_id, 13)
    OFFSET 0) p
CROSS JOIN LATERAL (
    SELECT s.subscription_id FROM ledger.subscription s
    WHERE s.subscription_id = p.subscription_id AND s.app_id = n.app_id
      AND s.environment = n.environment::ledger.environment
      AND s.original_transaction_id <> n.original_transaction_id OFFSET 0) holder

-- name: find_skipped_twins
-- Settlement: returns the one-time purchases that were skipped as possible duplicates of those named ($1 apps,
-- $2 environments, $3 ids, $4 products), which are none once an account token is learnt; locks nothing.
SELECT DISTINCT w.id AS purchase_id
FROM unnest($1::int[], $2::text[], $3::text[], $4::text[]) AS k(app_id, environment, original_transaction_id, product_id)
CROSS JOIN LATERAL (
    SELECT p.* FROM ledger.purchase p
    WHERE p.app_id = k.app_id AND p.environment = k.environment::ledger.environment
      AND p.original_transaction_id = k.original_transaction_id AND p.product_id = k.product_id OFFSET 0) p
CROSS JOIN LATERAL ledger.twins(p.purchase_id) AS w(id)
WHERE EXISTS (
    SELECT FROM ledger.delivery d WHERE d.purchase_id = w.id AND d.skip_reason = 'possible_duplicate' OFFSET 0)

-- name: insert_subscriptions
-- Settlement: inserts subscriptions seen for the first time ($1 apps, $2 environments, $3 ids).
INSERT INTO ledger.subscription (app_id, environment, original_transaction_id)
SELECT k.app_id, k.environment::ledger.environment, k.original_transaction_id
FROM unnest($1::int[], $2::text[], $3::text[]) AS k(app_id, environment, original_transaction_id)
ORDER BY k.app_id, k.environment::ledger.environment, k.original_transaction_id COLLATE "C"
ON CONFLICT DO NOTHING

-- name: lock_subscriptions
-- Locks and reads subscriptions in natural-key order: those named ($1 apps, $2 environments, $3 ids), those that
-- receipts ($4) poll, and those with row ids $5. Settlements and handovers between receipts run it.
SELECT s.subscription_id, s.app_id, s.environment::text AS environment, s.original_transaction_id, s.polled_by, s.version,
       s.as_of, s.checked_at, s.recorded_at, s.next_check_at, s.renewal, s.renewal_as_of, s.renewal_path, s.suspected,
       s.leeway_ms
FROM ledger.subscription s
WHERE s.subscription_id IN (
    SELECT named.subscription_id
    FROM unnest($1::int[], $2::text[], $3::text[]) AS k(app_id, environment, original_transaction_id)
    JOIN ledger.subscription named
        ON named.app_id = k.app_id AND named.environment = k.environment::ledger.environment
       AND named.original_transaction_id = k.original_transaction_id
    UNION
    SELECT polled.subscription_id FROM ledger.subscription polled WHERE polled.polled_by = ANY($4::bigint[])
    UNION
    SELECT unnest($5::bigint[]))
ORDER BY s.app_id, s.environment, s.original_transaction_id COLLATE "C"
FOR NO KEY UPDATE OF s

-- name: insert_purchases
-- Settlement: inserts purchases seen for the first time ($1 apps, $2 environments, $3 ids, $4 products).
INSERT INTO ledger.purchase (app_id, environment, original_transaction_id, product_id)
SELECT k.app_id, k.environment::ledger.environment, k.original_transaction_id, k.product_id
FROM unnest($1::int[], $2::text[], $3::text[], $4::text[]) AS k(app_id, environment, original_transaction_id, product_id)
ORDER BY k.app_id, k.environment::ledger.environment, k.original_transaction_id COLLATE "C", k.product_id COLLATE "C"
ON CONFLICT DO NOTHING

-- name: lock_purchases
-- Locks and reads one-time purchases in natural-key order: those named ($1 apps, $2 environments, $3 ids, $4 products),
-- those that receipts ($5) poll, and those with row ids $6. Settlements and handovers between receipts run it.
SELECT p.purchase_id, p.app_id, p.environment::text AS environment, p.original_transaction_id, p.product_id, p.version,
       p.facts, p.transaction_ids, d.kind::text AS kind, p.as_of, p.recorded_at, p.polled_by, p.next_check_at
FROM ledger.purchase p
LEFT JOIN ledger.product d USING (app_id, product_id)
WHERE p.purchase_id IN (
    SELECT named.purchase_id
    FROM unnest($1::int[], $2::text[], $3::text[], $4::text[]) AS k(app_id, environment, original_transaction_id, product_id)
    JOIN ledger.purchase named
        ON named.app_id = k.app_id AND named.environment = k.environment::ledger.environment
       AND named.original_transaction_id = k.original_transaction_id AND named.product_id = k.product_id
    UNION
    SELECT polled.purchase_id FROM ledger.purchase polled WHERE polled.polled_by = ANY($5::bigint[])
    UNION
    SELECT unnest($6::bigint[]))
ORDER BY p.app_id, p.environment, p.original_transaction_id COLLATE "C", p.product_id COLLATE "C"
FOR NO KEY UPDATE OF p

-- name: read_clock
-- Returns the database's clock. Settlements and changes of the catalog record this instant: they read it once, after
-- all their locks.
SELECT clock_timestamp() AS recorded_at

-- name: read_uploads
-- Settlement: returns the uploads of the batch's receipts ($1), oldest first, and whether a settlement has already
-- handled them.
SELECT u.receipt_id, u.customer_id, u.imported, u.settled, c.name
FROM ledger.upload u JOIN ledger.customer c USING (customer_id)
WHERE u.receipt_id = ANY($1::bigint[])
ORDER BY u.uploaded_at, u.customer_id

-- name: read_shared_uploads
-- Settlement: returns who uploaded other receipts that share contents with those that prove no owner, the oldest upload first:
-- receipts $1 hold subscriptions $2, receipts $3 hold purchases $4, which are locked. An erasure of such a customer waits, or is
-- seen.
SELECT n.receipt_id, u.customer_id, c.name, u.imported, NOT r.vouched AND r.form <> 'signed_transaction' AS is_pointer
FROM (
    SELECT k.receipt_id, l.receipt_id AS holder
    FROM unnest($1::bigint[], $2::bigint[]) AS k(receipt_id, subscription_id)
    JOIN ledger.receipt_subscription l ON l.subscription_id = k.subscription_id AND l.omitted_at IS NULL
    UNION
    SELECT k.receipt_id, l.receipt_id
    FROM unnest($3::bigint[], $4::bigint[]) AS k(receipt_id, purchase_id)
    JOIN ledger.receipt_purchase l ON l.purchase_id = k.purchase_id) n
JOIN ledger.receipt r ON r.receipt_id = n.holder
JOIN ledger.upload u ON u.receipt_id = n.holder
JOIN ledger.customer c USING (customer_id)
WHERE n.holder <> n.receipt_id
ORDER BY u.uploaded_at, u.customer_id
FOR KEY SHARE OF u

-- name: read_periods
-- Settlement: returns the periods of subscriptions ($1) with their transaction ids.
SELECT p.period_id, p.subscription_id, p.web_order_line_item_id, p.product_id, p.quantity, p.purchased_at, p.expires_at,
       p.original_purchased_at, p.cancelled_at, p.cancellation_reason, p.is_upgraded, p.is_trial, p.is_intro,
       p.promotional_offer_id, p.offer_code_ref_name, p.group_id, p.ownership, p.app_account_token, p.replaced_by,
       p.price_milliunits, p.price_currency, p.revocation_percentage, p.sale, p.ending, p.as_of, p.path, p.older_facts,
       ARRAY(SELECT a.transaction_id FROM ledger.transaction_alias a WHERE a.period_id = p.period_id) AS transaction_ids
FROM ledger.period p
WHERE p.subscription_id = ANY($1::bigint[])
ORDER BY p.subscription_id, p.period_id

-- name: read_spans
-- Settlement: returns the open timeline of subscriptions ($1), in order.
SELECT p.subscription_id, lower(p.valid) AS valid_from,
       CASE WHEN upper_inf(p.valid) THEN NULL ELSE upper(p.valid) END AS valid_to,
       lower(p.known) AS known_from, p.state::text AS state, p.reason::text AS reason, p.entitled, p.product_id, p.flags,
       p.allowed_until
FROM ledger.subscription_span p
WHERE p.subscription_id = ANY($1::bigint[]) AND upper_inf(p.known)
ORDER BY p.subscription_id, lower(p.valid)

-- name: read_owners
-- Settlement: returns the present owners of subscriptions ($1) and purchases ($2) with the cause, and the transfers of the
-- last 30 days that count: neither manual nor from one who only pointed at it.
SELECT o.ownership_id, o.subscription_id, o.purchase_id, o.customer_id, c.name, o.cause,
       (SELECT count(*) FROM ledger.event e
        WHERE (e.subscription_id = o.subscription_id OR e.purchase_id = o.purchase_id)
          AND e.kind = 'ownership.transferred' AND e.recorded_at > now() - interval '30 days'
          AND NOT (e.detail ?| ARRAY['by_hand', 'from_pointer'])) AS transfers
FROM ledger.ownership o
JOIN ledger.customer c USING (customer_id)
WHERE (o.subscription_id = ANY($1::bigint[]) OR o.purchase_id = ANY($2::bigint[]))
  AND upper_inf(o.known) AND upper_inf(o.valid)
ORDER BY o.ownership_id
FOR NO KEY UPDATE OF o

-- name: find_ended_allowances
-- Returns subscriptions whose outage allowance has run out, at most $1.
SELECT DISTINCT p.subscription_id
FROM (
    SELECT o.subscription_id FROM ledger.subscription_span o
    WHERE upper_inf(o.known) AND o.allowed_until <= now()
    ORDER BY o.allowed_until LIMIT $1::int) p

-- name: lock_ended_allowances
-- Locks and reads those of subscriptions ($1) that no other transaction is changing, in natural-key order; their
-- timelines are read after the lock.
SELECT s.subscription_id, s.app_id, s.environment::text AS environment, s.original_transaction_id, s.polled_by, s.version,
       s.as_of, s.checked_at, s.recorded_at, s.next_check_at, s.renewal, s.renewal_as_of, s.renewal_path, s.suspected,
       s.leeway_ms
FROM ledger.subscription s
WHERE s.subscription_id = ANY($1::bigint[])
ORDER BY s.app_id, s.environment, s.original_transaction_id COLLATE "C"
FOR NO KEY UPDATE OF s SKIP LOCKED
