-- Counts claims that are not read, of app $1: names $2, whether known and unreadable $3, in how many texts $4, an example
-- $5 and the subscription or purchase that it is about $6. Of an app $7 names are kept, the first ones.
WITH seen AS MATERIALIZED (
    SELECT s.*, row_number() OVER (PARTITION BY u.name IS NULL ORDER BY s.name) AS place, u.name IS NOT NULL AS is_known
    FROM unnest($2::text[], $3::boolean[], $4::bigint[], $5::text[], $6::text[])
        AS s(name, is_unreadable, texts, example, original_transaction_id)
    LEFT JOIN ledger.unread_claim u ON u.app_id = $1::int AND u.name = s.name
), room AS MATERIALIZED (
    SELECT $7::int - count(*) AS names FROM ledger.unread_claim u WHERE u.app_id = $1::int
)
INSERT INTO ledger.unread_claim AS u (app_id, name, is_unreadable, texts, example, original_transaction_id)
SELECT $1::int, s.name, s.is_unreadable, s.texts, s.example, s.original_transaction_id
FROM seen s, room WHERE s.is_known OR s.place <= room.names
ORDER BY s.name
ON CONFLICT (app_id, name) DO UPDATE SET
    texts = u.texts + EXCLUDED.texts, last_seen_at = now(), is_unreadable = EXCLUDED.is_unreadable,
    example = COALESCE(u.example, EXCLUDED.example),
    original_transaction_id =
        CASE WHEN u.example IS NULL THEN EXCLUDED.original_transaction_id ELSE u.original_transaction_id END
