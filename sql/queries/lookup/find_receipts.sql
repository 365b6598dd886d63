-- Returns receipts of app $1 and customer $2 (nulls: all) or with id $3, newest first, at most $4.
SELECT r.receipt_id, a.bundle_id, r.form::text AS form, r.vouched,
       r.environment::text AS environment, r.outcome::text AS outcome, r.reason, r.received_at,
       GREATEST(r.asked_at, s.confirmed_at) AS asked_at,
       GREATEST(r.verified_at, s.confirmed_at) AS verified_at, GREATEST(s.due_at, s.scheduled_for) AS due_at,
       s.lane::text AS lane, s.attempts, s.leased_by IS NOT NULL AS leased,
       ARRAY(SELECT c.name FROM ledger.upload u JOIN ledger.customer c USING (customer_id)
             WHERE u.receipt_id = r.receipt_id ORDER BY c.name COLLATE "C") AS customers,
       ARRAY(SELECT b.original_transaction_id
             FROM ledger.receipt_subscription l JOIN ledger.subscription b USING (subscription_id)
             WHERE l.receipt_id = r.receipt_id ORDER BY b.original_transaction_id COLLATE "C") AS subscriptions
FROM ledger.receipt r
JOIN ledger.app a USING (app_id)
LEFT JOIN ledger.poll_schedule s USING (receipt_id)
WHERE ($1::text IS NULL OR a.bundle_id = $1::text)
  AND ($2::text IS NULL OR EXISTS (
        SELECT FROM ledger.upload u JOIN ledger.customer c USING (customer_id)
        WHERE u.receipt_id = r.receipt_id AND c.name = $2::text))
  AND ($3::bigint IS NULL OR r.receipt_id = $3::bigint)
ORDER BY r.receipt_id DESC LIMIT $4::int
