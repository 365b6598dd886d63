-- Upload: returns the result of the last check of receipt $1, the settlement that wrote it, and whether it covered the
-- latest upload of customer $2, for order $3; either may be null.
SELECT r.outcome::text AS outcome, r.reason, r.settled_token, r.form::text AS form, r.vouched,
       CASE WHEN s.leased_by IS NULL THEN s.due_at ELSE s.scheduled_for END AS next_check_at,
       ($2::text IS NULL OR EXISTS (
            SELECT FROM ledger.upload u JOIN ledger.customer c USING (customer_id)
            WHERE u.receipt_id = r.receipt_id AND c.name = $2::text AND u.settled))
       AND ($3::text IS NULL OR EXISTS (
            SELECT FROM ledger.order_receipt x
            WHERE x.receipt_id = r.receipt_id AND x.order_id = $3::text::uuid AND x.settled)) AS claims_are_resolved
FROM ledger.receipt r LEFT JOIN ledger.poll_schedule s USING (receipt_id)
WHERE r.receipt_id = $1::bigint
