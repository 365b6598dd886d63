-- Customer: returns present and past ownerships of customers ($1), as known now, newest first, at most $2.
SELECT COALESCE(s.environment, p.environment)::text AS environment,
       COALESCE(s.original_transaction_id, p.original_transaction_id) AS original_transaction_id,
       s.subscription_id IS NOT NULL AS is_subscription, COALESCE(p.product_id, span.product_id) AS product_id,
       CASE WHEN p.purchase_id IS NOT NULL THEN CASE WHEN p.revoked_at <= now() THEN 'revoked' ELSE 'active' END
            WHEN ledger.is_in_outage_allowance(span.valid, span.allowed_until, now()) THEN 'awaiting_renewal' ELSE span.state::text END AS state,
       COALESCE(s.expires_at, p.revoked_at) AS ends_at, o.cause, lower(o.valid) AS since, upper(o.valid) AS until,
       (SELECT c.name FROM ledger.ownership n JOIN ledger.customer c USING (customer_id)
        WHERE (n.subscription_id = o.subscription_id OR n.purchase_id = o.purchase_id)
          AND upper_inf(n.known) AND lower(n.valid) = upper(o.valid)) AS went_to
FROM ledger.ownership o
LEFT JOIN ledger.subscription s ON s.subscription_id = o.subscription_id
LEFT JOIN ledger.poll_schedule poller ON poller.receipt_id = s.polled_by
LEFT JOIN ledger.purchase p ON p.purchase_id = o.purchase_id
LEFT JOIN ledger.subscription_span span
    ON span.subscription_id = s.subscription_id AND upper_inf(span.known)
   AND span.valid @> GREATEST(now(), ledger.as_of(s, poller))
WHERE o.customer_id = ANY($1::bigint[]) AND upper_inf(o.known)
ORDER BY upper(o.valid) DESC NULLS FIRST, o.ownership_id DESC LIMIT $2::int
