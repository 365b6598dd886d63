-- Access that a payer keeps after the period moved to another customer's subscription is not paid a second time.
CREATE OR REPLACE FUNCTION ledger.paying_of(known_at timestamptz, streams bigint[])
RETURNS TABLE (
    bundle_id text, environment text, stream_id bigint, charge_id bigint, original_transaction_id text, product_id text,
    paying_from timestamptz, paying_until timestamptz, ended_state text, ended_reason text, offer text,
    monthly_milliunits bigint, currency text, price_basis text)
LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT t.bundle_id, t.environment, t.subscription_id, p.charge_id, t.original_transaction_id, t.product_id,
           GREATEST(t.valid_from, p.begins_at), LEAST(t.access_until, p.until),
           CASE WHEN t.access_until < t.valid_until THEN t.state ELSE t.next_state END,
           CASE WHEN t.access_until < t.valid_until THEN t.reason ELSE t.next_reason END,
           p.offer, p.monthly, CASE WHEN p.monthly IS NOT NULL THEN p.currency END, p.price_basis
    FROM (
        SELECT h.*, lead(h.state) OVER stream AS next_state, lead(h.reason) OVER stream AS next_reason
        FROM perennial.timeline h
        WHERE h.known_from <= known_at AND COALESCE(h.known_until > known_at, true)
          AND (streams IS NULL OR h.subscription_id = ANY (streams))
        WINDOW stream AS (PARTITION BY h.subscription_id ORDER BY h.valid_from)
    ) t
    JOIN (
        SELECT r.stream_id, r.charge_id, r.product_id, r.offer, r.begins_at,
               lead(r.begins_at) OVER (
                   PARTITION BY r.stream_id, r.product_id
                   ORDER BY r.begins_at, r.first_expires_at, r.charge_id) AS until,
               -- The catalog's price is one of its period. Apple's price of a payment of a term is one month's; a plan that
               -- is not known lasts as long as its row, and so does a month of a yearly product, which verifyReceipt
               -- shows without its plan.
               round(price.amount / NULLIF(CASE
                   WHEN price.basis IN ('storefront', 'default') THEN ledger.months(d.period, r.begins_at, r.first_expires_at)
                   WHEN r.plan = 'MONTHLY' THEN 1
                   ELSE ledger.months(
                       CASE WHEN r.offer IS NULL AND COALESCE(r.plan, 'BILLED_UPFRONT') = 'BILLED_UPFRONT'
                                 AND NOT (r.plan IS NULL AND ledger.looks_monthly(d.period, r.begins_at, r.first_expires_at))
                            THEN d.period END, r.begins_at, r.first_expires_at) END, 0))::bigint
                   AS monthly,
               price.currency, price.basis AS price_basis
        FROM ledger.charge_runs_of(known_at, streams) r
        JOIN perennial.subscription_key n USING (stream_id)
        LEFT JOIN perennial.product_now d ON d.bundle_id = n.bundle_id AND d.product_id = r.product_id
        LEFT JOIN ledger.stated_charge_price(known_at, streams) stated
            ON NOT stated.is_purchase AND stated.charge_id = r.charge_id
        LEFT JOIN ledger.storefronts_of(known_at, streams) place
            ON place.stream_id = r.stream_id AND place.valid_from <= r.begins_at AND r.begins_at < place.valid_until
        LEFT JOIN perennial.price_history there
            ON there.bundle_id = n.bundle_id AND there.product_id = r.product_id AND there.storefront = place.storefront
            AND there.valid_from <= r.begins_at AND r.begins_at < there.valid_until
            AND there.known_from <= known_at AND COALESCE(there.known_until > known_at, true)
        LEFT JOIN perennial.price_history anywhere
            ON anywhere.bundle_id = n.bundle_id AND anywhere.product_id = r.product_id AND anywhere.storefront = ''
            AND anywhere.valid_from <= r.begins_at AND r.begins_at < anywhere.valid_until
            AND anywhere.known_from <= known_at AND COALESCE(anywhere.known_until > known_at, true)
        CROSS JOIN LATERAL (
            SELECT p.basis,
                   CASE p.basis WHEN 'apple' THEN r.price_milliunits
                                WHEN 'stated' THEN r.quantity * stated.price_milliunits
                                WHEN 'storefront' THEN r.quantity * there.price_milliunits
                                WHEN 'default' THEN r.quantity * anywhere.price_milliunits END AS amount,
                   CASE p.basis WHEN 'apple' THEN r.currency WHEN 'stated' THEN stated.currency
                                WHEN 'storefront' THEN there.currency WHEN 'default' THEN anywhere.currency END AS currency
            FROM (SELECT ledger.price_basis(
                r.offer, r.is_family_shared, r.price_milliunits, stated.price_milliunits, there.price_milliunits,
                anywhere.price_milliunits) AS basis) p) price
    ) p ON p.stream_id = t.subscription_id AND p.product_id = t.product_id
        AND p.begins_at < t.access_until AND COALESCE(p.until > t.valid_from, true)
    WHERE t.access_until IS NOT NULL AND p.price_basis IS NOT NULL AND p.offer IS DISTINCT FROM 'trial'
      AND COALESCE(p.until > p.begins_at, true)
      -- A period that moved to another customer's subscription is paid there, although who paid keeps access here.
      AND NOT (t.state = 'awaiting_renewal' AND t.reason = 'replacement' AND NOT EXISTS (
          SELECT FROM perennial.period_version v
          WHERE v.stream_id = t.subscription_id AND v.purchased_at <= t.valid_from AND v.expires_at > t.valid_from
            AND v.known_from <= known_at AND COALESCE(v.known_until > known_at, true)))
$$;

-- Every subscription is summarised again; until then reports read the history.
UPDATE ledger.summary_progress SET round_at = 0, rounds = 0, price_mark = NULL;
