-- The plan, the payment of a term, what Apple will try next, and seats, in what other people's SQL reads and in reports.

CREATE OR REPLACE VIEW ledger.subscription_state AS
SELECT s.subscription_id,
       s.app_id,
       c.customer_id,
       a.bundle_id,
       s.environment::text AS environment,
       s.original_transaction_id,
       c.name AS customer,
       s.group_id AS subscription_group_identifier,
       current.product_id,
       CASE WHEN allowed THEN 'awaiting_renewal' ELSE current.state::text END AS state,
       CASE WHEN allowed THEN 'renewal' ELSE current.reason::text END AS reason,
       (current.entitled OR allowed) AS entitled,
       s.expires_at,
       CASE WHEN allowed THEN current.allowed_until
            WHEN current.state = 'active' THEN s.expires_at
            WHEN current.entitled THEN upper(current.valid) END AS entitled_until,
       s.will_renew,
       s.renews_to_product_id,
       CASE WHEN current.state = 'active' AND NOT allowed THEN ARRAY(
            SELECT f FROM unnest(
                current.flags || s.flags
                    || CASE WHEN s.head_starts_at > clock.at THEN '{future_dated}'::text[] ELSE '{}' END) f
            GROUP BY f ORDER BY f COLLATE "C")
            ELSE current.flags END AS flags,
       s.periods,
       s.started_at,
       s.version,
       ledger.as_of(s, poller) AS as_of,
       ledger.checked_at(s, poller) AS checked_at,
       s.sale ->> 'plan' AS plan,
       CASE WHEN term.runs THEN (s.sale ->> 'payment_number')::int END AS payment_number,
       CASE WHEN term.runs THEN (s.sale ->> 'payments')::int END AS payments,
       CASE WHEN term.runs THEN term.ends_at END AS commitment_ends_at,
       s.next_payment,
       (s.sale ->> 'seats')::int AS seats
FROM ledger.subscription s
JOIN ledger.app a USING (app_id)
LEFT JOIN ledger.poll_schedule poller ON poller.receipt_id = s.polled_by
CROSS JOIN LATERAL (SELECT GREATEST(now(), ledger.as_of(s, poller)) AS at) clock
JOIN LATERAL (
    SELECT * FROM ledger.subscription_span p
    WHERE p.subscription_id = s.subscription_id AND upper_inf(p.known) AND lower(p.valid) <= clock.at
    ORDER BY lower(p.valid) DESC LIMIT 1) current ON true
-- A term that Apple ended runs no longer, whatever its date.
CROSS JOIN LATERAL (
    SELECT current.state NOT IN ('expired', 'revoked') AS runs,
           to_timestamp((s.sale ->> 'term_ends_at_ms')::bigint / 1000.0) AS ends_at) term
CROSS JOIN LATERAL ledger.is_in_outage_allowance(current.valid, current.allowed_until, clock.at) allowed
LEFT JOIN ledger.ownership o
    ON o.subscription_id = s.subscription_id AND upper_inf(o.known) AND o.valid @> now()
LEFT JOIN ledger.customer c USING (customer_id)
WHERE s.version > 0;

CREATE OR REPLACE VIEW perennial.subscription_now AS
SELECT bundle_id, environment, original_transaction_id, customer, subscription_group_identifier, product_id, state, reason,
       entitled, expires_at, entitled_until, will_renew, renews_to_product_id, flags, periods, started_at, version, as_of,
       checked_at, plan, payment_number, payments, commitment_ends_at, next_payment, seats
FROM ledger.subscription_state;
COMMENT ON COLUMN perennial.subscription_now.will_renew IS
    'Whether the customer wants it to renew, within a term of payments after the term; null: unknown';
COMMENT ON COLUMN perennial.subscription_now.plan IS
    'upfront, or monthly for a term of payments; null: no signed transaction says, or an unknown plan';
COMMENT ON COLUMN perennial.subscription_now.payment_number IS
    'The number of the newest payment of the term that runs, from 1; null: none runs';
