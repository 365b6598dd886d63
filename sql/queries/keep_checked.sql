-- Rebuild: purchases ($1) were corrected, not checked: their last verified answers came when they came ($2).
UPDATE ledger.purchase p SET checked_at = n.checked_at
FROM unnest($1::bigint[], $2::timestamptz[]) AS n(purchase_id, checked_at) WHERE p.purchase_id = n.purchase_id
