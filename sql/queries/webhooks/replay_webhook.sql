-- Sets webhook $1 back to position $2; what waits behind it goes, because it is read again.
WITH back AS (
    UPDATE ledger.webhook w SET position = $2::bigint WHERE w.webhook_id = $1::int RETURNING w.webhook_id, w.position)
DELETE FROM ledger.webhook_line l USING back b WHERE l.webhook_id = b.webhook_id AND l.position > b.position
