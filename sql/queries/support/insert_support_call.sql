-- Stores a support call of app $1 and environment $2 before it is made: kind $3, about $4, what it asks $5; returns its
-- identifier.
INSERT INTO ledger.support_call (app_id, environment, kind, subject, request)
VALUES ($1::int, $2::text::ledger.environment, $3::text, $4::text, $5::jsonb)
RETURNING request_id::text AS request_id, outcome, reason, code, extended_until, attempts, answered_at
