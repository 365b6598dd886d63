-- Deliveries: acknowledges by $3 those due deliveries ($2) of the app named $1 from which nothing follows, and returns these.
SELECT delivery_ids, acknowledged_at FROM ledger.acknowledge_unchanged($1::text, $2::bigint[], $3::text)
