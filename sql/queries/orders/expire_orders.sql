-- Orders: expires open orders whose time is over, at most $1.
UPDATE ledger.purchase_order o SET state = 'expired', cause = 'not_paid', changed_at = clock_timestamp()
WHERE o.order_id IN (
    SELECT e.order_id FROM ledger.purchase_order e
    WHERE e.state IN ('created', 'purchasing', 'deferred') AND e.expires_at <= now()
    ORDER BY e.expires_at LIMIT $1::int FOR NO KEY UPDATE SKIP LOCKED)
RETURNING o.order_id
