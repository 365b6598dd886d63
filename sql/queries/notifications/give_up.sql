-- What receipts ($2) of app $1 were asked about, and no other receipt polls, is known by notification only again.
UPDATE ledger.notification n SET effect = 'unpolled'
WHERE n.app_id = $1::int AND n.effect IN ('asked', 'planned')
  AND NOT EXISTS (
      SELECT FROM ledger.subscription s
      WHERE s.app_id = n.app_id AND s.environment = n.environment AND s.original_transaction_id = n.original_transaction_id
        AND s.polled_by <> ALL($2::bigint[]))
  AND NOT EXISTS (
      SELECT FROM ledger.purchase p
      WHERE p.app_id = n.app_id AND p.environment = n.environment AND p.original_transaction_id = n.original_transaction_id
        AND p.polled_by <> ALL($2::bigint[]))
