-- What a replaced period gave is taken back where Apple refunded the rest of its price.
CREATE OR REPLACE FUNCTION ledger.deliverables(purchase_ids bigint[], subscription_ids bigint[]) RETURNS SETOF ledger.deliverable
LANGUAGE sql STABLE AS $$
    WITH renewable AS MATERIALIZED (
        SELECT d.app_id, d.product_id, d.kind, ledger.delivers_since(d) AS since
        FROM ledger.product d
        WHERE d.kind = 'auto_renewable'
          AND d.app_id IN (SELECT s.app_id FROM ledger.subscription s WHERE s.subscription_id = ANY(subscription_ids))
    )
    SELECT p.app_id, p.environment, o.customer_id, p.product_id, p.kind, p.credit, p.units::bigint * p.quantity,
           p.quantity, p.purchased_at, COALESCE(p.kind <> 'auto_renewable' AND p.purchased_at >= p.since, false),
           p.revoked_at IS NOT NULL, ledger.is_shared(p.facts #>> '{ownership,word}'), 'purchase',
           p.purchase_id, NULL::bigint, NULL::bigint, p.transaction_id, p.original_transaction_id,
           (p.facts #>> '{refunded,percentage}')::int
    FROM (
        SELECT p.*, d.kind, d.credit, d.units, d.since
        FROM unnest(purchase_ids) AS n(id)
        CROSS JOIN LATERAL (SELECT p.* FROM ledger.purchase p WHERE p.purchase_id = n.id AND p.version > 0 OFFSET 0) p
        LEFT JOIN LATERAL (
            SELECT d.kind, d.credit, d.units, ledger.delivers_since(d) AS since FROM ledger.product d
            WHERE d.app_id = p.app_id AND d.product_id = p.product_id AND d.kind IS NOT NULL OFFSET 0) d ON true
        WHERE d.kind IS NOT NULL OR EXISTS (SELECT FROM ledger.delivery l WHERE l.purchase_id = n.id OFFSET 0)
        OFFSET 0) p
    LEFT JOIN LATERAL (
        SELECT o.customer_id FROM ledger.ownership o
        WHERE o.purchase_id = p.purchase_id AND upper_inf(o.known) AND upper_inf(o.valid)
          AND o.cause IS DISTINCT FROM 'pointer' OFFSET 0) o ON true
    UNION ALL
    SELECT e.app_id, e.environment, o.customer_id, e.product_id, e.kind, NULL, NULL, e.quantity, e.purchased_at,
           e.kind IS NOT NULL AND (NOT e.is_upgraded OR e.cancellation_reason LIKE 'moved to %' IS NOT TRUE),
           e.is_rest_refunded OR e.cancelled_at IS NOT NULL AND NOT e.is_upgraded AND e.replaced_by IS NULL,
           ledger.is_shared(e.ownership),
           CASE WHEN e.purchased_at > e.first_at THEN 'renewal' ELSE 'purchase' END,
           NULL, e.subscription_id, e.period_id, NULL, e.original_transaction_id, e.revocation_percentage
    FROM (
        SELECT e.*, s.app_id, s.environment, s.original_transaction_id, d.kind,
               -- The replacement brings a repayment, dated as it is. A refund of the whole price with another date came
               -- beside it (Period.restRefundedAt in Swift, ledger.revenue_of).
               COALESCE(e.is_upgraded AND e.revocation_percentage = 100000 AND e.cancelled_at >= e.purchased_at
                            AND NOT ledger.is_shared(e.ownership)
                            AND COALESCE(e.cancelled_at NOT BETWEEN e.followed_at - interval '1 minute'
                                                                AND e.followed_at + interval '1 minute',
                                         e.cancelled_at >= e.expires_at), false) AS is_rest_refunded
        FROM unnest(subscription_ids) AS n(id)
        CROSS JOIN LATERAL (SELECT s.* FROM ledger.subscription s WHERE s.subscription_id = n.id OFFSET 0) s
        CROSS JOIN LATERAL (
            SELECT EXISTS (SELECT FROM ledger.delivery l WHERE l.subscription_id = n.id OFFSET 0) AS was_delivered,
                   (SELECT min(d.since) FROM renewable d WHERE d.app_id = s.app_id) AS since) has
        CROSS JOIN LATERAL (
            SELECT e.*, min(e.purchased_at) OVER () AS first_at,
                   lead(e.purchased_at) OVER (
                       PARTITION BY e.is_upgraded AND e.cancellation_reason LIKE 'moved to %' IS TRUE
                       ORDER BY e.purchased_at, e.period_id) AS followed_at
            FROM ledger.period e
            WHERE e.subscription_id = n.id AND (has.was_delivered OR s.head_starts_at >= has.since) OFFSET 0) e
        LEFT JOIN renewable d ON d.app_id = s.app_id AND d.product_id = e.product_id AND e.purchased_at >= d.since
        WHERE d.kind IS NOT NULL OR has.was_delivered
        OFFSET 0) e
    LEFT JOIN LATERAL (
        SELECT o.customer_id FROM ledger.ownership o
        WHERE o.subscription_id = e.subscription_id AND upper_inf(o.known) AND upper_inf(o.valid)
          AND o.cause IS DISTINCT FROM 'pointer' OFFSET 0) o ON true
    UNION ALL
    SELECT DISTINCT l.app_id, l.environment, NULL::bigint, l.product_id, l.kind, NULL, NULL::bigint, 1,
           NULL::timestamptz, false, true, false, 'purchase', NULL::bigint, l.subscription_id, l.period_id,
           l.transaction_id, l.original_transaction_id, NULL::int
    FROM unnest(subscription_ids) AS n(id)
    CROSS JOIN LATERAL (SELECT l.* FROM ledger.delivery l WHERE l.subscription_id = n.id OFFSET 0) l
    WHERE NOT EXISTS (SELECT FROM ledger.period e WHERE e.period_id = l.period_id OFFSET 0)
$$;
