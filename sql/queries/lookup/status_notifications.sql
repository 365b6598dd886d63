-- Counts the verified notifications that wait for a whole answer before they are applied.
SELECT count(*) AS waiting FROM ledger.notification n WHERE n.apply_at IS NOT NULL AND n.effect = 'awaits_whole'
