-- set as_known_at=2026-02-23 12:00Z
-- set from=2026-02-19
-- On 23 February it was not known that E had paid on the 20th: it was in grace, A, E, H and J paid, F was shared. The 23rd was
-- not over: it shows noon, as incomplete. C and G are yearly. K was active until the 21st and Apple was not asked since: from then on it is held.
WITH k AS (
    INSERT INTO ledger.subscription (app_id, environment, original_transaction_id)
    SELECT app_id, 'Production', 'K' FROM ledger.app RETURNING subscription_id)
INSERT INTO ledger.subscription_span
    (subscription_id, valid, known, state, reason, entitled, product_id, allowed_until, version)
SELECT subscription_id, tstzrange('2026-01-21Z', '2026-02-21Z'), tstzrange('2026-01-21Z', NULL), 'active'::ledger.state,
       NULL::ledger.reason, true, 'monthly', NULL::timestamptz, 1 FROM k
UNION ALL
SELECT subscription_id, tstzrange('2026-02-21Z', NULL), tstzrange('2026-01-21Z', NULL), 'expired', 'unknown', false,
       'monthly', '2026-03-23Z', 1 FROM k;
