-- Settlement: ends ownerships ($1) at the recorded instants ($2): closes the open row and inserts it again with its
-- end.
WITH ended AS (
    UPDATE ledger.ownership o SET known = tstzrange(lower(o.known), n.recorded_at)
    FROM unnest($1::bigint[], $2::timestamptz[]) AS n(ownership_id, recorded_at)
    WHERE o.ownership_id = n.ownership_id
    RETURNING o.subscription_id, o.purchase_id, o.customer_id, o.valid, o.cause, n.recorded_at
)
INSERT INTO ledger.ownership (subscription_id, purchase_id, customer_id, valid, known, cause)
SELECT subscription_id, purchase_id, customer_id, tstzrange(lower(valid), recorded_at), tstzrange(recorded_at, NULL), cause
FROM ended WHERE lower_inf(valid) OR lower(valid) < recorded_at
