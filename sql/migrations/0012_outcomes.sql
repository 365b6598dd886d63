-- What charges come to: revenue with Apple's commission, stretches of paying, renewals and trials, as known at an instant.

CREATE FUNCTION ledger.seat_refunds_of(known_at timestamptz, streams bigint[])
RETURNS TABLE (stream_id bigint, charge_id bigint, at timestamptz, before int, after int)
LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT k.stream_id, k.charge_id, k.at,
           COALESCE(lag(k.revoked) OVER (PARTITION BY k.stream_id, k.charge_id ORDER BY k.revoked), 0), k.revoked
    FROM (
        SELECT r.stream_id, r.charge_id, r.revoked,
               min(min(r.at)) OVER (PARTITION BY r.stream_id, r.charge_id ORDER BY r.revoked DESC) AS at
        FROM (
            -- A number that was taken back since never counts; a refund of all takes none of these back.
            SELECT v.stream_id, v.charge_id, v.cancelled_at, v.cancellation_known_at AS at,
                   LEAST(v.revoked_seats, CASE WHEN first_value(v.cancelled_at) OVER newest IS NULL
                                               THEN first_value(v.revoked_seats) OVER newest END) AS revoked
            FROM perennial.period_version v
            WHERE v.seats IS NOT NULL AND v.known_from <= seat_refunds_of.known_at
              AND (streams IS NULL OR v.stream_id = ANY (streams))
            WINDOW newest AS (PARTITION BY v.stream_id, v.charge_id ORDER BY v.known_from DESC)) r
        WHERE r.cancelled_at IS NULL AND r.revoked > 0
        GROUP BY r.stream_id, r.charge_id, r.revoked) k
$$;
COMMENT ON FUNCTION ledger.seat_refunds_of IS
    'When it was learnt that Apple had refunded some of the seats of a period, as known at an instant: how many were '
    'refunded before and after. Apple gives no date for them. What a refund of the whole period adds is not among them';

CREATE FUNCTION ledger.followed_at(
    stream_id bigint, charge_id bigint, purchased_at timestamptz, expires_at timestamptz, known_at timestamptz)
RETURNS timestamptz
LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT min(o.purchased_at) FROM perennial.period_version o
    WHERE o.stream_id = followed_at.stream_id AND o.charge_id <> followed_at.charge_id
      AND o.purchased_at >= followed_at.purchased_at
      AND NOT (o.is_one_of_several AND o.expires_at = followed_at.expires_at)
      AND o.known_from <= followed_at.known_at AND COALESCE(o.known_until > followed_at.known_at, true)
$$;
COMMENT ON FUNCTION ledger.followed_at IS
    'When the next period began after one that has several transactions, as known at an instant: the others are none';

CREATE FUNCTION ledger.moves_of(
    price bigint, purchased_at timestamptz, expires_at timestamptz, cancelled_at timestamptz, replaced_at timestamptz,
    is_upgraded boolean, is_rest_refunded boolean, revocation_percentage int, refunded_share numeric, seats int,
    seats_at timestamptz[], seats_before int[], seats_after int[])
RETURNS TABLE (kind text, occurred_at timestamptz, amount bigint, is_of_seats boolean)
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT moved.*
    -- What a refund or a proration of the whole is about: the price without the seats that were refunded before.
    FROM (SELECT (price - COALESCE(round(
        price * seats_after[cardinality(seats_after)] / GREATEST(1, seats)::numeric), 0))::bigint AS amount) kept
    CROSS JOIN LATERAL (
        SELECT CASE WHEN replaced_at < expires_at AND refunded_share IS NOT NULL THEN
            round(kept.amount * COALESCE(
                CASE WHEN NOT is_rest_refunded THEN revocation_percentage / 100000.0 END,
                LEAST(1, extract(epoch FROM expires_at - replaced_at)
                         / NULLIF(extract(epoch FROM expires_at - purchased_at), 0))))::bigint END AS amount) repaid
    CROSS JOIN LATERAL (
        SELECT 'charge', purchased_at, price, false
        UNION ALL
        SELECT 'refund', cancelled_at,
               CASE WHEN is_rest_refunded THEN COALESCE(repaid.amount, 0) - kept.amount
                    ELSE -round(kept.amount * refunded_share)::bigint END, false
        WHERE cancelled_at IS NOT NULL AND (is_rest_refunded OR NOT is_upgraded)
        UNION ALL
        -- Apple gives no date where it refunds some of the seats.
        SELECT 'refund', s.at, (round(price * s.before / GREATEST(1, seats)::numeric)
                                - round(price * s.after / GREATEST(1, seats)::numeric))::bigint, true
        FROM unnest(seats_at, seats_before, seats_after) AS s(at, before, after)
        UNION ALL
        -- If another subscription replaced it and Apple does not say when, neither the instant nor the amount is known.
        SELECT 'proration', COALESCE(replaced_at, expires_at), -repaid.amount, false
        WHERE is_upgraded AND COALESCE(replaced_at < expires_at, NOT is_rest_refunded)) moved
