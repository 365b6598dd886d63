-- Settlement: appends events and queues them for the feed; an event that already exists stays unchanged. $1 to $14 are
-- the columns named below.
WITH new AS (
    INSERT INTO ledger.event
        (public_id, app_id, environment, subscription_id, purchase_id, version, ordinal, kind, customer_id, product_id,
         occurred_at, as_of, recorded_at, detail)
    SELECT n.public_id, n.app_id, n.environment::ledger.environment, n.subscription_id, n.purchase_id, n.version, n.ordinal,
           n.kind::ledger.event_kind, n.customer_id, n.product_id, n.occurred_at, n.as_of, n.recorded_at, n.detail
    FROM unnest($1::uuid[], $2::int[], $3::text[], $4::bigint[], $5::bigint[], $6::bigint[], $7::smallint[], $8::text[],
                $9::bigint[], $10::text[], $11::timestamptz[], $12::timestamptz[], $13::timestamptz[], $14::jsonb[])
        AS n(public_id, app_id, environment, subscription_id, purchase_id, version, ordinal, kind, customer_id, product_id,
             occurred_at, as_of, recorded_at, detail)
    ORDER BY n.subscription_id, n.purchase_id, n.version, n.ordinal
    ON CONFLICT DO NOTHING
    RETURNING event_id
)
INSERT INTO ledger.event_outbox (event_id) SELECT event_id FROM new
