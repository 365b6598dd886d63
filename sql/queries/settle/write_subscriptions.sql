-- Settlement: writes each subscription of a verified answer once; $1 to $25 are the columns named below.
UPDATE ledger.subscription s
SET group_id = n.group_id, polled_by = n.polled_by, version = n.version, as_of = n.as_of, checked_at = n.checked_at,
    recorded_at = n.recorded_at, next_check_at = n.next_check_at, renewal = n.renewal, renewal_as_of = n.renewal_as_of,
    renewal_path = n.renewal_path, suspected = n.suspected, will_renew = n.will_renew,
    renews_to_product_id = n.renews_to_product_id, flags = string_to_array(n.flags, ','), expires_at = n.expires_at,
    head_starts_at = n.head_starts_at, started_at = n.started_at, periods = n.periods, leeway_ms = n.leeway_ms,
    app_account_token = n.app_account_token, access_ends_at = n.access_ends_at, renewal_expected = n.renewal_expected,
    next_payment = n.next_payment, sale = n.sale
FROM unnest($1::bigint[], $2::text[], $3::bigint[], $4::bigint[], $5::timestamptz[], $6::timestamptz[], $7::timestamptz[],
            $8::timestamptz[], $9::jsonb[], $10::timestamptz[], $11::text[], $12::jsonb[], $13::boolean[], $14::text[],
            $15::text[], $16::timestamptz[], $17::timestamptz[], $18::timestamptz[], $19::int[], $20::bigint[], $21::text[],
            $22::timestamptz[], $23::boolean[], $24::boolean[], $25::jsonb[])
    AS n(subscription_id, group_id, polled_by, version, as_of, checked_at, recorded_at, next_check_at, renewal,
         renewal_as_of, renewal_path, suspected, will_renew, renews_to_product_id, flags, expires_at, head_starts_at,
         started_at, periods, leeway_ms, app_account_token, access_ends_at, renewal_expected, next_payment, sale)
WHERE s.subscription_id = n.subscription_id