COMMENT ON COLUMN perennial.subscription_now.payments IS 'The payments of that term';
COMMENT ON COLUMN perennial.subscription_now.commitment_ends_at IS
    'The end of that term; it moves when a failed payment succeeds late, and grants nothing';
COMMENT ON COLUMN perennial.subscription_now.next_payment IS
    'Whether Apple will try the next payment; null: unknown. Outside of a term it is will_renew';
COMMENT ON COLUMN perennial.subscription_now.seats IS
    'The seats that a group pays for, without refunded ones; null: it is no group';

CREATE OR REPLACE VIEW perennial.renewal_now AS
SELECT a.bundle_id, s.environment::text AS environment, s.subscription_id AS stream_id, s.original_transaction_id,
       s.will_renew, s.expires_at, s.renews_to_product_id,
       CASE WHEN s.renewal ->> 'promotional_offer_id' IS NOT NULL THEN 'promotional_offer'
            WHEN s.renewal ->> 'offer_code_ref_name' IS NOT NULL THEN 'offer_code' END AS offer,
       'price_consent_pending' = ANY (s.flags) AS price_consent_pending, ledger.as_of(s, poller) AS as_of,
       ledger.checked_at(s, poller) AS checked_at, ledger.next_check_at(s, poller) AS next_check_at, s.next_payment
FROM ledger.subscription s
JOIN ledger.app a USING (app_id)
LEFT JOIN ledger.poll_schedule poller ON poller.receipt_id = s.polled_by
WHERE s.version > 0;
COMMENT ON COLUMN perennial.renewal_now.next_payment IS
    'Whether Apple will try the next payment; null: unknown. will_renew is the customer''s will';

-- Reports count payments of a month, terms and seats as what they are.

DROP FUNCTION ledger.charge_runs_of(timestamptz, bigint[]);
CREATE FUNCTION ledger.charge_runs_of(known_at timestamptz, streams bigint[])
RETURNS TABLE (
    stream_id bigint, charge_id bigint, product_id text, quantity int, offer text, is_family_shared boolean,
    begins_at timestamptz, first_expires_at timestamptz, price_milliunits bigint, currency text, plan text)
LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT c.stream_id, min(c.charge_id), c.product_id, c.quantity, c.offer, c.is_family_shared, min(c.purchased_at),
           min(c.expires_at), c.run_price, c.currency, c.plan
    FROM (
        SELECT p.*, catalog.has_period IS TRUE AS has_period, p.purchased_at = ANY (own.stated) IS TRUE AS is_stated,
               COALESCE(width_bucket(p.purchased_at, catalog.instants), 0)
                   + COALESCE(width_bucket(p.purchased_at, own.instants), 0) AS run
        FROM (
            -- What a group pays is what its transactions of one period cost together, without refunded seats. A
            -- transaction that was refunded counts only where all of them were.
            SELECT v.*, CASE WHEN v.seats IS NULL THEN v.price_milliunits ELSE (
                       SELECT COALESCE(sum(part.amount) FILTER (WHERE o.cancelled_at IS NULL), sum(part.amount))::bigint
                       FROM perennial.period_version o
                       CROSS JOIN LATERAL (
                           SELECT CASE WHEN o.cancelled_at IS NOT NULL THEN o.price_milliunits
                                       ELSE round(o.price_milliunits * (o.seats - o.revoked_seats)
                                                  / GREATEST(1, o.seats)::numeric) END AS amount) part
                       WHERE o.stream_id = v.stream_id AND o.expires_at = v.expires_at
                         AND (o.charge_id = v.charge_id OR v.is_one_of_several
                              AND (o.purchased_at, o.charge_id) < (v.purchased_at, v.charge_id))
                         AND o.known_from <= known_at AND COALESCE(o.known_until > known_at, true)) END AS run_price
            FROM perennial.period_version v) p
        LEFT JOIN (
            SELECT COALESCE(h.product_id, d.product_id) AS product_id,
                   COALESCE(bool_and(d.period IS NOT NULL), false) AS has_period,
                   array_agg(DISTINCT h.valid_from ORDER BY h.valid_from)
                       FILTER (WHERE h.valid_from IS NOT NULL) AS instants
            FROM perennial.price_history h FULL JOIN perennial.product_now d USING (bundle_id, product_id)
            GROUP BY 1
        ) catalog ON catalog.product_id = p.product_id
        LEFT JOIN (
            SELECT odd.stream_id, array_agg(DISTINCT odd.at ORDER BY odd.at) AS instants,
                   array_agg(odd.at) FILTER (WHERE odd.is_stated) AS stated
            FROM (
                SELECT o.stream_id, o.purchased_at AS at, false AS is_stated FROM perennial.period_version o
                WHERE (o.offer IS NOT NULL OR o.is_family_shared OR o.quantity <> 1)
                  AND (streams IS NULL OR o.stream_id = ANY (streams))
                UNION ALL
                SELECT priced.stream_id, priced.purchased_at, false FROM (
                    SELECT o.stream_id, o.purchased_at,
                           (o.price_milliunits, o.currency, o.plan) IS DISTINCT FROM
                               (lag(o.price_milliunits) OVER stream, lag(o.currency) OVER stream, lag(o.plan) OVER stream)
                               AS differs
                    FROM perennial.period_version o
                    -- Without a price or a plan of Apple's there is nothing to sort.
                    WHERE o.stream_id IN (
                              SELECT v.stream_id FROM perennial.period_version v
                              WHERE (v.price_milliunits IS NOT NULL OR v.plan IS NOT NULL)
                                AND (streams IS NULL OR v.stream_id = ANY (streams)))
                      AND o.known_from <= known_at AND COALESCE(o.known_until > known_at, true)
                      AND COALESCE(o.cancelled_at > o.purchased_at, true)
                    WINDOW stream AS (PARTITION BY o.stream_id, o.product_id ORDER BY o.purchased_at, o.charge_id)) priced
                WHERE priced.differs
                UNION ALL
                SELECT stated.stream_id, stated.purchased_at, true FROM ledger.stated_charge_price(known_at, streams) stated
                WHERE NOT stated.is_purchase
                UNION ALL
                SELECT place.stream_id, place.valid_from, false FROM ledger.storefronts_of(known_at, streams) place
                WHERE place.valid_from > '-infinity') odd
            GROUP BY odd.stream_id
        ) own ON own.stream_id = p.stream_id
        WHERE p.known_from <= known_at AND COALESCE(p.known_until > known_at, true)
          AND COALESCE(p.cancelled_at > p.purchased_at, true) AND (streams IS NULL OR p.stream_id = ANY (streams))) c
    GROUP BY c.stream_id, c.product_id, c.run, c.quantity, c.offer, c.is_family_shared, c.run_price, c.currency, c.plan,
             CASE WHEN c.offer IS NOT NULL OR c.is_stated OR NOT c.has_period THEN c.charge_id END
$$;
COMMENT ON FUNCTION ledger.charge_runs_of IS
    'Charges of one product and subscription that follow each other and cost the same, as one run. A run ends where '
    'a charge with an offer, a price of its own, another quantity, another plan or no price begins, and where Apple''s '
    'price, the catalog''s or the storefront changes. The price of a group''s charge includes the seats that it has beside';

CREATE FUNCTION ledger.looks_monthly(period text, purchased_at timestamptz, expires_at timestamptz) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT period = 'P1Y' AND expires_at - purchased_at BETWEEN interval '28 days' AND interval '31 days 2 hours'
$$;
COMMENT ON FUNCTION ledger.looks_monthly IS
    'Whether a paid row without any offer is probably one payment of a term: a month of a product that the catalog calls '
    'a year. verifyReceipt shows nothing else of it';

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
$$;
CREATE OR REPLACE FUNCTION ledger.renewals_of(known_at timestamptz, streams bigint[])
RETURNS TABLE (
    bundle_id text, environment text, stream_id bigint, product_id text, expires_at timestamptz,
    next_purchased_at timestamptz, next_is_paid boolean, was_awaited boolean)
LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT k.bundle_id, k.environment, p.stream_id, p.product_id, p.expires_at, p.next_purchased_at,
           p.next_is_paid AND next.kind <> 'subscription.reactivated',
           COALESCE(next.kind = 'subscription.recovered', false)
    FROM (
        SELECT c.stream_id, c.product_id, c.expires_at, paid.is_paid, c.payment_number, c.payments,
               NOT c.is_upgraded AND COALESCE(c.cancelled_at >= c.expires_at, true) AS comes_to_its_end,
               lead(c.charge_id) OVER stream AS next_charge_id, lead(c.purchased_at) OVER stream AS next_purchased_at,
               lead(paid.is_paid) OVER stream AS next_is_paid
        FROM perennial.period_version c
        -- What is neither a trial nor shared by the family was paid.
        CROSS JOIN LATERAL (SELECT NOT c.is_family_shared AND c.offer IS DISTINCT FROM 'trial' AS is_paid) paid
        WHERE c.known_from <= known_at AND COALESCE(c.known_until > known_at, true)
          -- Seats that were added to a period are of its transaction.
          AND NOT (c.is_one_of_several AND EXISTS (
              SELECT FROM perennial.period_version o
              WHERE o.stream_id = c.stream_id AND o.expires_at = c.expires_at AND o.purchased_at < c.purchased_at
                AND o.known_from <= known_at AND COALESCE(o.known_until > known_at, true)))
          AND COALESCE(c.cancelled_at > c.purchased_at, true) AND (streams IS NULL OR c.stream_id = ANY (streams))
        WINDOW stream AS (PARTITION BY c.stream_id ORDER BY c.purchased_at, c.expires_at, c.charge_id)) p
    JOIN perennial.subscription_key k USING (stream_id)
    LEFT JOIN ledger.period_events_of(known_at, streams) reported
        ON reported.charge_id = p.next_charge_id AND reported.kind <> 'product.changed'
    CROSS JOIN LATERAL (
        SELECT CASE WHEN reported.kind IS NOT NULL THEN reported.kind
                    WHEN p.next_purchased_at IS NOT NULL THEN ledger.kind_of_return(
                        k.environment, p.next_purchased_at - p.expires_at,
                        p.next_purchased_at > p.expires_at AND EXISTS (
                            SELECT FROM perennial.timeline t
                            WHERE t.subscription_id = p.stream_id
                              AND t.valid_from <= p.expires_at AND p.expires_at < t.valid_until
                              AND t.known_from <= known_at AND COALESCE(t.known_until > known_at, true)
                              AND t.state IN ('grace_period', 'billing_retry'))) END AS kind) next
    -- Within a term the next payment is owed: only its last one can renew or not.
    WHERE p.is_paid AND p.comes_to_its_end AND COALESCE(p.payment_number >= p.payments, true)
$$;

CREATE OR REPLACE FUNCTION ledger.shares_of(streams bigint[])
RETURNS TABLE (
    subscription_id bigint, day date, currency text, active int, trial int, paying int, monthly_milliunits bigint,
    began int, returned int, churned int, trials_started int, trials_converted int, trials_lost int)
LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT moved.subscription_id, moved.day, moved.currency, sum(moved.active)::int AS active,
           sum(moved.trial)::int AS trial, sum(moved.paying)::int AS paying,
           sum(moved.monthly)::bigint AS monthly_milliunits, sum(moved.began)::int AS began,
           sum(moved.returned)::int AS returned, sum(moved.churned)::int AS churned,
           sum(moved.trials_started)::int AS trials_started, sum(moved.trials_converted)::int AS trials_converted,
           sum(moved.trials_lost)::int AS trials_lost
    FROM (
        SELECT t.subscription_id, at.day, '' AS currency, at.change AS active,
               CASE WHEN 'trial' = ANY (t.flags) AND NOT t.flags && '{family_shared,assigned}' THEN at.change
                    ELSE 0 END AS trial,
               0 AS paying, 0::bigint AS monthly, 0 AS began, 0 AS returned, 0 AS churned, 0 AS trials_started,
               0 AS trials_converted, 0 AS trials_lost
        FROM perennial.timeline t
        CROSS JOIN LATERAL (
            SELECT (t.valid_from AT TIME ZONE 'UTC')::date AS first_day,
                   (t.access_until AT TIME ZONE 'UTC')::date AS end_day) d
        CROSS JOIN LATERAL (VALUES (d.first_day, 1), (d.end_day, -1)) AS at (day, change)
        WHERE t.access_until IS NOT NULL AND t.known_until IS NULL AND d.first_day < d.end_day
          AND (streams IS NULL OR t.subscription_id = ANY (streams))
        UNION ALL
        SELECT m.stream_id, m.day, COALESCE(m.currency, ''), 0, 0,
               CASE m.kind WHEN 'new' THEN 1 WHEN 'reactivation' THEN 1 WHEN 'churn' THEN -1 ELSE 0 END,
               COALESCE(m.monthly_milliunits, 0), (m.kind = 'new')::int, (m.kind = 'reactivation')::int,
               (m.kind = 'churn')::int, 0, 0, 0
        FROM ledger.mrr_movement_of('infinity', 'UTC', streams, 'infinity') m
        UNION ALL
        SELECT t.stream_id, (happened.at AT TIME ZONE 'UTC')::date, '', 0, 0, 0, 0, 0, 0, 0,
               (happened.kind = 'started')::int, (happened.kind = 'converted')::int, (happened.kind = 'lost')::int
        FROM ledger.trials_of('infinity', streams) t
        CROSS JOIN LATERAL (VALUES ('started', t.started_at), (t.outcome, t.decided_at)) AS happened (kind, at)
        WHERE happened.kind IN ('started', 'converted', 'lost')) moved
    GROUP BY moved.subscription_id, moved.day, moved.currency
    HAVING num_nonnulls(NULLIF(sum(moved.active), 0), NULLIF(sum(moved.trial), 0), NULLIF(sum(moved.paying), 0),
                        NULLIF(sum(moved.monthly), 0), NULLIF(sum(moved.began), 0), NULLIF(sum(moved.returned), 0),
                        NULLIF(sum(moved.churned), 0), NULLIF(sum(moved.trials_started), 0),
                        NULLIF(sum(moved.trials_converted), 0), NULLIF(sum(moved.trials_lost), 0)) > 0
$$;

-- Every subscription is summarised again; until then reports read the history.
UPDATE ledger.summary_progress SET round_at = 0, rounds = 0, price_mark = NULL;

-- Webhooks say the same money as reports.

CREATE OR REPLACE FUNCTION ledger.money_of(subscriptions bigint[], purchases bigint[], since timestamptz, until timestamptz)
RETURNS TABLE (
    subscription_id bigint, purchase_id bigint, recorded_at timestamptz, occurred_at timestamptz, kind text,
    product_id text, amount_milliunits bigint, currency text, price_basis text)
