-- Verification: events, and what they must say of subscriptions and purchases.

-- name: verify_events
-- Verify: returns events after $1 up to $2 that neither have a place in the feed nor wait for one, whose subscription
-- or purchase has not reached their version, or before which an event of their version is missing.
SELECT e.event_id AS key, a.bundle_id, e.environment::text AS environment,
       COALESCE(s.original_transaction_id, p.original_transaction_id) AS original_transaction_id, p.product_id,
       NULL::bigint AS receipt_id, format('event %s.%s (%s) %s', e.version, e.ordinal, e.kind, trouble.detail) AS detail
FROM ledger.event e
JOIN ledger.app a USING (app_id)
LEFT JOIN ledger.subscription s USING (subscription_id)
LEFT JOIN ledger.purchase p USING (purchase_id)
CROSS JOIN LATERAL (
    SELECT CASE
        WHEN e.version > COALESCE(s.version, p.version) THEN format('is of a later version than %s, the newest',
                                                                    COALESCE(s.version, p.version))
        WHEN e.version < 1 OR e.ordinal < 0 THEN 'is of no version'
        WHEN e.ordinal > 0
         AND NOT EXISTS (
            SELECT FROM ledger.event b
            WHERE b.subscription_id = e.subscription_id AND b.version = e.version AND b.ordinal = e.ordinal - 1)
         AND NOT EXISTS (
            SELECT FROM ledger.event b
            WHERE b.purchase_id = e.purchase_id AND b.version = e.version AND b.ordinal = e.ordinal - 1)
            THEN 'follows an event that is missing'
        WHEN NOT EXISTS (SELECT FROM ledger.event_feed f WHERE f.event_id = e.event_id)
         AND NOT EXISTS (SELECT FROM ledger.event_outbox o WHERE o.event_id = e.event_id)
            THEN 'has no place in the feed and does not wait for one'
        END AS detail) trouble
WHERE e.event_id > $1::bigint AND e.event_id <= $2::bigint AND trouble.detail IS NOT NULL
ORDER BY e.event_id

-- name: verify_moved_refunds
-- Verify: returns subscriptions after $1 up to $2 to which a period moved that was refunded, if no event reports the refund
-- although the subscription that the period came from was known before.
SELECT s.subscription_id AS key, a.bundle_id, s.environment::text AS environment, s.original_transaction_id,
       NULL AS product_id, NULL::bigint AS receipt_id,
       format('the refund of the period %s, which came from %s, has no event', t.web_order_line_item_id,
              f.original_transaction_id) AS detail
FROM ledger.subscription s
JOIN ledger.app a USING (app_id)
JOIN ledger.period t ON t.subscription_id = s.subscription_id
CROSS JOIN LATERAL (
    SELECT h.subscription_id, h.original_transaction_id
    FROM ledger.period p JOIN ledger.subscription h USING (subscription_id)
    WHERE p.web_order_line_item_id = t.web_order_line_item_id AND p.is_upgraded
      AND p.cancellation_reason = 'moved to ' || s.original_transaction_id
      AND h.app_id = s.app_id AND h.environment = s.environment OFFSET 0) f
WHERE s.subscription_id > $1::bigint AND s.subscription_id <= $2::bigint
  AND t.web_order_line_item_id IS NOT NULL AND t.cancelled_at IS NOT NULL AND NOT t.is_upgraded
  AND t.cancelled_at > (SELECT min(e.as_of) FROM ledger.event e WHERE e.subscription_id = f.subscription_id)
  AND NOT EXISTS (
    SELECT FROM ledger.period p JOIN ledger.event e USING (subscription_id)
    WHERE p.web_order_line_item_id = t.web_order_line_item_id AND e.kind::text = 'refund.granted'
      AND e.detail ->> 'web_order_line_item_id' = t.web_order_line_item_id)
ORDER BY s.subscription_id

-- name: verify_missing_events
-- Verify: returns subscriptions after $1 up to $2 of whose present state no event tells: it began after the newest event of
-- a beginning or an end, which tells another one; those with a period that was not known at first and that no event names; and
-- those of whose renewal being on or off the newest event tells otherwise.
SELECT s.subscription_id AS key, a.bundle_id, s.environment::text AS environment, s.original_transaction_id,
       NULL AS product_id, NULL::bigint AS receipt_id, trouble.detail
FROM ledger.subscription s
JOIN ledger.app a USING (app_id)
LEFT JOIN ledger.poll_schedule poller ON poller.receipt_id = s.polled_by
LEFT JOIN LATERAL (
    SELECT p.state::text AS state, lower(p.valid) AS since FROM ledger.subscription_span p
    WHERE p.subscription_id = s.subscription_id AND upper_inf(p.known) AND p.valid @> ledger.as_of(s, poller)) span ON true
