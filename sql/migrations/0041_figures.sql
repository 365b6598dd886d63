-- Refunds of replaced periods, the cause of churn on days with several charges, and who paid before.

CREATE OR REPLACE FUNCTION ledger.revenue_of(known_at timestamptz, streams bigint[])
RETURNS TABLE (
    occurred_at timestamptz, bundle_id text, environment text, charge_kind text, stream_id bigint, charge_id bigint,
    original_transaction_id text, kind text, product_id text, purchased_at timestamptz, offer text, storefront text,
    amount_milliunits bigint, currency text, price_basis text, commission_percent int, commission_reason text,
    proceeds_milliunits bigint, recorded_at timestamptz)
LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT moved.occurred_at, c.bundle_id, c.environment, c.kind, c.stream_id, c.charge_id, c.original_transaction_id,
           moved.kind, c.product_id, c.purchased_at, c.offer, c.storefront, moved.amount, c.currency, c.price_basis,
           cut.percent, cut.reason, round(moved.amount * (100 - cut.percent) / 100.0)::bigint, moved.recorded_at
    FROM (
        SELECT served.*, served.service - COALESCE(max(served.service) FILTER (WHERE served.begins_anew) OVER (
                   PARTITION BY served.stream_id, served.kind
                   ORDER BY served.purchased_at, served.charge_id), '0') AS service_before
        FROM (
            SELECT r.*,
                   sum(CASE WHEN r.is_service THEN GREATEST(r.serves_until - r.purchased_at, interval '0')
                            ELSE interval '0' END) OVER before AS service,
                   r.purchased_at > max(r.serves_until) FILTER (WHERE r.is_service) OVER before + interval '60 days'
                       AS begins_anew
            FROM (
                SELECT k.*, replaced.at AS replaced_at,
                       k.offer IS DISTINCT FROM 'trial' AND NOT k.is_family_shared AND NOT k.is_rest_refunded
                           AND (k.cancelled_at IS NULL OR k.is_upgraded) AS is_service,
                       LEAST(k.expires_at, replaced.at) AS serves_until
                FROM (
                    SELECT h.*,
                           -- The replacement brings a repayment, dated as it is. A refund of the whole price with
                           -- another date came beside it (Period.restRefundedAt in Swift).
                           COALESCE(h.is_upgraded AND h.revocation_percentage = 100000 AND h.cancelled_at >= h.purchased_at
                                    AND COALESCE(h.cancelled_at NOT BETWEEN h.followed_at - interval '1 minute'
                                                                        AND h.followed_at + interval '1 minute',
                                                 h.cancelled_at >= h.expires_at), false) AS is_rest_refunded
                    FROM (
                        SELECT g.*, lead(g.first_known_at) OVER stream AS next_known_at,
                               -- A sandbox row may not say when it was replaced: when the next period began, or at once
                               -- if it was charged ahead of a period that another one had already begun to cover.
                               CASE WHEN g.cancelled_at IS NULL AND lag(g.expires_at) OVER stream > g.purchased_at
                                    THEN g.purchased_at
                                    ELSE lead(g.purchased_at) OVER stream END AS followed_at
                        FROM ledger.charges_of(known_at, streams) g
                        WINDOW stream AS (PARTITION BY g.stream_id, g.kind ORDER BY g.purchased_at, g.charge_id)) h) k
                -- The date may be that of a later refund, so a replacement is no later than the next period.
                CROSS JOIN LATERAL (
                    SELECT CASE WHEN k.is_rest_refunded THEN k.followed_at
                                WHEN k.is_upgraded THEN LEAST(k.cancelled_at, k.followed_at) END AS at) replaced) r
            WINDOW before AS (
                PARTITION BY r.stream_id, r.kind ORDER BY r.purchased_at, r.charge_id
                ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)) served
    ) c
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
    CROSS JOIN LATERAL (
        SELECT CASE WHEN c.replaced_at < c.expires_at THEN
            round(c.amount_milliunits * COALESCE(
                CASE WHEN NOT c.is_rest_refunded THEN c.revocation_percentage / 100000.0 END,
                LEAST(1, extract(epoch FROM c.expires_at - c.replaced_at)
                         / NULLIF(extract(epoch FROM c.expires_at - c.purchased_at), 0))))::bigint END AS amount) repaid
    CROSS JOIN LATERAL (
        SELECT 'charge' AS kind, c.purchased_at AS occurred_at, c.amount_milliunits AS amount,
               c.first_known_at AS recorded_at
        UNION ALL
        SELECT 'refund', c.cancelled_at,
               CASE WHEN c.is_rest_refunded THEN COALESCE(repaid.amount, 0) - c.amount_milliunits
                    ELSE -round(c.amount_milliunits * COALESCE(c.revocation_percentage / 100000.0, 1))::bigint END,
               c.cancellation_known_at
        WHERE c.cancelled_at IS NOT NULL AND (c.is_rest_refunded OR NOT c.is_upgraded)
        UNION ALL
        -- If another subscription replaced it and Apple does not say when, neither the instant nor the amount is known.
        SELECT 'proration', COALESCE(c.replaced_at, c.expires_at), -repaid.amount,
               COALESCE(CASE WHEN c.is_rest_refunded THEN c.next_known_at ELSE c.cancellation_known_at END,
                        c.first_known_at)
        WHERE c.is_upgraded AND COALESCE(c.replaced_at < c.expires_at, NOT c.is_rest_refunded)) moved
    WHERE NOT c.is_family_shared AND c.offer IS DISTINCT FROM 'trial'
