-- Records that Apple refused the shared secret of app $1 in environment $2 in a call that began at $3, about receipts $4. An
-- earlier refusal that was not followed by a trial stays. Nothing is written or locked where these receipts are known, or
-- $5 others.
INSERT INTO ledger.secret_trial AS t (app_id, environment, refused_at, refused_receipts)
SELECT $1::int, $2::text::ledger.environment, $3::timestamptz, $4::bigint[]
WHERE NOT EXISTS (
    SELECT FROM ledger.secret_trial k
    WHERE k.app_id = $1::int AND k.environment = $2::text::ledger.environment AND k.refused_at IS NOT NULL
      AND (k.refused_receipts @> $4::bigint[] OR cardinality(k.refused_receipts) >= $5::int))
ON CONFLICT (app_id, environment) DO UPDATE
SET refused_at = COALESCE(t.refused_at, EXCLUDED.refused_at),
    refused_receipts = ARRAY(
        SELECT n.id FROM unnest(t.refused_receipts || EXCLUDED.refused_receipts) AS n(id)
        GROUP BY n.id ORDER BY n.id LIMIT $5::int)
