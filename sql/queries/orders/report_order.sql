-- Orders: makes order $1 what its device reports ($2), with a code ($3), unless it is paid or expired, was
-- cancelled by other than the device, or its customer was erased; a deferred one waits $4 ms from now. Returns the state.
WITH code AS MATERIALIZED (
    SELECT set_config('perennial.order_code', COALESCE($3::text, ''), true) AS code
), changed AS (
    UPDATE ledger.purchase_order o
    SET state = $2::text::ledger.order_state, cause = 'device', changed_at = clock_timestamp(),
        expires_at = CASE WHEN $2::text = 'deferred'
                          THEN GREATEST(o.expires_at, clock_timestamp() + $4::bigint * interval '1 ms')
                          ELSE o.expires_at END
    FROM code
    WHERE o.order_id = $1::text::uuid AND o.state::text <> $2::text
      AND o.state IN ('created', 'purchasing', 'deferred', 'cancelled', 'failed') AND o.sealed_key IS NOT NULL
      AND (o.state <> 'cancelled' OR o.cause = 'device')
    RETURNING o.state
)
SELECT COALESCE((SELECT n.state FROM changed n), o.state)::text AS state
FROM ledger.purchase_order o WHERE o.order_id = $1::text::uuid