$$;
COMMENT ON FUNCTION ledger.revenue_of IS
    'Every charge, refund and proration of a replaced period as known at an instant, signed, with Apple''s '
    'commission: 15 % in the Small Business Program, 15 % after a year of paid service, else 30 %. Paid service '
    'adds up the paid periods of the subscription before the charge: refunded ones do not count, replaced ones '
    'count until their replacement. A refund or proration is the share that Apple states, else the whole price or the '
    'share of the time that was left. A replaced period that was refunded in full later has both: a proration by time, '
    'and a refund of the rest. Paid service begins anew after more than 60 days without, from the end of paid service; '
    'trials, family sharing and refunded periods are none. Proceeds are before taxes, which Apple does not report';

CREATE OR REPLACE FUNCTION ledger.paying_days_of(
    known_at timestamptz, time_zone text, streams bigint[], clock timestamptz)
RETURNS TABLE (
    bundle_id text, environment text, stream_id bigint, original_transaction_id text, product_id text, first_day date,
    end_day date, ended_state text, ended_reason text, offer text, monthly_milliunits bigint, currency text,
    price_basis text, previous_product_id text, previous_end_day date, previous_monthly_milliunits bigint,
    previous_currency text, previous_price_basis text, is_first_full_price boolean, next_first_day date)
LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT d.bundle_id, d.environment, d.stream_id, d.original_transaction_id, d.product_id, d.first_day, d.end_day,
           d.ended_state, d.ended_reason, d.offer, d.monthly_milliunits, d.currency, d.price_basis,
           lag(d.product_id) OVER stream, COALESCE(lag(d.end_day) OVER stream, NULLIF(d.began_day, d.first_day)),
           lag(d.monthly_milliunits) OVER stream, lag(d.currency) OVER stream, lag(d.price_basis) OVER stream,
           d.offer IS NULL AND count(*) FILTER (WHERE d.offer IS NULL) OVER stream = 1,
           lead(d.first_day) OVER stream
    FROM (
        -- Stretches without a day's end add no day. They say how a day ended that began with paying, and who paid before.
        SELECT s.bundle_id, s.environment, s.stream_id, s.original_transaction_id, s.product_id, s.first_day, s.end_day,
               last_value(s.ended_state) OVER that_day AS ended_state,
               last_value(s.ended_reason) OVER that_day AS ended_reason, s.offer, s.monthly_milliunits, s.currency,
               s.price_basis, min(s.first_day) OVER (PARTITION BY s.stream_id) AS began_day
        FROM (
            SELECT p.*, perennial.counted_day(p.paying_from, time_zone, clock) AS first_day,
                   perennial.counted_day(p.paying_until, time_zone, clock) AS end_day
            FROM ledger.paying_combined(known_at, streams) p) s
        WINDOW that_day AS (
            PARTITION BY s.stream_id, s.end_day ORDER BY s.paying_from
            ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)) d
    WHERE d.first_day < d.end_day
    -- They do not overlap, so this is the order of their first days too, and needs no other sort.
    WINDOW stream AS (PARTITION BY d.stream_id ORDER BY d.end_day)
$$;
COMMENT ON FUNCTION ledger.paying_days_of IS
    'Stretches of paying in whole days of a time zone: a subscription pays on a day if it does at the day''s end, '
    'from first_day until before end_day; the day that runs at clock ends there. ended_state and ended_reason are what '
    'came after the last stretch of that day. Each row has the stretch before and after it, so that one day compares '
    'with the next; previous_end_day alone also shows a charge that saw no day''s end';

COMMENT ON FUNCTION ledger.mrr_movement_of IS
    'How monthly recurring revenue moved from the end of one day to the end of the next, per subscription, product and '
    'currency. new: never paid before, not even on an earlier day at whose end it no longer did; reactivation; expansion '
    'and contraction: pays more or less; churn. '
    'first_full_price: goes on without an offer, and until then paid only with offers. currency_change: goes on in '
    'another currency, or at a price that became known or unknown, out of the one and into the other. product_left and '
    'product_joined: goes on with another product, which takes its former price over, before any other movement';

-- Every subscription is summarised again; until then reports read the history.
UPDATE ledger.summary_progress SET round_at = 0, rounds = 0, price_mark = NULL;
