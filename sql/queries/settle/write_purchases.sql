-- Settlement: writes each one-time purchase of a verified answer once; transaction ids are separated by commas. Keeps
-- the earlier version of every fact that figures depend on. $1 to $13 are the columns named below.
WITH given AS MATERIALIZED (
    SELECT * FROM unnest(
        $1::bigint[], $2::text[], $3::text[], $4::jsonb[], $5::int[], $6::timestamptz[], $7::timestamptz[], $8::text[],
        $9::bigint[], $10::timestamptz[], $11::timestamptz[], $12::bigint[], $13::timestamptz[])
        AS n(purchase_id, transaction_id, transaction_ids, facts, quantity, purchased_at, revoked_at, app_account_token,
             version, as_of, recorded_at, polled_by, next_check_at)
), past AS (
    INSERT INTO ledger.purchase_history
        (purchase_id, known, quantity, purchased_at, revoked_at, price_milliunits, price_currency, revocation_percentage,
         revocation_recorded_at)
    SELECT p.purchase_id, tstzrange(COALESCE(p.facts_recorded_at, p.first_recorded_at), n.recorded_at), p.quantity,
           p.purchased_at, p.revoked_at, (p.facts #>> '{price,milliunits}')::bigint, p.facts #>> '{price,currency}',
           (p.facts #>> '{refunded,percentage}')::int, p.revocation_recorded_at
    FROM given n JOIN ledger.purchase p USING (purchase_id)
    WHERE p.version > 0
      AND (p.quantity, p.purchased_at, p.revoked_at, p.facts #>> '{price,milliunits}', p.facts #>> '{price,currency}',
           p.facts #>> '{refunded,percentage}')
        IS DISTINCT FROM
          (n.quantity, n.purchased_at, n.revoked_at, n.facts #>> '{price,milliunits}', n.facts #>> '{price,currency}',
           n.facts #>> '{refunded,percentage}')
    RETURNING purchase_id
)
UPDATE ledger.purchase p
SET transaction_id = n.transaction_id, transaction_ids = string_to_array(n.transaction_ids, ','), facts = n.facts,
    quantity = n.quantity, purchased_at = n.purchased_at, revoked_at = n.revoked_at,
    revocation_recorded_at = CASE
        WHEN n.revoked_at IS NOT DISTINCT FROM p.revoked_at THEN p.revocation_recorded_at
        WHEN n.revoked_at IS NOT NULL THEN n.recorded_at END,
    app_account_token = n.app_account_token, polled_by = n.polled_by, next_check_at = n.next_check_at,
    version = n.version, as_of = n.as_of, checked_at = n.recorded_at,
    recorded_at = n.recorded_at, first_recorded_at = COALESCE(p.first_recorded_at, n.recorded_at),
    facts_recorded_at = CASE
        WHEN p.purchase_id IN (SELECT purchase_id FROM past) THEN n.recorded_at ELSE p.facts_recorded_at END
FROM given n
WHERE p.purchase_id = n.purchase_id
