-- List: returns the receipts of app $1, of customer $2 alone if given, before the receipt $3, newest first, at most $4.
WITH page AS MATERIALIZED (
    (SELECT r.receipt_id FROM ledger.receipt r
     WHERE $2::text IS NULL AND r.app_id = (SELECT app_id FROM ledger.app WHERE bundle_id = $1::text)
       AND r.receipt_id < $3::bigint
     ORDER BY r.receipt_id DESC LIMIT $4::int)
    UNION ALL
    (SELECT u.receipt_id FROM ledger.upload u
     WHERE u.receipt_id < $3::bigint AND u.customer_id = (
         SELECT COALESCE(c.merged_into, c.customer_id) FROM ledger.customer c
         WHERE c.app_id = (SELECT app_id FROM ledger.app WHERE bundle_id = $1::text) AND c.name = $2::text)
     ORDER BY u.receipt_id DESC LIMIT $4::int)
)
SELECT r.receipt_id, a.bundle_id, r.form::text AS form, r.vouched,
       r.environment::text AS environment, r.outcome::text AS outcome, r.reason, r.received_at,
       GREATEST(r.asked_at, s.confirmed_at) AS asked_at, GREATEST(r.verified_at, s.confirmed_at) AS verified_at,
       GREATEST(s.due_at, s.scheduled_for) AS due_at,
       ARRAY(SELECT c.name FROM ledger.upload u JOIN ledger.customer c USING (customer_id)
             WHERE u.receipt_id = r.receipt_id ORDER BY c.name COLLATE "C") AS customers,
       ARRAY(SELECT b.original_transaction_id
             FROM ledger.receipt_subscription l JOIN ledger.subscription b USING (subscription_id)
             WHERE l.receipt_id = r.receipt_id ORDER BY b.original_transaction_id COLLATE "C") AS subscriptions
FROM page p
JOIN ledger.receipt r USING (receipt_id)
JOIN ledger.app a USING (app_id)
LEFT JOIN ledger.poll_schedule s USING (receipt_id)
ORDER BY r.receipt_id DESC
