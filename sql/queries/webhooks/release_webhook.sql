-- Worker: gives webhook $1 up under fence $2, so that another worker may lease it at once.
UPDATE ledger.webhook w SET lease_until = '-infinity' WHERE w.webhook_id = $1::int AND w.fence = $2::bigint