$$;
COMMENT ON FUNCTION ledger.moves_of IS
    'The charge, refunds and proration of a period at a price. A refund or proration is the share that Apple states, else '
    'the whole price or the share of the time that was left. A replaced period that was refunded in full later has both: '
    'a proration by time, and a refund of the rest. Refunded seats (when, how many before and after, in order) are refunds '
    'of their own, and a later refund of the whole is the rest';

-- The function sorts once: it adds up the time that paid service covered over the whole subscription, and subtracts what
-- came before the last gap, and what was still to be served at the charge.
CREATE FUNCTION ledger.revenue_of(known_at timestamptz, streams bigint[])
RETURNS TABLE (
    occurred_at timestamptz, bundle_id text, environment text, charge_kind text, stream_id bigint, charge_id bigint,
    original_transaction_id text, kind text, product_id text, purchased_at timestamptz, offer text, storefront text,
    amount_milliunits bigint, currency text, price_basis text, commission_percent int, commission_reason text,
    proceeds_milliunits bigint, recorded_at timestamptz)
LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT moved.occurred_at, c.bundle_id, c.environment, c.kind, c.stream_id, c.charge_id, c.original_transaction_id,
           moved.kind, c.product_id, c.purchased_at, c.offer, c.storefront, moved.amount, c.currency, c.price_basis,
           cut.percent, cut.reason, round(moved.amount * (100 - cut.percent) / 100.0)::bigint,
           CASE WHEN moved.is_of_seats THEN moved.occurred_at WHEN moved.kind = 'charge' THEN c.first_known_at
                WHEN moved.kind = 'refund' THEN c.cancellation_known_at
                ELSE COALESCE(CASE WHEN c.is_rest_refunded THEN c.next_known_at ELSE c.cancellation_known_at END,
                              c.first_known_at) END
    FROM (
        SELECT served.*, served.service - COALESCE(max(served.service) FILTER (WHERE served.begins_anew) OVER (
                   PARTITION BY served.stream_id, served.kind
                   ORDER BY served.purchased_at, served.charge_id), '0') AS service_before
        FROM (
            SELECT r.*,
                   -- Seats that were added to a period serve no further days, and what runs beside a charge was not served
                   -- before it.
                   sum(CASE WHEN r.is_service
                            THEN GREATEST(r.serves_until - GREATEST(r.purchased_at, r.covered_until), interval '0')
                            ELSE interval '0' END) OVER before
                       - GREATEST(r.covered_until - r.purchased_at, interval '0') AS service,
                   r.purchased_at > r.covered_until + interval '60 days' AS begins_anew
            FROM (
                SELECT s.*, max(s.serves_until) FILTER (WHERE s.is_service) OVER before AS covered_until
                FROM (
                    SELECT k.*, replaced.at AS replaced_at,
                           k.offer IS DISTINCT FROM 'trial' AND NOT k.is_family_shared AND NOT k.is_rest_refunded
                               AND (k.cancelled_at IS NULL OR k.is_upgraded) AS is_service,
                           LEAST(k.expires_at, replaced.at) AS serves_until
                    FROM (
                        SELECT h.*,
                               ledger.is_rest_refunded(h.is_upgraded, h.revocation_percentage, h.purchased_at, h.expires_at,
                                                       h.cancelled_at, h.followed_at) AS is_rest_refunded
                        FROM (
                            SELECT g.*, lead(g.first_known_at) OVER stream AS next_known_at,
                                   -- A sandbox row may not say when it was replaced: when the next period began, or at once
                                   -- if it was charged ahead of a period that another one had already begun to cover. Seats
                                   -- of the same period are neither.
                                   CASE WHEN g.cancelled_at IS NULL AND lag(g.expires_at) OVER stream > g.purchased_at
                                             AND NOT (g.is_one_of_several AND lag(g.expires_at) OVER stream = g.expires_at)
                                        THEN g.purchased_at
                                        WHEN lead(g.is_one_of_several) OVER stream AND lead(g.expires_at) OVER stream = g.expires_at
                                        THEN ledger.followed_at(g.stream_id, g.charge_id, g.purchased_at, g.expires_at, known_at)
                                        ELSE lead(g.purchased_at) OVER stream END AS followed_at
                            FROM ledger.charges_of(known_at, streams) g
                            WINDOW stream AS (PARTITION BY g.stream_id, g.kind ORDER BY g.purchased_at, g.charge_id)) h) k
                    -- The date may be that of a later refund, so a replacement is no later than the next period.
                    CROSS JOIN LATERAL (
                        SELECT CASE WHEN k.is_rest_refunded THEN k.followed_at
                                    WHEN k.is_upgraded THEN LEAST(k.cancelled_at, k.followed_at) END AS at) replaced) s
                WINDOW before AS (
                    PARTITION BY s.stream_id, s.kind ORDER BY s.purchased_at, s.charge_id
                    ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)) r
            WINDOW before AS (
                PARTITION BY r.stream_id, r.kind ORDER BY r.purchased_at, r.charge_id
                ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)) served
    ) c
    LEFT JOIN (
        SELECT s.charge_id, array_agg(s.at ORDER BY s.after) AS ats, array_agg(s.before ORDER BY s.after) AS befores,
               array_agg(s.after ORDER BY s.after) AS afters
        FROM ledger.seat_refunds_of(known_at, streams) s GROUP BY s.charge_id) seat
        ON c.kind = 'subscription' AND seat.charge_id = c.charge_id
    LEFT JOIN perennial.small_business_history small
        ON small.bundle_id = c.bundle_id AND small.valid_from <= c.purchased_at AND c.purchased_at < small.valid_until
        AND small.known_from <= known_at AND COALESCE(small.known_until > known_at, true)
    CROSS JOIN LATERAL (
        -- A year of Apple's calendar may be two hours short of 365 days on ours.
        SELECT CASE WHEN small.bundle_id IS NOT NULL OR c.service_before >= interval '364 days 22 hours' THEN 15
                    ELSE 30 END AS percent,
               CASE WHEN small.bundle_id IS NOT NULL THEN 'small_business'
                    WHEN c.service_before >= interval '364 days 22 hours' THEN 'after_one_year'
                    ELSE 'standard' END AS reason) cut
    CROSS JOIN LATERAL ledger.moves_of(
        c.amount_milliunits, c.purchased_at, c.expires_at, c.cancelled_at, c.replaced_at, c.is_upgraded, c.is_rest_refunded,
        c.revocation_percentage, c.refunded_share, c.seats, seat.ats, seat.befores, seat.afters) moved
    WHERE NOT c.is_family_shared AND c.offer IS DISTINCT FROM 'trial'
