-- Lookup: current_entitlements for customers ($2) of apps ($1) in one statement; place is the customer's number, from 1.
SELECT n.place, GREATEST(now(), v.computed_at) AS now, v.spans, k.subscription_id, k.purchase_id, k.as_of,
       k.checked_at
FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS n(bundle_id, name, place)
JOIN ledger.app a USING (bundle_id)
JOIN LATERAL (
    SELECT COALESCE(c.merged_into, c.customer_id) AS customer_id
    FROM ledger.customer c WHERE c.app_id = a.app_id AND c.name = n.name OFFSET 0) c ON true
JOIN LATERAL (
    SELECT v.* FROM ledger.current_entitlements v
    WHERE v.customer_id = c.customer_id AND v.catalog_changed_at = a.catalog_changed_at
      AND v.computed_at <= now() + interval '1 hour' OFFSET 0) v ON true
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
