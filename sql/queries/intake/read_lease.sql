-- Upload: returns the seconds until receipt $1 may be taken from the process that leased it; no row where none did, or where
-- that one shows signs of life.
SELECT CEIL(GREATEST(1, EXTRACT(epoch FROM
           LEAST(s.due_at, CASE WHEN s.crashes = 0 THEN ledger.gone_at(w) END) - now())))::bigint AS seconds
FROM ledger.poll_schedule s LEFT JOIN ledger.worker w ON w.worker_id = s.leased_by
WHERE s.receipt_id = $1::bigint AND s.leased_by IS NOT NULL AND s.due_at > now()
  AND COALESCE(ledger.gone_at(w) <= now() + interval '10 seconds', true)