$$;
COMMENT ON FUNCTION ledger.revenue_of IS
    'Every charge, refund and proration of a replaced period as known at an instant, signed, with Apple''s '
    'commission: 15 % in the Small Business Program, 15 % after a year of paid service, else 30 %. Paid service '
    'adds up what the paid periods of the subscription had served at the charge: refunded ones do not count, replaced ones '
    'count until their replacement (ledger.moves_of). Paid service begins anew after more than 60 days without, from the '
    'end of paid service; trials, family sharing and refunded periods are none. Proceeds are before taxes, which Apple '
    'does not report';

-- In PL/pgSQL, so that it is not put where it is used: its common table expressions would forbid parallel workers there.
CREATE FUNCTION ledger.group_prices_of(known_at timestamptz, streams bigint[])
RETURNS TABLE (charge_id bigint, begins_at timestamptz, paid_from timestamptz, seats int, price_milliunits bigint)
LANGUAGE plpgsql STABLE PARALLEL SAFE AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    WITH refund AS (
        SELECT s.charge_id, array_agg(s.at ORDER BY s.after) AS ats, array_agg(s.after ORDER BY s.after) AS afters
        FROM ledger.seat_refunds_of(known_at, streams) s GROUP BY s.charge_id
    ), part AS (
        SELECT o.stream_id, o.product_id, o.expires_at, o.charge_id, o.purchased_at,
               CASE WHEN NOT o.is_upgraded THEN o.cancelled_at END AS gone_at, o.seats, o.price_milliunits, o.currency,
               min(o.purchased_at) OVER (PARTITION BY o.stream_id, o.product_id, o.expires_at) AS paid_from, r.ats, r.afters
        FROM perennial.period_version o LEFT JOIN refund r USING (charge_id)
        WHERE o.seats IS NOT NULL AND o.known_from <= known_at AND COALESCE(o.known_until > known_at, true)
          AND (streams IS NULL OR o.stream_id = ANY (streams))
    ), step AS (
        SELECT p.stream_id, p.product_id, p.expires_at, p.purchased_at AS at FROM part p
        UNION SELECT p.stream_id, p.product_id, p.expires_at, p.gone_at FROM part p
        UNION SELECT p.stream_id, p.product_id, p.expires_at, GREATEST(r.at, p.purchased_at) FROM part p, unnest(p.ats) r (at))
    SELECT (array_agg(p.charge_id ORDER BY p.purchased_at DESC, p.charge_id DESC))[1], s.at, min(p.paid_from),
           sum(kept.seats)::int,
           CASE WHEN bool_and(p.price_milliunits IS NOT NULL OR p.currency IS NULL)
                THEN sum(round(p.price_milliunits * kept.seats / GREATEST(1, p.seats)::numeric))::bigint END
    FROM step s JOIN part p USING (stream_id, product_id, expires_at)
    CROSS JOIN LATERAL (
        SELECT p.seats - COALESCE(max(r.after), 0) AS seats FROM unnest(p.ats, p.afters) r (at, after) WHERE r.at <= s.at) kept
    WHERE p.purchased_at <= s.at AND COALESCE(s.at < p.gone_at, true) AND s.at < s.expires_at
    GROUP BY s.stream_id, s.product_id, s.expires_at, s.at;
