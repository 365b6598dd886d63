-- Ends the open differences of what was compared (apps $1, environments $2, original transactions $3), except those
-- that are seen again: apps $4, environments $5, original transactions $6, transactions $7, facts $8.
WITH seen AS MATERIALIZED (
    SELECT * FROM unnest($4::int[], $5::text[], $6::text[], $7::text[], $8::text[])
        AS s (app_id, environment, original_transaction_id, transaction_id, fact)
), over AS MATERIALIZED (
    SELECT d.difference_id
    FROM (SELECT DISTINCT k.app_id, k.environment::ledger.environment AS environment, k.original_transaction_id
          FROM unnest($1::int[], $2::text[], $3::text[]) AS k (app_id, environment, original_transaction_id)) k
    JOIN ledger.channel_difference d USING (app_id, environment, original_transaction_id)
    WHERE d.agreed_at IS NULL
      AND NOT EXISTS (
          SELECT FROM seen s
          WHERE s.app_id = d.app_id AND s.environment = d.environment::text
            AND s.original_transaction_id = d.original_transaction_id AND s.transaction_id = d.transaction_id
            AND s.fact = d.fact)
    ORDER BY d.difference_id
    FOR UPDATE OF d
)
UPDATE ledger.channel_difference d SET agreed_at = now()
FROM over WHERE d.difference_id = over.difference_id
