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
