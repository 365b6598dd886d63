-- Settlement: deletes periods ($1) that proved to be the same as another; keeps the record that they were once
-- separate.
WITH doubled AS (
    DELETE FROM ledger.period WHERE period_id = ANY($1::bigint[]) RETURNING *
)
INSERT INTO ledger.period_history
    (period_id, subscription_id, known, product_id, quantity, purchased_at, expires_at, cancelled_at, is_upgraded, is_trial,
     is_intro, promotional_offer_id, offer_code_ref_name, ownership, price_milliunits, price_currency,
     revocation_percentage, sale, recorded_at, cancellation_recorded_at)
SELECT period_id, subscription_id, tstzrange(COALESCE(facts_recorded_at, recorded_at), clock_timestamp()), product_id,
       quantity, purchased_at, expires_at, cancelled_at, is_upgraded, is_trial, is_intro, promotional_offer_id,
       offer_code_ref_name, ownership, price_milliunits, price_currency, revocation_percentage, sale, recorded_at,
       cancellation_recorded_at
FROM doubled
