-- Renewals of the next 30 days and their expected revenue
-- Variables: at, days, bundle_id, environment, time_zone.
-- Counts subscriptions that are active at the instant at (now), will renew and are not family-shared, on the day their
-- period ends. A product with a short period of its own in the catalog counts as often as it would renew, always on the
-- day of the month of its charges or on the last day of a shorter month. The product is the one it will renew to;
-- within a term of payments the next payment is one of the same product and price, whatever follows the term. The price
-- is that of the last charge if Apple or an upload stated it for the same product, of a group what all transactions of
-- its period cost without refunded seats; else the catalog's for the storefront on that day, else the default
-- storefront's, for each seat. A renewal with an offer, or by another plan, has no known price, nor has what Apple
-- states and cannot be read, nor a payment of a term without a price of its own. expected is the revenue if every
-- renewal succeeds; see renewal_rate for the share that does. at_risk: the customer was asked to agree to a higher
-- price and has not. Amounts are in units of the currency; a row without currency has no known prices. The shares are
-- those of all the app's renewals in that time. Subscriptions in grace or billing retry are in billing_recovery; a
-- payment of a term that failed before its month ends is no renewal either. is_complete: the whole day lies between at
-- and at + days.
\if :{?at} \else \set at now \endif
\if :{?days} \else \set days 30 \endif
\if :{?bundle_id} \else \set bundle_id '' \endif
\if :{?environment} \else \set environment Production \endif
\if :{?time_zone} \else \set time_zone UTC \endif
WITH due AS (
    SELECT r.bundle_id, r.stream_id, next.product_id, r.price_consent_pending, r.offer, r.expires_at,
           r.change_scheduled AND NOT r.is_within_term AND next.product_id = t.product_id AS changes_plan,
           next.product_id = t.product_id AS keeps_product
    FROM perennial.renewal_now r
    JOIN perennial.timeline t
        ON t.subscription_id = r.stream_id
        AND t.known_until IS NULL AND t.valid_from <= :'at'::timestamptz AND :'at'::timestamptz < t.valid_until
    CROSS JOIN LATERAL (
        SELECT CASE WHEN r.is_within_term THEN t.product_id ELSE COALESCE(r.renews_to_product_id, t.product_id) END
                   AS product_id) next
    WHERE r.environment = perennial.known_environment(:'environment')
      AND (:'bundle_id' = '' OR r.bundle_id = perennial.known_app(:'bundle_id')) AND COALESCE(r.next_payment, r.will_renew)
      AND t.state = 'active' AND NOT t.flags && '{family_shared,assigned}'
      AND r.expires_at >= :'at'::timestamptz AND r.expires_at < :'at'::timestamptz + :'days'::int * interval '1 day'
      -- A payment of a term may have failed before the month ends.
      AND NOT EXISTS (
          SELECT FROM perennial.timeline f
          WHERE f.subscription_id = r.stream_id AND f.known_until IS NULL AND f.valid_from = r.expires_at
            AND f.state = 'billing_retry')
), charged AS (
    -- Only a price of Apple's or of an upload, of the same product and without an offer, applies to the renewal. A group's
    -- transactions of one period renew together, without refunded seats.
    SELECT DISTINCT ON (d.stream_id) d.*, c.purchased_at AS charged_at, d.keeps_product AND own.is_unpriced AS is_unpriced,
           COALESCE(own.seats, 1) AS units,
           CASE WHEN c.product_id = d.product_id AND c.offer IS NULL AND c.price_basis IN ('apple', 'stated')
                     AND own.is_unread IS NOT TRUE THEN c.price_basis END AS charged_basis,
           COALESCE(own.group_amount, c.amount_milliunits) AS charged_amount, c.currency AS charged_currency
    FROM due d
    LEFT JOIN perennial.revenue_as_known('infinity') c
        ON c.stream_id = d.stream_id AND c.charge_kind = 'subscription' AND c.kind = 'charge'
    CROSS JOIN LATERAL (
        SELECT bool_or(o.price_milliunits IS NULL AND o.currency IS NOT NULL) AS is_unread,
               -- The catalog knows neither what Apple states and cannot be read, nor the price of one payment of a term.
               bool_or(o.price_milliunits IS NULL AND o.currency IS NOT NULL
                       OR o.plan <> 'BILLED_UPFRONT') AS is_unpriced,
               sum(o.seats - o.revoked_seats) AS seats,
               sum(round(o.price_milliunits * (o.seats - o.revoked_seats) / GREATEST(1, o.seats)::numeric))::bigint
                   AS group_amount
        FROM perennial.period_version o
        WHERE o.stream_id = d.stream_id AND o.expires_at = d.expires_at AND o.cancelled_at IS NULL AND NOT o.is_upgraded
          AND o.known_until IS NULL) own
    ORDER BY d.stream_id, c.purchased_at DESC NULLS LAST, c.charge_id DESC
), placed AS (
    SELECT DISTINCT ON (d.stream_id) d.*, w.storefront
    FROM charged d
    LEFT JOIN perennial.stated_price w
        ON w.stream_id = d.stream_id AND w.kind = 'subscription' AND w.storefront IS NOT NULL
    ORDER BY d.stream_id, w.stated_at DESC NULLS LAST, w.stated_id DESC
), renewal AS (
    -- Each renewal is a number of periods after the first one, on its day of the month. A month that is too short for the
    -- day moves only its own renewal: if the next one is on the last day of a month, the day is that of the last charge.
    SELECT d.*, again.at AS renews_at, again.nth = 0 AS is_next
    FROM placed d
    LEFT JOIN perennial.product_now p ON p.bundle_id = d.bundle_id AND p.product_id = d.product_id
    CROSS JOIN LATERAL (
        SELECT d.expires_at AT TIME ZONE 'UTC' AS at, d.charged_at AT TIME ZONE 'UTC' AS charged_at) utc
    CROSS JOIN LATERAL (
        SELECT CASE WHEN (utc.at + interval '1 day')::date = date_trunc('month', utc.at + interval '1 day')::date
                    THEN GREATEST(0, date_part('day', utc.charged_at) - date_part('day', utc.at))::int ELSE 0 END AS days) cut
    CROSS JOIN LATERAL (
        SELECT n.nth, CASE
            WHEN n.nth = 0 THEN utc.at
            WHEN p.period ~ '[DW]$' THEN utc.at + n.nth * p.period::interval
            ELSE LEAST(utc.at + n.nth * p.period::interval + cut.days * interval '1 day',
                       date_trunc('month', utc.at + n.nth * p.period::interval) + interval '1 month -1 day'
                           + (utc.at - date_trunc('day', utc.at))) END AT TIME ZONE 'UTC' AS at
        FROM generate_series(0, COALESCE(
            (:'days'::int * 86400 / extract(epoch FROM p.period::interval))::int + 1, 0)) AS n (nth)
    ) again
    WHERE again.at < :'at'::timestamptz + :'days'::int * interval '1 day'
), priced AS (
    SELECT (r.renews_at AT TIME ZONE :'time_zone')::date AS day, r.bundle_id, r.product_id, r.price_consent_pending,
           basis.word AS price_basis,
           CASE basis.word WHEN r.charged_basis THEN r.charged_amount WHEN 'storefront' THEN r.units * there.price_milliunits
                           WHEN 'default' THEN r.units * anywhere.price_milliunits END AS amount,
           CASE basis.word WHEN r.charged_basis THEN r.charged_currency WHEN 'storefront' THEN there.currency
                           WHEN 'default' THEN anywhere.currency END AS currency
    FROM renewal r
    LEFT JOIN perennial.price_history there
        ON there.bundle_id = r.bundle_id AND there.product_id = r.product_id AND there.storefront = r.storefront
        AND there.valid_from <= r.renews_at AND r.renews_at < there.valid_until AND there.known_until IS NULL
    LEFT JOIN perennial.price_history anywhere
        ON anywhere.bundle_id = r.bundle_id AND anywhere.product_id = r.product_id AND anywhere.storefront = ''
        AND anywhere.valid_from <= r.renews_at AND r.renews_at < anywhere.valid_until AND anywhere.known_until IS NULL
    CROSS JOIN LATERAL (
        SELECT CASE WHEN (r.offer IS NOT NULL OR r.changes_plan) AND r.is_next THEN 'unknown'
                    WHEN r.charged_basis IS NOT NULL THEN r.charged_basis
                    WHEN r.is_unpriced THEN 'unknown'
                    WHEN there.price_milliunits IS NOT NULL THEN 'storefront'
                    WHEN anywhere.price_milliunits IS NOT NULL THEN 'default'
                    ELSE 'unknown' END AS word) basis
), reported AS (
    SELECT day, bundle_id, product_id, currency, count(*) AS renewals,
           count(*) FILTER (WHERE price_consent_pending) AS at_risk, sum(amount) AS expected,
           count(*) FILTER (WHERE price_basis = 'apple') AS apple,
           count(*) FILTER (WHERE price_basis = 'stated') AS stated,
           count(*) FILTER (WHERE price_basis = 'storefront') AS storefront,
           count(*) FILTER (WHERE price_basis = 'default') AS "default",
           count(*) FILTER (WHERE price_basis = 'unknown') AS unknown
    FROM priced GROUP BY day, bundle_id, product_id, currency
)
SELECT day, bundle_id, product_id, currency, renewals, at_risk, round(expected / 1000, 3) AS expected,
       round(100.0 * sum(apple) OVER app / NULLIF(sum(renewals) OVER app, 0), 1) AS apple_pct,
       round(100.0 * sum(stated) OVER app / NULLIF(sum(renewals) OVER app, 0), 1) AS stated_pct,
       round(100.0 * sum(storefront) OVER app / NULLIF(sum(renewals) OVER app, 0), 1) AS storefront_pct,
       round(100.0 * sum("default") OVER app / NULLIF(sum(renewals) OVER app, 0), 1) AS default_pct,
       round(100.0 * sum(unknown) OVER app / NULLIF(sum(renewals) OVER app, 0), 1) AS unknown_pct,
       day::timestamp AT TIME ZONE :'time_zone' >= :'at'::timestamptz
           AND (day + 1)::timestamp AT TIME ZONE :'time_zone' <= :'at'::timestamptz + :'days'::int * interval '1 day'
           AS is_complete
FROM reported
WINDOW app AS (PARTITION BY bundle_id)
ORDER BY day, bundle_id, product_id, currency;
