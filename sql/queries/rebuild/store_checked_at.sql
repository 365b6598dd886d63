-- Rebuild: restores the times ($2) of the last verified answers of purchases ($1), which were corrected, not checked.
UPDATE ledger.purchase p SET checked_at = n.checked_at
FROM unnest($1::bigint[], $2::timestamptz[]) AS n(purchase_id, checked_at) WHERE p.purchase_id = n.purchase_id
