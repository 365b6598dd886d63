-- Doctor: returns every sealed secret of apps, and the newest one of orders, with what it is. A previous shared secret
-- that does not open counts as none.
SELECT s.kind, a.bundle_id, s.order_id, s.sealed
FROM ledger.app a
CROSS JOIN LATERAL (
    SELECT 'shared' AS kind, NULL::text AS order_id, a.sealed_secret AS sealed
    UNION ALL
    SELECT 'server_key', NULL, k.sealed_key FROM ledger.server_key k WHERE k.app_id = a.app_id
    UNION ALL
    SELECT 'offer_key', NULL, k.sealed_key FROM ledger.offer_key k WHERE k.app_id = a.app_id
    UNION ALL
    (SELECT 'order', o.order_id::text, o.sealed_key FROM ledger.purchase_order o
     WHERE o.app_id = a.app_id AND o.sealed_key IS NOT NULL
     ORDER BY o.created_at DESC LIMIT 1)) s
WHERE a.removed_at IS NULL AND s.sealed IS NOT NULL
ORDER BY a.bundle_id, s.kind
