-- Share of the payments of terms that were made when they were due
-- Variables: from, until, as_known_at, bundle_id, environment, time_zone, bucket.
-- A term is a yearly product that is paid in twelve payments, one a month (plan MONTHLY). due: months of a term that
-- ended in the bucket and owed another payment: neither the last of the term, nor refunded before their end, nor
-- replaced by another product. A free trial is no payment, whatever its number; and a month that cannot be read,
-- without a number or by a plan that is not known, decides nothing: neither it nor the one before it is due. on_time:
-- the next payment began at most an hour (sandbox: ten minutes) after the end. recovered: it began later, after a
-- failed charge. failed: the term ended without it. undecided: Apple still tries, or has not been asked. success_pct =
-- (on_time + recovered) / (due - undecided). All transactions of a group's month are one payment. The first payment of a term is no payment that was due: see renewal_rate,
-- which counts terms. is_mature: the bucket is over and no payment of it is undecided. is_complete: the whole bucket
-- lies between `from` and `until` and was over at as_known_at.
\if :{?from} \else \set from -infinity \endif
\if :{?until} \else \set until infinity \endif
\if :{?as_known_at} \else \set as_known_at infinity \endif
\if :{?bundle_id} \else \set bundle_id '' \endif
\if :{?environment} \else \set environment Production \endif
\if :{?time_zone} \else \set time_zone UTC \endif
\if :{?bucket} \else \set bucket month \endif
WITH paid AS (
    -- A group's transactions of one month are one payment.
    SELECT bundle_id, environment, stream_id, product_id, expires_at, min(purchased_at) AS purchased_at,
           min(charge_id) AS charge_id, min(plan) AS plan, max(payment_number) AS payment_number,
           max(payments) AS payments, bool_or(NOT is_upgraded AND COALESCE(cancelled_at >= expires_at, true)) AS comes_to_its_end
    FROM (
        SELECT *, bool_or(is_one_of_several) OVER (PARTITION BY stream_id, product_id, expires_at) AS is_of_group
        FROM perennial.period_history
        WHERE environment = perennial.known_environment(:'environment')
          AND (:'bundle_id' = '' OR bundle_id = perennial.known_app(:'bundle_id'))
          AND NOT is_family_shared AND offer IS DISTINCT FROM 'trial'
          AND known_from <= :'as_known_at'::timestamptz AND COALESCE(known_until > :'as_known_at'::timestamptz, true)) p
    GROUP BY bundle_id, environment, stream_id, product_id, expires_at, CASE WHEN NOT is_of_group THEN charge_id END
), payment AS (
    SELECT *, lead(purchased_at) OVER term AS next_at, lead(payment_number) OVER term AS next_number,
           -- A month without a number, or by a plan that is not known, could not be read.
           lead(CASE plan WHEN 'MONTHLY' THEN payment_number IS NULL WHEN 'BILLED_UPFRONT' THEN false
                          ELSE plan IS NOT NULL OR expires_at - purchased_at < interval '32 days' END) OVER term
               AS next_is_unread
    FROM paid
    WINDOW term AS (PARTITION BY stream_id ORDER BY purchased_at, charge_id)
), due AS (
    SELECT date_trunc(:'bucket', p.expires_at AT TIME ZONE :'time_zone') AS since, p.bundle_id, p.product_id,
           CASE WHEN p.next_number = p.payment_number + 1 AND p.next_at <= clock.at
                    THEN CASE WHEN p.next_at - p.expires_at
                                  <= CASE p.environment WHEN 'Sandbox' THEN interval '10 minutes' ELSE interval '1 hour' END
                              THEN 'on_time' ELSE 'recovered' END
                WHEN p.next_at <= clock.at OR reported.state IN ('expired', 'revoked') THEN 'failed'
                ELSE 'undecided' END AS outcome
    FROM payment p
    CROSS JOIN LATERAL (SELECT LEAST(:'as_known_at'::timestamptz, now()) AS at) clock
    LEFT JOIN perennial.timeline reported
        ON reported.subscription_id = p.stream_id
        AND reported.valid_from <= clock.at AND clock.at < reported.valid_until
        AND reported.known_from <= :'as_known_at'::timestamptz
        AND COALESCE(reported.known_until > :'as_known_at'::timestamptz, true)
    WHERE p.comes_to_its_end AND p.plan = 'MONTHLY' AND p.payment_number < p.payments AND p.expires_at <= clock.at
      AND NOT COALESCE(p.next_is_unread AND p.next_at <= clock.at, false)
      AND p.expires_at >= perennial.instant(:'from', :'time_zone')
      AND p.expires_at < perennial.instant(:'until', :'time_zone')
)
SELECT since::date AS since, bundle_id, product_id, count(*) AS due,
       count(*) FILTER (WHERE outcome = 'on_time') AS on_time,
       count(*) FILTER (WHERE outcome = 'recovered') AS recovered,
       count(*) FILTER (WHERE outcome = 'failed') AS failed,
       count(*) FILTER (WHERE outcome = 'undecided') AS undecided,
       round(100.0 * count(*) FILTER (WHERE outcome IN ('on_time', 'recovered'))
           / NULLIF(count(*) FILTER (WHERE outcome <> 'undecided'), 0), 1) AS success_pct,
       bool_and(outcome <> 'undecided')
           AND since + perennial.bucket_length(:'bucket')
               <= LEAST(:'as_known_at'::timestamptz, now()) AT TIME ZONE :'time_zone' AS is_mature,
       perennial.is_complete(
           due.since, :'bucket', :'time_zone', :'from', :'until', :'as_known_at'::timestamptz) AS is_complete
FROM due
GROUP BY due.since, bundle_id, product_id
ORDER BY since, bundle_id, product_id;
