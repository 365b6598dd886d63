-- Settlement: inserts new periods and rewrites changed ones; ids were reserved, $1 to $28 are the columns named below.
-- Keeps the earlier version of every fact that figures depend on, so that reports can show them as known then.
WITH given AS MATERIALIZED (
    SELECT n.*, CASE WHEN n.cancelled_at IS NOT NULL OR (n.sale ->> 'revoked_seats')::int > 0
                     THEN n.recorded_at END AS cancellation_recorded_at
    FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::text[], $5::int[], $6::timestamptz[], $7::timestamptz[],
                $8::timestamptz[], $9::timestamptz[], $10::text[], $11::boolean[], $12::boolean[], $13::boolean[],
                $14::text[], $15::text[], $16::text[], $17::text[], $18::text[], $19::text[], $20::bigint[],
                $21::text[], $22::int[], $23::jsonb[], $24::jsonb[], $25::timestamptz[], $26::text[],
                $27::jsonb[], $28::timestamptz[])
        AS n(period_id, subscription_id, web_order_line_item_id, product_id, quantity, purchased_at, expires_at,
             original_purchased_at, cancelled_at, cancellation_reason, is_upgraded, is_trial, is_intro,
             promotional_offer_id, offer_code_ref_name, group_id, ownership, app_account_token, replaced_by,
             price_milliunits, price_currency, revocation_percentage, sale, ending, as_of, path, older_facts, recorded_at)
), past AS (
    INSERT INTO ledger.period_history
        (period_id, subscription_id, known, product_id, quantity, purchased_at, expires_at, cancelled_at, is_upgraded,
         is_trial, is_intro, promotional_offer_id, offer_code_ref_name, ownership, price_milliunits, price_currency,
         revocation_percentage, sale, recorded_at, cancellation_recorded_at)
    SELECT p.period_id, p.subscription_id, tstzrange(COALESCE(p.facts_recorded_at, p.recorded_at), n.recorded_at),
           p.product_id, p.quantity, p.purchased_at, p.expires_at, p.cancelled_at, p.is_upgraded, p.is_trial, p.is_intro,
           p.promotional_offer_id, p.offer_code_ref_name, p.ownership, p.price_milliunits, p.price_currency,
           p.revocation_percentage, p.sale, p.recorded_at, p.cancellation_recorded_at
    FROM given n JOIN ledger.period p USING (period_id)
    WHERE (p.product_id, p.quantity, p.purchased_at, p.expires_at, p.cancelled_at, p.is_upgraded, p.is_trial, p.is_intro,
           p.promotional_offer_id, p.offer_code_ref_name, p.ownership, p.price_milliunits, p.price_currency,
           p.revocation_percentage, p.sale)
        IS DISTINCT FROM
          (n.product_id, n.quantity, n.purchased_at, n.expires_at, n.cancelled_at, n.is_upgraded, n.is_trial, n.is_intro,
           n.promotional_offer_id, n.offer_code_ref_name, n.ownership, n.price_milliunits, n.price_currency,
           n.revocation_percentage, n.sale)
    RETURNING period_id
)
INSERT INTO ledger.period AS p
    (period_id, subscription_id, web_order_line_item_id, product_id, quantity, purchased_at, expires_at,
     original_purchased_at, cancelled_at, cancellation_reason, is_upgraded, is_trial, is_intro, promotional_offer_id,
     offer_code_ref_name, group_id, ownership, app_account_token, replaced_by, price_milliunits, price_currency,
     revocation_percentage, sale, ending, as_of, path, older_facts, recorded_at, cancellation_recorded_at)
OVERRIDING SYSTEM VALUE
SELECT n.* FROM given n
ON CONFLICT (period_id) DO UPDATE SET
    web_order_line_item_id = EXCLUDED.web_order_line_item_id, product_id = EXCLUDED.product_id,
    quantity = EXCLUDED.quantity, purchased_at = EXCLUDED.purchased_at, expires_at = EXCLUDED.expires_at,
    original_purchased_at = EXCLUDED.original_purchased_at, cancelled_at = EXCLUDED.cancelled_at,
    cancellation_reason = EXCLUDED.cancellation_reason, is_upgraded = EXCLUDED.is_upgraded, is_trial = EXCLUDED.is_trial,
    is_intro = EXCLUDED.is_intro, promotional_offer_id = EXCLUDED.promotional_offer_id,
    offer_code_ref_name = EXCLUDED.offer_code_ref_name, group_id = EXCLUDED.group_id, ownership = EXCLUDED.ownership,
    app_account_token = EXCLUDED.app_account_token, replaced_by = EXCLUDED.replaced_by,
    price_milliunits = EXCLUDED.price_milliunits, price_currency = EXCLUDED.price_currency,
    revocation_percentage = EXCLUDED.revocation_percentage, sale = EXCLUDED.sale, ending = EXCLUDED.ending,
    as_of = EXCLUDED.as_of, path = EXCLUDED.path, older_facts = EXCLUDED.older_facts,
    cancellation_recorded_at = CASE
        WHEN (EXCLUDED.cancelled_at, EXCLUDED.sale ->> 'revoked_seats')
            IS NOT DISTINCT FROM (p.cancelled_at, p.sale ->> 'revoked_seats') THEN p.cancellation_recorded_at
        ELSE EXCLUDED.cancellation_recorded_at END,
    facts_recorded_at = CASE
        WHEN EXCLUDED.period_id IN (SELECT period_id FROM past) THEN EXCLUDED.recorded_at
        ELSE p.facts_recorded_at END
