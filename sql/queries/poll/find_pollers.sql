-- Polling: returns the receipt that polls each subscription and purchase, and the one that takes over if that one
-- cannot go on; locks nothing. It covers subscriptions by key ($3 apps, $4 environments, $5 ids), purchases by key ($6
-- apps, $7 environments, $8 ids, $9 products), both by row ($10 subscriptions, $11 purchases), and everything that
-- receipts $1 poll. Receipts $2 cannot go on. The newest receipt takes over; one whose answers omit the item only if
-- all do. One for which Apple vouched comes before one whose sender only points at its contents, and that one before one that no
-- customer sent (sender 2, 1, 0); it takes over from these although they can go on. This transaction settles answers about receipts $12 for subscriptions and $13 for purchases: they are no successors,
-- because their answers name what they hold. poller_omits: the last answer about the poller omitted the subscription.
WITH subscription AS MATERIALIZED (
    SELECT s.subscription_id, s.polled_by, true AS named
    FROM unnest($3::int[], $4::text[], $5::text[]) AS k(app_id, environment, original_transaction_id)
    JOIN ledger.subscription s
        ON s.app_id = k.app_id AND s.environment = k.environment::ledger.environment
       AND s.original_transaction_id = k.original_transaction_id
    UNION
    SELECT s.subscription_id, s.polled_by, false FROM ledger.subscription s
    WHERE s.polled_by = ANY($1::bigint[])
    UNION
    SELECT s.subscription_id, s.polled_by, false FROM ledger.subscription s
    WHERE s.subscription_id = ANY($10::bigint[])
), purchase AS MATERIALIZED (
    SELECT p.purchase_id, p.polled_by, true AS named
    FROM unnest($6::int[], $7::text[], $8::text[], $9::text[]) AS k(app_id, environment, original_transaction_id, product_id)
    JOIN ledger.purchase p
        ON p.app_id = k.app_id AND p.environment = k.environment::ledger.environment
       AND p.original_transaction_id = k.original_transaction_id AND p.product_id = k.product_id
    UNION
    SELECT p.purchase_id, p.polled_by, false FROM ledger.purchase p
    WHERE p.polled_by = ANY($1::bigint[])
    UNION
    SELECT p.purchase_id, p.polled_by, false FROM ledger.purchase p
    WHERE p.purchase_id = ANY($11::bigint[])
), thing AS MATERIALIZED (
    SELECT t.*, t.polled_by IS NOT NULL AND t.polled_by <> ALL($2::bigint[]) AND (
               t.polled_by = ANY($1::bigint[]) OR EXISTS (
                   SELECT FROM ledger.receipt r LEFT JOIN ledger.poll_schedule s USING (receipt_id)
                   WHERE r.receipt_id = t.polled_by AND ledger.can_poll(r, s))) AS can_poll,
           EXISTS (
               SELECT FROM ledger.receipt_subscription l
               WHERE l.subscription_id = t.subscription_id AND l.receipt_id = t.polled_by AND l.omitted_at IS NOT NULL)
               AS poller_omits,
           (SELECT CASE WHEN r.vouched OR r.form = 'signed_transaction' THEN 2
                        WHEN EXISTS (SELECT FROM ledger.upload u WHERE u.receipt_id = r.receipt_id)
                          OR EXISTS (SELECT FROM ledger.order_receipt x WHERE x.receipt_id = r.receipt_id) THEN 1
                        ELSE 0 END
            FROM ledger.receipt r WHERE r.receipt_id = t.polled_by) AS sender
    FROM (
        SELECT subscription_id, NULL::bigint AS purchase_id, polled_by, bool_or(named) AS named
        FROM subscription GROUP BY subscription_id, polled_by
        UNION ALL
        SELECT NULL, purchase_id, polled_by, bool_or(named) FROM purchase GROUP BY purchase_id, polled_by) t
)
SELECT t.subscription_id, t.purchase_id, t.polled_by, t.poller_omits, t.named, successor.receipt_id AS successor,
       successor.omits AS successor_omits
FROM thing t
LEFT JOIN LATERAL (
    SELECT l.receipt_id, l.omitted_at IS NOT NULL AS omits
    FROM (
        SELECT receipt_id, omitted_at FROM ledger.receipt_subscription WHERE subscription_id = t.subscription_id
        UNION ALL
        SELECT receipt_id, omitted_at FROM ledger.receipt_purchase WHERE purchase_id = t.purchase_id) l
    JOIN ledger.receipt r USING (receipt_id)
    LEFT JOIN ledger.poll_schedule s USING (receipt_id)
    CROSS JOIN LATERAL (
        SELECT CASE WHEN r.vouched OR r.form = 'signed_transaction' THEN 2
                    WHEN EXISTS (SELECT FROM ledger.upload u WHERE u.receipt_id = r.receipt_id)
                      OR EXISTS (SELECT FROM ledger.order_receipt x WHERE x.receipt_id = r.receipt_id) THEN 1
                    ELSE 0 END AS sender) c
    WHERE (NOT t.can_poll OR t.poller_omits OR (t.polled_by = ANY($1::bigint[]) AND NOT t.named)
           OR t.sender < 2 AND c.sender > t.sender AND l.omitted_at IS NULL)
      AND l.receipt_id <> ALL($2::bigint[]) AND l.receipt_id <> ALL(CASE WHEN t.purchase_id IS NULL THEN $12::bigint[] ELSE $13::bigint[] END)
      AND l.receipt_id IS DISTINCT FROM t.polled_by AND ledger.can_poll(r, s)
      AND (r.form = 'receipt' OR EXISTS (SELECT FROM ledger.server_key k WHERE k.app_id = r.app_id))
    ORDER BY l.omitted_at IS NOT NULL, c.sender DESC, r.receipt_created_at DESC NULLS LAST, l.receipt_id DESC LIMIT 1) successor ON true
