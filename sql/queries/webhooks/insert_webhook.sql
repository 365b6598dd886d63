-- Adds webhook $1 of app $2 (null: every app) with url $3, kinds $4 (none: every kind), environment $5, concurrency $6 and
-- sealed secret $7; it begins after position $8.
INSERT INTO ledger.webhook (webhook_id, app_id, url, kinds, environment, concurrency, sealed_secret, position)
VALUES ($1::int, $2::int, $3::text, NULLIF($4::text[], '{}'), $5::text::ledger.environment, $6::smallint, $7::bytea,
        $8::bigint)
