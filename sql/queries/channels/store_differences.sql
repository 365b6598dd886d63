-- Stores differences: apps $1, environments $2, original transactions $3, transactions $4, facts $5, what
-- verifyReceipt states $6, what the Server API states $7, explanations $8. For $9 seconds a difference may be a delay.
INSERT INTO ledger.channel_difference AS d (
    app_id, environment, original_transaction_id, transaction_id, fact, verify_receipt, server_api, explanation,
    first_seen_at, last_seen_at, waits_until)
SELECT app_id, environment::ledger.environment, id, transaction_id, fact, verify_receipt, server_api, explanation,
       now(), now(), now() + make_interval(secs => $9::float8)
FROM (SELECT DISTINCT ON (app_id, environment, id, transaction_id, fact) *
      FROM unnest($1::int[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[])
           AS n (app_id, environment, id, transaction_id, fact, verify_receipt, server_api, explanation)
      ORDER BY app_id, environment, id, transaction_id, fact) n
ON CONFLICT (app_id, environment, original_transaction_id, transaction_id, fact) WHERE agreed_at IS NULL DO UPDATE
SET verify_receipt = EXCLUDED.verify_receipt, server_api = EXCLUDED.server_api, explanation = EXCLUDED.explanation,
    last_seen_at = EXCLUDED.last_seen_at
