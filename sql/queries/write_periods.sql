-- Settlement: inserts new periods and rewrites changed ones; ids were reserved, columns as named below.
INSERT INTO ledger.period AS p
    (period_id, subscription_id, web_order_line_item_id, product_id, quantity, purchased_at, expires_at,
     original_purchased_at, cancelled_at, cancellation_reason, is_upgraded, is_trial, is_intro, promotional_offer_id,
     offer_code_ref_name, group_id, ownership, app_account_token, replaced_by, ending, as_of, path, older_facts,
     recorded_at, cancellation_recorded_at)
OVERRIDING SYSTEM VALUE
SELECT n.*, CASE WHEN n.cancelled_at IS NOT NULL THEN n.recorded_at END
FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::text[], $5::int[], $6::timestamptz[], $7::timestamptz[],
            $8::timestamptz[], $9::timestamptz[], $10::text[], $11::boolean[], $12::boolean[], $13::boolean[], $14::text[],
            $15::text[], $16::text[], $17::text[], $18::text[], $19::text[], $20::jsonb[], $21::timestamptz[], $22::text[],
            $23::jsonb[], $24::timestamptz[])
    AS n(period_id, subscription_id, web_order_line_item_id, product_id, quantity, purchased_at, expires_at,
         original_purchased_at, cancelled_at, cancellation_reason, is_upgraded, is_trial, is_intro, promotional_offer_id,
         offer_code_ref_name, group_id, ownership, app_account_token, replaced_by, ending, as_of, path, older_facts,
         recorded_at)
ON CONFLICT (period_id) DO UPDATE SET
    web_order_line_item_id = EXCLUDED.web_order_line_item_id, product_id = EXCLUDED.product_id,
    quantity = EXCLUDED.quantity, purchased_at = EXCLUDED.purchased_at, expires_at = EXCLUDED.expires_at,
    original_purchased_at = EXCLUDED.original_purchased_at, cancelled_at = EXCLUDED.cancelled_at,
    cancellation_reason = EXCLUDED.cancellation_reason, is_upgraded = EXCLUDED.is_upgraded, is_trial = EXCLUDED.is_trial,
    is_intro = EXCLUDED.is_intro, promotional_offer_id = EXCLUDED.promotional_offer_id,
    offer_code_ref_name = EXCLUDED.offer_code_ref_name, group_id = EXCLUDED.group_id, ownership = EXCLUDED.ownership,
    app_account_token = EXCLUDED.app_account_token, replaced_by = EXCLUDED.replaced_by, ending = EXCLUDED.ending,
    as_of = EXCLUDED.as_of, path = EXCLUDED.path, older_facts = EXCLUDED.older_facts,
    cancellation_recorded_at = CASE
        WHEN EXCLUDED.cancelled_at IS NOT DISTINCT FROM p.cancelled_at THEN p.cancellation_recorded_at
        ELSE EXCLUDED.cancellation_recorded_at END
