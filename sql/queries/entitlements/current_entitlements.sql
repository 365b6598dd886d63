-- Lookup: returns what is stored of the present entitlements of customer $2 of app $1, and the clocks of their sources:
-- a row per source, at least one. No row: nothing current is stored. now is the instant of the lookup. PostgreSQL keeps
-- the plan, because the parameters are no arrays.
SELECT 1::bigint AS place, GREATEST(now(), v.computed_at) AS now, v.spans, k.subscription_id, k.purchase_id, k.as_of,
       k.checked_at
FROM ledger.app a
JOIN ledger.customer c ON c.app_id = a.app_id AND c.name = $2::text
JOIN ledger.current_entitlements v
    ON v.customer_id = COALESCE(c.merged_into, c.customer_id) AND v.catalog_changed_at = a.catalog_changed_at
   AND v.computed_at <= now() + interval '1 hour'
LEFT JOIN LATERAL (
    SELECT s.subscription_id, NULL::bigint AS purchase_id, ledger.as_of(s, poller) AS as_of,
           ledger.checked_at(s, poller) AS checked_at
    FROM ledger.subscription s LEFT JOIN ledger.poll_schedule poller ON poller.receipt_id = s.polled_by
    WHERE s.subscription_id = ANY(v.subscriptions)
    UNION ALL
    SELECT NULL, p.purchase_id, ledger.as_of(p, poller), ledger.checked_at(p, poller)
    FROM ledger.purchase p LEFT JOIN ledger.poll_schedule poller ON poller.receipt_id = p.polled_by
    WHERE p.purchase_id = ANY(v.purchases)) k
    ON true
WHERE a.bundle_id = $1::text
