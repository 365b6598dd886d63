-- Begins a walk through the receipts of app $1 where both channels are asked: when they began to be, and again $2 seconds
-- after a walk began that is over.
INSERT INTO ledger.channel_walk AS w (app_id, begun_at)
SELECT a.app_id, now() FROM ledger.app a WHERE a.app_id = $1::int AND a.verifier = 'both'
ON CONFLICT (app_id) DO UPDATE SET begun_at = now(), receipt_id = 0
WHERE w.begun_at < (SELECT a.compares_since FROM ledger.app a WHERE a.app_id = w.app_id)
   OR (w.receipt_id IS NULL AND w.begun_at < now() - make_interval(secs => $2::float8))
