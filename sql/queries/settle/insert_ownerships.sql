-- Settlement: inserts new owners ($1 subscriptions or $2 purchases, $3 customers) from $4 (null: from the end of the
-- previous ownership) as recorded at $5, with the cause ($6).
INSERT INTO ledger.ownership (subscription_id, purchase_id, customer_id, valid, known, cause)
SELECT n.subscription_id, n.purchase_id, n.customer_id, tstzrange(COALESCE(n.valid_from, former.ended_at), NULL),
       tstzrange(n.recorded_at, NULL), n.cause
FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::timestamptz[], $5::timestamptz[], $6::text[])
    AS n(subscription_id, purchase_id, customer_id, valid_from, recorded_at, cause)
LEFT JOIN LATERAL (
    SELECT max(upper(o.valid)) AS ended_at FROM ledger.ownership o
    WHERE n.valid_from IS NULL AND upper_inf(o.known)
      AND (o.subscription_id = n.subscription_id OR o.purchase_id = n.purchase_id)) former ON true
