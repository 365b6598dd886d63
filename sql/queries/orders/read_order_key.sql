-- Orders: returns the sealed key of order $1, unless it ended more than 90 days ago or its customer was erased.
SELECT o.sealed_key FROM ledger.purchase_order o
WHERE o.order_id = $1::text::uuid AND o.sealed_key IS NOT NULL
  AND (o.state IN ('created', 'purchasing', 'deferred') OR o.changed_at > now() - interval '90 days')
