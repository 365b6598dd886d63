-- Orders: makes those of $1 delivered that are open, and whose customer owns the ordered non-consumable by more
-- than a pointer, at $2.
UPDATE ledger.purchase_order o SET state = 'delivered', cause = 'already_owned',
    changed_at = GREATEST($2::timestamptz, o.changed_at + interval '1 microsecond')
FROM ledger.product d, ledger.customer c
WHERE o.order_id = ANY($1::text[]::uuid[]) AND o.state IN ('created', 'purchasing', 'deferred')
  AND d.app_id = o.app_id AND d.product_id = o.product_id AND d.kind = 'non_consumable'
  AND c.customer_id = o.customer_id AND EXISTS (
    SELECT FROM ledger.ownership w
    CROSS JOIN LATERAL (SELECT p.* FROM ledger.purchase p WHERE p.purchase_id = w.purchase_id OFFSET 0) p
    WHERE w.customer_id = COALESCE(c.merged_into, c.customer_id) AND upper_inf(w.known) AND upper_inf(w.valid)
      AND w.cause IS DISTINCT FROM 'pointer' AND p.product_id = o.product_id AND p.version > 0 AND p.revoked_at IS NULL)
