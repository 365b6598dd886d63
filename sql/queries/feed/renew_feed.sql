-- Feed: gives it a new id by manual request, if $1 is its present id or null.
UPDATE ledger.feed f SET feed_id = gen_random_uuid(), former_id = f.feed_id, renewed_at = clock_timestamp()
WHERE $1::text IS NULL OR f.feed_id::text = lower($1::text)
RETURNING f.former_id, f.feed_id
