-- Deliveries: makes due deliveries ($2) of app $1 acknowledged by $3, or skipped if there is a reason ($4), and stores what
-- follows. Returns all that exist of $2 with their state; is_first marks those that changed.
SELECT delivery_id, state, settled_at, settled_by, is_first
FROM ledger.settle_deliveries($1::int, $2::bigint[], $3::text, $4::text)
