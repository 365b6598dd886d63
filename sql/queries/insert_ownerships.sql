-- Settlement: new owners ($1 subscriptions or $2 purchases, $3 customers) from $4 (null: always) as recorded at $5.
INSERT INTO ledger.ownership (subscription_id, purchase_id, customer_id, valid, known)
SELECT n.subscription_id, n.purchase_id, n.customer_id, tstzrange(n.valid_from, NULL), tstzrange(n.recorded_at, NULL)
FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::timestamptz[], $5::timestamptz[])
    AS n(subscription_id, purchase_id, customer_id, valid_from, recorded_at)
