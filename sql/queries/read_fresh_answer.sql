-- Intake: the subscriptions in the receipt with digest $2 of app $1, when its upload by customer $3 may be answered from what is
-- stored; no rows when Apple has to be asked. Apple vouched for it in production within $4 seconds, all it holds is this
-- customer's already, something runs, nothing ends, is due, asked about or wanted within as many seconds from now, and the
-- upload says nothing new ($5 storefront, $6 price, $7 currency).
WITH clock AS MATERIALIZED (
    SELECT now() - make_interval(secs => $4::float8) AS lately, now() + make_interval(secs => $4::float8) AS soon
), known AS MATERIALIZED (
    SELECT r.receipt_id, u.customer_id, s.due_at, clock.soon,
           COALESCE((SELECT h.name FROM ledger.customer h WHERE h.customer_id = c.merged_into), c.name) AS called
    FROM clock
    JOIN ledger.receipt r ON r.app_id = $1::int AND r.digest = $2::bytea
    JOIN ledger.customer c ON c.app_id = r.app_id AND c.name = $3::text
    JOIN ledger.upload u ON u.receipt_id = r.receipt_id AND u.customer_id = COALESCE(c.merged_into, c.customer_id)
    LEFT JOIN ledger.poll_schedule s ON s.receipt_id = r.receipt_id
    WHERE r.outcome = 'verified' AND r.environment = 'Production' AND r.rejections = 0 AND r.erased_at IS NULL
      AND GREATEST(r.verified_at, s.confirmed_at) > clock.lately
      AND (s.receipt_id IS NULL OR (s.leased_by IS NULL AND s.want_at IS NULL AND s.due_at > clock.soon))
      AND u.settled AND ($5::text IS NULL OR $5::text = u.storefront)
      AND ($6::bigint IS NULL OR $6::bigint = u.price_milliunits) AND ($7::text IS NULL OR $7::text = u.currency)
      AND NOT EXISTS (
          SELECT FROM ledger.receipt_purchase l
          LEFT JOIN LATERAL (
              SELECT true AS is_theirs FROM ledger.ownership o
              WHERE o.customer_id = u.customer_id AND o.purchase_id = l.purchase_id
                AND upper_inf(o.known) AND upper_inf(o.valid) LIMIT 1) owner ON true
          WHERE l.receipt_id = r.receipt_id AND owner.is_theirs IS NULL)
), held AS MATERIALIZED (
    SELECT k.receipt_id, k.called, k.due_at, s.subscription_id, current.state,
           owner.is_theirs AND s.version > 0 AND s.suspected IS NULL
               AND current.state IN ('active', 'expired', 'revoked')
               AND (upper_inf(current.valid) OR upper(current.valid) > k.soon)
               AND (p.receipt_id IS NULL OR (p.leased_by IS NULL AND p.want_at IS NULL AND p.due_at > k.soon)) AS is_quiet
    FROM known k
    JOIN ledger.receipt_subscription l USING (receipt_id)
    JOIN ledger.subscription s USING (subscription_id)
    LEFT JOIN LATERAL (
        SELECT true AS is_theirs FROM ledger.ownership o
        WHERE o.customer_id = k.customer_id AND o.subscription_id = s.subscription_id
          AND upper_inf(o.known) AND upper_inf(o.valid) LIMIT 1) owner ON true
    LEFT JOIN ledger.poll_schedule p ON p.receipt_id = s.polled_by
    LEFT JOIN LATERAL (
        SELECT t.state, t.valid FROM ledger.subscription_span t
        WHERE t.subscription_id = s.subscription_id AND upper_inf(t.known) AND lower(t.valid) <= now()
        ORDER BY lower(t.valid) DESC LIMIT 1) current ON true
)
SELECT h.receipt_id, h.called, h.due_at, s.subscription_id, s.app_id, s.environment::text AS environment,
       s.original_transaction_id, s.polled_by, s.version, s.as_of, s.checked_at, s.recorded_at, s.next_check_at, s.renewal,
       s.renewal_as_of, s.renewal_path, s.suspected, s.leeway_ms
FROM held h JOIN ledger.subscription s USING (subscription_id)
WHERE (SELECT bool_and(COALESCE(is_quiet, false)) AND bool_or(state = 'active') FROM held)
