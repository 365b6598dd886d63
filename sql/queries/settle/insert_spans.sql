-- Settlement: inserts the present spans of timelines; flags are comma-separated words. $1 to $11 are the columns named
-- below.
INSERT INTO ledger.subscription_span
    (subscription_id, valid, known, state, reason, entitled, product_id, flags, allowed_until, version)
SELECT n.subscription_id, tstzrange(n.valid_from, n.valid_to), tstzrange(n.recorded_at, NULL), n.state::ledger.state,
       n.reason::ledger.reason, n.entitled, n.product_id, string_to_array(n.flags, ','), n.allowed_until, n.version
FROM unnest($1::bigint[], $2::timestamptz[], $3::timestamptz[], $4::timestamptz[], $5::text[], $6::text[], $7::boolean[],
            $8::text[], $9::text[], $10::timestamptz[], $11::bigint[])
    AS n(subscription_id, valid_from, valid_to, recorded_at, state, reason, entitled, product_id, flags, allowed_until, version)