END $$;
COMMENT ON FUNCTION ledger.group_prices_of IS
    'What groups pay for each period, from each instant on at which seats were bought or refunded: what its transactions cost '
    'that were not taken back until then, without refunded seats. Those that Apple refunded without a date count until that '
    'was learnt. charge_id is the newest of these transactions, paid_from the begin of the period. The sum is not known where '
    'one of them cannot be read';

CREATE FUNCTION ledger.charge_runs_of(known_at timestamptz, streams bigint[])
RETURNS TABLE (
    stream_id bigint, charge_id bigint, product_id text, quantity int, offer text, is_family_shared boolean,
    begins_at timestamptz, paid_from timestamptz, first_expires_at timestamptz, price_milliunits bigint, currency text,
    plan text)
LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT c.stream_id, min(c.charge_id), c.product_id, c.units, c.offer, c.is_family_shared, min(c.begins_at),
           min(c.paid_from), min(c.expires_at), c.run_price, c.currency, c.plan
    FROM (
        SELECT p.*, catalog.has_period IS TRUE AS has_period, p.purchased_at = ANY (own.stated) IS TRUE AS is_stated,
               COALESCE(width_bucket(p.purchased_at, catalog.instants), 0)
                   + COALESCE(width_bucket(p.purchased_at, own.instants), 0) AS run
        FROM (
            SELECT v.*, COALESCE(paid.begins_at, v.purchased_at) AS begins_at,
                   COALESCE(paid.paid_from, v.purchased_at) AS paid_from, COALESCE(paid.seats, v.quantity) AS units,
                   CASE WHEN v.seats IS NULL THEN v.price_milliunits ELSE paid.price_milliunits END AS run_price
            FROM perennial.period_version v
            LEFT JOIN ledger.group_prices_of(known_at, streams) paid ON paid.charge_id = v.charge_id
            WHERE v.seats IS NULL OR paid.begins_at IS NOT NULL) p
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
    GROUP BY c.stream_id, c.product_id, c.run, c.units, c.offer, c.is_family_shared, c.run_price, c.currency, c.plan,
             CASE WHEN c.offer IS NOT NULL OR c.is_stated OR NOT c.has_period THEN c.charge_id END,
             -- What a group pays changes within a period, and may come back to what it was.
             CASE WHEN c.seats IS NOT NULL THEN c.begins_at END
$$;
COMMENT ON FUNCTION ledger.charge_runs_of IS
    'Charges of one product and subscription that follow each other and cost the same, as one run. A run ends where '
    'a charge with an offer, a price of its own, another quantity, another plan or no price begins, and where Apple''s '
    'price, the catalog''s or the storefront changes. A group has a run for each step of ledger.group_prices_of, and as quantity '
    'the seats that are left';

CREATE FUNCTION ledger.paying_of(known_at timestamptz, streams bigint[])
RETURNS TABLE (
    bundle_id text, environment text, stream_id bigint, charge_id bigint, original_transaction_id text, product_id text,
    paying_from timestamptz, paying_until timestamptz, ended_state text, ended_reason text, offer text,
    monthly_milliunits bigint, currency text, price_basis text)
LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT t.bundle_id, t.environment, t.subscription_id, p.charge_id, t.original_transaction_id, t.product_id,
           GREATEST(t.valid_from, p.begins_at), LEAST(t.open_until, p.until),
           CASE WHEN t.open_until < t.valid_until THEN t.state ELSE t.next_state END,
           CASE WHEN t.open_until < t.valid_until THEN t.reason ELSE t.next_reason END,
           p.offer, CASE WHEN p.monthly IS NOT NULL AND t.is_failing THEN 0 ELSE p.monthly END,
           CASE WHEN p.monthly IS NOT NULL THEN p.currency END, p.price_basis
    FROM (
        SELECT h.*, failing.is_failing,
               CASE WHEN failing.is_failing THEN LEAST(h.valid_until, h.valid_from + interval '95 days')
                    ELSE h.access_until END AS open_until,
               lead(h.state) OVER stream AS next_state, lead(h.reason) OVER stream AS next_reason
        FROM perennial.timeline h
        CROSS JOIN LATERAL (SELECT h.state = 'billing_retry' AND h.access_until IS NULL AS is_failing) failing
        WHERE h.known_from <= known_at AND COALESCE(h.known_until > known_at, true)
          AND (streams IS NULL OR h.subscription_id = ANY (streams))
        WINDOW stream AS (PARTITION BY h.subscription_id ORDER BY h.valid_from)
    ) t
    JOIN (
        SELECT r.stream_id, r.charge_id, r.product_id, r.offer, r.plan, r.begins_at,
               lead(r.begins_at) OVER (
                   PARTITION BY r.stream_id, r.product_id
                   ORDER BY r.begins_at, r.first_expires_at, r.charge_id) AS until,
               -- The catalog's price is one of its period. Apple's price of a payment of a term is one month's; a plan that
               -- is not known lasts as long as its row, and so does a month of a yearly product, which verifyReceipt
               -- shows without its plan.
               round(price.amount / NULLIF(CASE
                   WHEN price.basis IN ('storefront', 'default') THEN ledger.months(d.period, r.paid_from, r.first_expires_at)
                   WHEN r.plan = 'MONTHLY' THEN 1
                   ELSE ledger.months(
                       CASE WHEN r.offer IS NULL AND COALESCE(r.plan, 'BILLED_UPFRONT') = 'BILLED_UPFRONT'
                                 AND NOT (r.plan IS NULL AND ledger.looks_monthly(d.period, r.paid_from, r.first_expires_at))
                            THEN d.period END, r.paid_from, r.first_expires_at) END, 0))::bigint
                   AS monthly,
               price.currency, price.basis AS price_basis
        FROM ledger.charge_runs_of(known_at, streams) r
        JOIN perennial.subscription_key n USING (stream_id)
        LEFT JOIN perennial.product_now d ON d.bundle_id = n.bundle_id AND d.product_id = r.product_id
        LEFT JOIN ledger.stated_charge_price(known_at, streams) stated
            ON NOT stated.is_purchase AND stated.charge_id = r.charge_id
        LEFT JOIN ledger.storefronts_of(known_at, streams) place
            ON place.stream_id = r.stream_id AND place.valid_from <= r.begins_at AND r.begins_at < place.valid_until
        LEFT JOIN LATERAL ledger.catalog_price(
            n.bundle_id, r.product_id, place.storefront, r.begins_at, known_at) there ON true
        LEFT JOIN LATERAL ledger.catalog_price(n.bundle_id, r.product_id, '', r.begins_at, known_at) anywhere ON true
        CROSS JOIN LATERAL ledger.price_of(
            r.offer, r.is_family_shared, r.plan, r.quantity, r.price_milliunits, r.currency, stated.price_milliunits,
            stated.currency, there.price_milliunits, there.currency, anywhere.price_milliunits, anywhere.currency) price
    ) p ON p.stream_id = t.subscription_id AND p.product_id = t.product_id
        AND p.begins_at < t.open_until AND COALESCE(p.until > t.valid_from, true)
        -- A payment of a term that failed is owed until Apple gives up.
        AND (p.plan = 'MONTHLY' OR NOT t.is_failing)
    WHERE t.open_until IS NOT NULL AND p.price_basis IS NOT NULL AND p.offer IS DISTINCT FROM 'trial'
      AND COALESCE(p.until > p.begins_at, true)
      -- A period that moved to another customer's subscription is paid there, although who paid keeps access here.
      AND NOT (t.state = 'awaiting_renewal' AND t.reason = 'replacement' AND NOT EXISTS (
          SELECT FROM perennial.period_version v
          WHERE v.stream_id = t.subscription_id AND v.purchased_at <= t.valid_from AND v.expires_at > t.valid_from
            AND v.known_from <= known_at AND COALESCE(v.known_until > known_at, true)))
$$;
COMMENT ON FUNCTION ledger.paying_of IS
    'Stretches at one price in which a subscription was paying: it gave access, and the newest period that had '
    'begun was a charge. Grace and the wait for a renewal go on at the last price; a refunded period pays until its '
    'refund; a term of payments goes on at 0 while Apple tries a failed one. ended_state and ended_reason are what came after the stretch; charge_id is one of its charges; '
    'monthly_milliunits is the price of a month in thousandths of currency';

CREATE FUNCTION ledger.period_events_of(known_at timestamptz, streams bigint[])
RETURNS TABLE (stream_id bigint, charge_id bigint, kind text)
LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT DISTINCT ON (t.charge_id) t.stream_id, t.charge_id, t.kind
    FROM (
        SELECT e.stream_id, a.charge_id, e.kind, e.recorded_at, e.version, e.ordinal
        FROM perennial.subscription_event e
        JOIN perennial.period_alias a
            -- The second is an expression that the planner knows nothing about, else it takes such pairs to be rare.
            ON a.transaction_id = e.detail ->> 'transaction_id' AND COALESCE(a.stream_id = e.stream_id, false)
        WHERE e.kind IN ('trial.converted', 'subscription.recovered', 'subscription.renewed', 'subscription.reactivated',
                         'product.changed')
          AND e.recorded_at <= known_at AND (streams IS NULL OR e.stream_id = ANY (streams))
        UNION ALL
        SELECT m.stream_id, m.charge_id, e.kind, e.recorded_at, e.version, e.ordinal
        FROM perennial.moved_period m
        JOIN perennial.period_alias a ON a.charge_id = m.former_charge_id
        JOIN perennial.subscription_event e
            ON e.stream_id = m.former_stream_id AND e.detail ->> 'transaction_id' = a.transaction_id
        WHERE e.kind IN ('trial.converted', 'subscription.recovered', 'subscription.renewed', 'subscription.reactivated',
                         'product.changed')
          AND e.recorded_at <= known_at AND m.known_from <= known_at AND COALESCE(m.known_until > known_at, true)
          AND (streams IS NULL OR m.stream_id = ANY (streams))) t
    ORDER BY t.charge_id, t.kind = 'product.changed', t.recorded_at DESC, t.version DESC, t.ordinal DESC
$$;
COMMENT ON FUNCTION ledger.period_events_of IS
    'The event of each period that appeared after first sight: one of the four kinds that say how it came, or '
    'product.changed if it replaced another period at once. A period that moved has it where it was';

CREATE FUNCTION ledger.renewals_of(known_at timestamptz, streams bigint[])
RETURNS TABLE (
    bundle_id text, environment text, stream_id bigint, product_id text, expires_at timestamptz,
    next_purchased_at timestamptz, next_is_paid boolean, was_awaited boolean)
LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT k.bundle_id, k.environment, p.stream_id, p.product_id, p.expires_at, p.next_purchased_at,
           p.next_is_paid AND next.kind <> 'subscription.reactivated',
           COALESCE(next.kind = 'subscription.recovered', false)
    FROM (
        SELECT c.stream_id, c.product_id, c.expires_at, paid.is_paid, c.plan, c.payment_number, c.payments,
               NOT c.is_upgraded AND COALESCE(c.cancelled_at >= c.expires_at, true)
                   -- Of several transactions of a period one is enough.
                   OR c.is_one_of_several AND EXISTS (
                       SELECT FROM perennial.period_version o
                       WHERE o.stream_id = c.stream_id AND o.expires_at = c.expires_at AND o.product_id = c.product_id
                         AND NOT o.is_upgraded AND COALESCE(o.cancelled_at >= o.expires_at, true)
                         AND o.known_from <= known_at AND COALESCE(o.known_until > known_at, true)) AS comes_to_its_end,
               lead(c.charge_id) OVER stream AS next_charge_id, lead(c.purchased_at) OVER stream AS next_purchased_at,
               lead(paid.is_paid) OVER stream AS next_is_paid
        FROM perennial.period_version c
        -- What is neither a trial nor shared by the family was paid.
        CROSS JOIN LATERAL (SELECT NOT c.is_family_shared AND c.offer IS DISTINCT FROM 'trial' AS is_paid) paid
        WHERE c.known_from <= known_at AND COALESCE(c.known_until > known_at, true)
          -- Seats that were added to a period are of its transaction.
          AND NOT (c.is_one_of_several AND EXISTS (
              SELECT FROM perennial.period_version o
              WHERE o.stream_id = c.stream_id AND o.expires_at = c.expires_at
                AND (o.purchased_at, o.charge_id) < (c.purchased_at, c.charge_id)
                AND COALESCE(o.cancelled_at > o.purchased_at, true)
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
    -- Within a term the next payment is owed: only its last one can renew or not. Whether a payment without a number, or by a
    -- plan that is not known, is the last is not known.
    WHERE p.is_paid AND p.comes_to_its_end
      AND CASE COALESCE(p.plan, 'BILLED_UPFRONT')
              WHEN 'BILLED_UPFRONT' THEN true WHEN 'MONTHLY' THEN p.payment_number >= p.payments END
$$;
COMMENT ON FUNCTION ledger.renewals_of IS
    'The paid periods that come to their end, neither refunded before nor replaced, with what came next by the '
    'event of the next period. next_is_paid: it was paid for, and did not follow a lapse; was_awaited: Apple '
    'charged for it late, after a failure';

CREATE FUNCTION ledger.trial_runs_of(known_at timestamptz, streams bigint[])
RETURNS TABLE (
    bundle_id text, environment text, stream_id bigint, original_transaction_id text, product_id text,
    started_at timestamptz, ends_at timestamptz, paid_at timestamptz, refunded_at timestamptz, lost_at timestamptz)
LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT r.bundle_id, r.environment, r.stream_id, r.original_transaction_id, r.product_id, r.started_at, r.ends_at,
           CASE WHEN next.went_on THEN r.next_purchased_at END, CASE WHEN next.went_on THEN r.next_refunded_at END,
           CASE WHEN was_over AND NOT next.went_on AND (r.next_purchased_at IS NOT NULL OR NOT was_failing) THEN r.ends_at END
    FROM (
        SELECT p.bundle_id, p.environment, p.stream_id, p.original_transaction_id, min(p.charge_id) AS charge_id,
               min(p.product_id) AS product_id,
               min(p.purchased_at) AS started_at, max(LEAST(p.expires_at, p.cancelled_at)) AS ends_at,
               max(p.next_charge_id) FILTER (WHERE p.is_last) AS next_charge_id,
               max(p.next_purchased_at) FILTER (WHERE p.is_last) AS next_purchased_at,
               max(p.next_refunded_at) FILTER (WHERE p.is_last) AS next_refunded_at
        FROM (
            SELECT b.*, count(*) FILTER (WHERE b.begins) OVER (
                       PARTITION BY b.stream_id ORDER BY b.purchased_at, b.charge_id) AS run
            FROM (
                SELECT c.*, lag(c.offer) OVER stream IS DISTINCT FROM c.offer AS begins,
                       lead(c.offer) OVER stream IS DISTINCT FROM c.offer AS is_last,
                       lead(c.charge_id) OVER stream AS next_charge_id,
                       lead(c.purchased_at) OVER stream AS next_purchased_at,
                       lead(CASE WHEN NOT c.is_upgraded THEN c.cancelled_at END) OVER stream AS next_refunded_at
                FROM perennial.period_history c
                WHERE NOT c.is_family_shared AND COALESCE(c.cancelled_at > c.purchased_at, true)
                  AND c.known_from <= known_at AND COALESCE(c.known_until > known_at, true)
                  AND (streams IS NULL OR c.stream_id = ANY (streams))
                  AND c.stream_id IN (
                      SELECT h.stream_id FROM perennial.period_version h
                      WHERE h.offer = 'trial' AND (streams IS NULL OR h.stream_id = ANY (streams)))
                WINDOW stream AS (PARTITION BY c.stream_id ORDER BY c.purchased_at, c.charge_id)) b) p
        WHERE p.offer = 'trial'
        GROUP BY p.bundle_id, p.environment, p.stream_id, p.original_transaction_id, p.run) r
    -- Where a trial that moved was known first, it was seen first.
    LEFT JOIN (
        SELECT DISTINCT ON (m.charge_id) m.charge_id, m.former_charge_id, m.former_stream_id
        FROM perennial.moved_period m
        WHERE m.known_from <= known_at AND COALESCE(m.known_until > known_at, true)
          AND (streams IS NULL OR m.stream_id = ANY (streams))
        ORDER BY m.charge_id, m.former_charge_id) before ON before.charge_id = r.charge_id
    JOIN perennial.subscription_event first
        ON first.stream_id = CASE WHEN before.former_charge_id < r.charge_id THEN before.former_stream_id
                                  ELSE r.stream_id END
        AND first.kind IN ('subscription.started', 'trial.started') AND first.recorded_at <= known_at
    LEFT JOIN ledger.period_events_of(known_at, streams) reported ON reported.charge_id = r.next_charge_id
    CROSS JOIN LATERAL (SELECT first.as_of >= r.ends_at AS was_over) seen
    CROSS JOIN LATERAL (
        SELECT was_over AND EXISTS (
            SELECT FROM perennial.timeline t
            WHERE t.subscription_id = r.stream_id AND t.valid_from <= r.ends_at AND r.ends_at < t.valid_until
              AND t.known_from <= known_at AND COALESCE(t.known_until > known_at, true)
              AND t.state IN ('grace_period', 'billing_retry')) AS was_failing) at_end
    CROSS JOIN LATERAL (
        SELECT COALESCE(reported.kind, ledger.kind_of_return(
                   r.environment, r.next_purchased_at - r.ends_at, was_failing AND r.next_purchased_at > r.ends_at))
                   <> 'subscription.reactivated' AS went_on) next
$$;
COMMENT ON FUNCTION ledger.trial_runs_of IS
    'Trials of one subscription that follow each other, as one, when they became paid, and when that first charge was '
    'refunded. The feed says nothing of how trials went that had ended at first sight: their periods do, and lost_at is '
    'the end of those that were over then without a charge to come';