LANGUAGE sql STABLE AS $$
    WITH bought AS (
        SELECT k.bundle_id, c.stream_id AS subscription_id, NULL::bigint AS purchase_id, c.charge_id, c.product_id, c.quantity,
               c.purchased_at, c.expires_at, c.cancelled_at, c.is_upgraded, c.offer, c.is_family_shared, c.first_known_at,
               c.cancellation_known_at, c.price_milliunits, c.currency, c.revocation_percentage, c.seats, c.revoked_seats,
               c.refunded_share, lead(c.first_known_at) OVER stream AS next_known_at,
               CASE WHEN c.cancelled_at IS NULL AND lag(c.expires_at) OVER stream > c.purchased_at THEN c.purchased_at
                    ELSE lead(c.purchased_at) OVER stream END AS followed_at
        FROM perennial.period_version c JOIN perennial.subscription_key k USING (stream_id)
        WHERE c.stream_id = ANY(subscriptions) AND c.known_until IS NULL
        WINDOW stream AS (PARTITION BY c.stream_id ORDER BY c.purchased_at, c.charge_id)
        UNION ALL
        SELECT a.bundle_id, NULL, p.purchase_id, p.purchase_id, p.product_id, p.quantity, p.purchased_at, NULL, p.revoked_at, false,
               NULL, ledger.is_shared(p.facts #>> '{ownership,word}'), p.first_recorded_at, p.revocation_recorded_at,
               (p.facts #>> '{price,milliunits}')::bigint, p.facts #>> '{price,currency}',
               (p.facts #>> '{refunded,percentage}')::int, NULL, 0,
               CASE WHEN p.facts #>> '{revocation,reason}' NOT IN ('0', '1') THEN NULL
                    ELSE COALESCE((p.facts #>> '{refunded,percentage}')::int / 100000.0, 1) END, NULL, NULL
        FROM ledger.purchase p JOIN ledger.app a USING (app_id) WHERE p.purchase_id = ANY(purchases) AND p.version > 0
    ), charge AS (
        SELECT b.*, CASE WHEN r.is_rest_refunded THEN b.followed_at
                         WHEN b.is_upgraded THEN LEAST(b.cancelled_at, b.followed_at) END AS replaced_at, r.is_rest_refunded
        FROM bought b
        CROSS JOIN LATERAL (
            SELECT COALESCE(b.is_upgraded AND b.revocation_percentage = 100000 AND b.cancelled_at >= b.purchased_at
                            AND COALESCE(b.cancelled_at NOT BETWEEN b.followed_at - interval '1 minute'
                                                                AND b.followed_at + interval '1 minute',
                                         b.cancelled_at >= b.expires_at), false) AS is_rest_refunded) r
        WHERE NOT b.is_family_shared AND b.offer IS DISTINCT FROM 'trial'
          AND (b.first_known_at BETWEEN since AND until OR b.cancellation_known_at BETWEEN since AND until
               OR b.next_known_at BETWEEN since AND until)
    )
    SELECT c.subscription_id, c.purchase_id, moved.recorded_at, moved.occurred_at, moved.kind, c.product_id, moved.amount,
           price.currency, basis.word
    FROM charge c
    CROSS JOIN LATERAL (
        -- What uploads reported that may be about it.
        SELECT ARRAY(
            SELECT s FROM perennial.period_stated_price s WHERE s.stream_id = c.subscription_id
            UNION ALL
            SELECT ROW(s.*)::perennial.period_stated_price FROM perennial.purchase_stated_price s
            WHERE s.stream_id = c.purchase_id) AS stated OFFSET 0) reported
    LEFT JOIN LATERAL (
        -- A price is about the newest thing bought when the upload came.
        SELECT w.price_milliunits, w.currency
        FROM unnest(reported.stated) w
        WHERE w.price_milliunits IS NOT NULL AND c.purchased_at <= w.stated_at + interval '5 minutes'
          AND NOT EXISTS (
              SELECT FROM perennial.period_stated_price s
              CROSS JOIN LATERAL (
                  SELECT FROM perennial.period_version v
                  WHERE v.stream_id = s.stream_id AND v.known_until IS NULL AND NOT v.is_family_shared
                    AND v.purchased_at <= w.stated_at + interval '5 minutes'
                    AND (v.purchased_at > c.purchased_at
                         OR v.purchased_at = c.purchased_at AND c.purchase_id IS NULL AND v.charge_id < c.charge_id)
                  LIMIT 1) newer
              WHERE s.stated_id = w.stated_id)
          AND NOT EXISTS (
              SELECT FROM perennial.purchase_stated_price s
              JOIN ledger.purchase v ON v.purchase_id = s.stream_id
              WHERE s.stated_id = w.stated_id AND v.version > 0 AND v.purchased_at <= w.stated_at + interval '5 minutes'
                AND (v.purchased_at > c.purchased_at
                     OR v.purchased_at = c.purchased_at AND (c.purchase_id IS NULL OR v.purchase_id < c.charge_id)))
        ORDER BY w.stated_at DESC, w.stated_id DESC LIMIT 1) stated ON true
    LEFT JOIN LATERAL (
        SELECT w.storefront
        FROM (SELECT s.storefront,
                     CASE WHEN row_number() OVER stated = 1 THEN '-infinity' ELSE s.stated_at - interval '1 day' END AS since,
                     COALESCE(lead(s.stated_at) OVER stated - interval '1 day', 'infinity') AS until
              FROM unnest(reported.stated) s WHERE s.storefront IS NOT NULL
              WINDOW stated AS (ORDER BY s.stated_at, s.stated_id)) w
        WHERE w.since <= c.purchased_at AND c.purchased_at < w.until) place ON true
    LEFT JOIN perennial.price_history there
        ON there.bundle_id = c.bundle_id AND there.product_id = c.product_id AND there.storefront = place.storefront
        AND there.valid_from <= c.purchased_at AND c.purchased_at < there.valid_until AND there.known_until IS NULL
    LEFT JOIN perennial.price_history anywhere
        ON anywhere.bundle_id = c.bundle_id AND anywhere.product_id = c.product_id AND anywhere.storefront = ''
        AND anywhere.valid_from <= c.purchased_at AND c.purchased_at < anywhere.valid_until AND anywhere.known_until IS NULL
    CROSS JOIN LATERAL (
        SELECT ledger.price_basis(c.offer, c.is_family_shared, c.price_milliunits, stated.price_milliunits,
                                  there.price_milliunits, anywhere.price_milliunits) AS word) basis
    CROSS JOIN LATERAL (
        SELECT CASE basis.word WHEN 'apple' THEN c.price_milliunits
                               WHEN 'stated' THEN c.quantity * stated.price_milliunits
                               WHEN 'storefront' THEN c.quantity * there.price_milliunits
                               WHEN 'default' THEN c.quantity * anywhere.price_milliunits END AS amount,
               CASE basis.word WHEN 'apple' THEN c.currency WHEN 'stated' THEN stated.currency
                               WHEN 'storefront' THEN there.currency WHEN 'default' THEN anywhere.currency
                               END AS currency) price
    CROSS JOIN LATERAL (
        SELECT CASE WHEN c.replaced_at < c.expires_at AND c.refunded_share IS NOT NULL THEN
            round(price.amount * COALESCE(
                CASE WHEN NOT c.is_rest_refunded THEN c.revocation_percentage / 100000.0 END,
                LEAST(1, extract(epoch FROM c.expires_at - c.replaced_at)
                         / NULLIF(extract(epoch FROM c.expires_at - c.purchased_at), 0))))::bigint END AS amount) repaid
    CROSS JOIN LATERAL (
        SELECT 'charge' AS kind, c.purchased_at AS occurred_at, price.amount, c.first_known_at AS recorded_at
        UNION ALL
        SELECT 'refund', c.cancelled_at,
               CASE WHEN c.is_rest_refunded THEN COALESCE(repaid.amount, 0) - price.amount
                    ELSE -round(price.amount * c.refunded_share)::bigint END,
               c.cancellation_known_at
        WHERE c.cancelled_at IS NOT NULL AND (c.is_rest_refunded OR NOT c.is_upgraded)
        UNION ALL
        SELECT 'refund', c.cancellation_known_at,
               -round(price.amount * c.revoked_seats / GREATEST(1, c.seats)::numeric)::bigint, c.cancellation_known_at
        WHERE c.cancelled_at IS NULL AND c.revoked_seats > 0
        UNION ALL
        SELECT 'proration', COALESCE(c.replaced_at, c.expires_at), -repaid.amount,
               COALESCE(CASE WHEN c.is_rest_refunded THEN c.next_known_at ELSE c.cancellation_known_at END,
                        c.first_known_at)
        WHERE c.is_upgraded AND COALESCE(c.replaced_at < c.expires_at, NOT c.is_rest_refunded)) moved
$$;
