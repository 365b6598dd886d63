-- Sets the sealed secrets of webhook $1: present $2 and previous $3.
UPDATE ledger.webhook w SET sealed_secret = $2::bytea, sealed_previous_secret = $3::bytea WHERE w.webhook_id = $1::int