LEFT JOIN LATERAL (
    SELECT e.kind::text AS kind, e.as_of FROM ledger.event e
    WHERE e.subscription_id = s.subscription_id
      AND e.kind::text NOT LIKE 'auto_renew.%' AND e.kind::text NOT LIKE 'ownership.%'
      AND e.kind::text NOT LIKE 'price_increase.%' AND e.kind::text NOT LIKE 'product.change\_%'
    ORDER BY e.version DESC, e.ordinal DESC LIMIT 1) newest ON true
LEFT JOIN LATERAL (
    SELECT e.kind::text AS kind FROM ledger.event e
    WHERE e.subscription_id = s.subscription_id
      AND e.kind::text NOT LIKE 'ownership.%' AND e.kind::text NOT LIKE 'price_increase.%'
      AND e.kind::text NOT LIKE 'product.change\_%'
    ORDER BY e.version DESC, e.ordinal DESC LIMIT 1) turned ON true
LEFT JOIN LATERAL (
    SELECT t.purchased_at FROM ledger.period t
    WHERE t.subscription_id = s.subscription_id
      AND t.recorded_at > (
        SELECT e.recorded_at FROM ledger.event e WHERE e.subscription_id = s.subscription_id
        ORDER BY e.version, e.ordinal LIMIT 1)
      -- Seats that are added to a period are no event.
      AND t.sale ->> 'one_of_several' IS NULL
      AND NOT EXISTS (
        SELECT FROM ledger.event e
        WHERE e.subscription_id = s.subscription_id AND (
            e.detail ->> 'web_order_line_item_id' = t.web_order_line_item_id OR e.detail ->> 'transaction_id' IN (
                SELECT x.transaction_id FROM ledger.transaction_alias x WHERE x.period_id = t.period_id)))
    ORDER BY t.purchased_at LIMIT 1) untold ON true
CROSS JOIN LATERAL (
    SELECT CASE
        WHEN newest.kind IS NULL THEN 'no event tells of it'
        WHEN newest.as_of < span.since AND (
            span.state IN ('expired', 'grace_period', 'billing_retry') AND newest.kind IN (
                'subscription.started', 'trial.started', 'trial.converted', 'subscription.renewed', 'subscription.recovered',
                'subscription.reactivated')
            OR span.state = 'active' AND newest.kind IN (
                'subscription.expired', 'trial.expired', 'billing.grace_entered', 'billing.retry_entered',
                'billing.grace_expired'))
            THEN format('it is %s since %s UTC, and the newest event, %s, is older', span.state,
                        date_trunc('second', span.since AT TIME ZONE 'UTC'), newest.kind)
        WHEN untold.purchased_at IS NOT NULL
            THEN format('no event tells of its period that was bought at %s UTC',
                        date_trunc('second', untold.purchased_at AT TIME ZONE 'UTC'))
        WHEN turned.kind = CASE s.will_renew WHEN true THEN 'auto_renew.disabled' WHEN false THEN 'auto_renew.enabled' END
            THEN format('its renewal is %s, and the newest event is %s', CASE WHEN s.will_renew THEN 'on' ELSE 'off' END,
                        turned.kind)
        END AS detail) trouble
WHERE s.subscription_id > $1::bigint AND s.subscription_id <= $2::bigint AND s.version > 0 AND trouble.detail IS NOT NULL
  -- What moved here has its event where it was before.
  AND NOT EXISTS (
    SELECT FROM ledger.period t CROSS JOIN ledger.moved_periods(t) p WHERE t.subscription_id = s.subscription_id)
ORDER BY s.subscription_id

-- name: verify_missing_purchase_events
-- Verify: returns one-time purchases after $1 up to $2 without an event, or whose refund the newest event states
-- otherwise.
SELECT p.purchase_id AS key, a.bundle_id, p.environment::text AS environment, p.original_transaction_id, p.product_id,
       NULL::bigint AS receipt_id,
       CASE WHEN newest.kind IS NULL THEN 'no event tells of it'
            ELSE format('it is %s, and the newest event is %s',
                        CASE WHEN p.revoked_at IS NULL THEN 'not refunded' ELSE 'refunded' END, newest.kind) END AS detail
FROM ledger.purchase p
JOIN ledger.app a USING (app_id)
LEFT JOIN LATERAL (
    SELECT e.kind::text AS kind FROM ledger.event e
    WHERE e.purchase_id = p.purchase_id
      AND e.kind::text IN ('purchase.made', 'purchase.refunded', 'family.revoked', 'refund.reversed')
    ORDER BY e.version DESC, e.ordinal DESC LIMIT 1) newest ON true
WHERE p.purchase_id > $1::bigint AND p.purchase_id <= $2::bigint AND p.version > 0
  AND (newest.kind IN ('purchase.refunded', 'family.revoked')) IS DISTINCT FROM (p.revoked_at IS NOT NULL)
ORDER BY p.purchase_id
