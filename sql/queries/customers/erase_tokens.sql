-- Erase: removes the account tokens in what customers ($1) owned or receipts ($2) contained, Apple's notifications, texts
-- kept as examples, what channels said differently and what support calls asked about it, unless another customer owns it
-- now; also wherever a token is one of the customers' names or orders. Their digests are listed, so that no later answer
-- brings them back.
WITH names AS MATERIALIZED (
    SELECT c.app_id, lower(c.name) AS name FROM ledger.customer c WHERE c.customer_id = ANY($1::bigint[])
    UNION
    SELECT o.app_id, o.app_account_token::text FROM ledger.purchase_order o WHERE o.customer_id = ANY($1::bigint[])
), had AS MATERIALIZED (
    SELECT o.subscription_id, o.purchase_id FROM ledger.ownership o WHERE o.customer_id = ANY($1::bigint[])
    UNION
    SELECT l.subscription_id, NULL FROM ledger.receipt_subscription l WHERE l.receipt_id = ANY($2::bigint[])
    UNION
    SELECT NULL, l.purchase_id FROM ledger.receipt_purchase l WHERE l.receipt_id = ANY($2::bigint[])
), theirs AS MATERIALIZED (
    SELECT t.subscription_id, t.purchase_id
    FROM had t
    LEFT JOIN ledger.subscription s USING (subscription_id)
    LEFT JOIN ledger.purchase p USING (purchase_id)
    WHERE NOT EXISTS (
            SELECT FROM ledger.ownership w
            WHERE (w.subscription_id = t.subscription_id OR w.purchase_id = t.purchase_id)
              AND upper_inf(w.known) AND upper_inf(w.valid) AND w.customer_id <> ALL($1::bigint[]))
       OR (COALESCE(s.app_id, p.app_id), lower(COALESCE(s.app_account_token, p.app_account_token)))
            IN (SELECT app_id, name FROM names)
), listed AS (
    INSERT INTO ledger.erased_token (app_id, digest)
    SELECT t.app_id, sha256(convert_to(t.token, 'UTF8'))
    FROM (
        SELECT n.app_id, n.name AS token FROM names n
        UNION
        SELECT s.app_id, lower(p.app_account_token)
        FROM theirs JOIN ledger.subscription s USING (subscription_id) JOIN ledger.period p USING (subscription_id)
        UNION
        SELECT p.app_id, lower(p.app_account_token) FROM theirs JOIN ledger.purchase p USING (purchase_id)) t
    WHERE t.token IS NOT NULL
    ON CONFLICT DO NOTHING
), periods AS (
    UPDATE ledger.period p SET app_account_token = NULL
    WHERE p.app_account_token IS NOT NULL
      AND (p.subscription_id IN (SELECT subscription_id FROM theirs)
           -- Each period may carry the token of another order.
           OR p.subscription_id IN (SELECT subscription_id FROM had)
              AND lower(p.app_account_token) IN (SELECT name FROM names))
), purchases AS (
    UPDATE ledger.purchase p SET app_account_token = NULL, facts = p.facts - 'app_account_token'
    WHERE p.purchase_id IN (SELECT purchase_id FROM theirs)
), notifications AS (
    UPDATE ledger.notification n
    SET body = 'null', texts = NULL, claims = NULL, account_token = NULL,
        effect = CASE WHEN n.effect IN ('asked', 'planned', 'unpolled', 'unshown') THEN 'no_facts' ELSE n.effect END
    WHERE n.notification_id IN (
        SELECT m.notification_id
        FROM (SELECT s.app_id, s.original_transaction_id FROM theirs JOIN ledger.subscription s USING (subscription_id)
              UNION
              SELECT p.app_id, p.original_transaction_id FROM theirs JOIN ledger.purchase p USING (purchase_id)) t
        JOIN ledger.notification m USING (app_id, original_transaction_id)
        UNION
        -- What waits may be about nothing that is known yet.
        SELECT m.notification_id
        FROM names JOIN ledger.notification m ON m.app_id = names.app_id AND m.account_token = names.name)
), examples AS (
    UPDATE ledger.unread_claim u SET example = NULL, original_transaction_id = NULL
    FROM (SELECT s.app_id, s.original_transaction_id FROM theirs JOIN ledger.subscription s USING (subscription_id)
          UNION
          SELECT p.app_id, p.original_transaction_id FROM theirs JOIN ledger.purchase p USING (purchase_id)) t
    WHERE u.app_id = t.app_id AND u.original_transaction_id = t.original_transaction_id
), differences AS (
    DELETE FROM ledger.channel_difference d
    USING (
        SELECT s.app_id, s.environment, s.original_transaction_id FROM theirs JOIN ledger.subscription s USING (subscription_id)
        UNION
        SELECT p.app_id, p.environment, p.original_transaction_id FROM theirs JOIN ledger.purchase p USING (purchase_id)) t
    WHERE d.app_id = t.app_id AND d.environment = t.environment AND d.original_transaction_id = t.original_transaction_id
), support AS (
    UPDATE ledger.support_call c SET request = NULL, reason = NULL
    WHERE c.kind <> 'extend_all'
      AND ((c.app_id, c.subject) IN (
            SELECT s.app_id, s.original_transaction_id FROM theirs JOIN ledger.subscription s USING (subscription_id)
            UNION
            SELECT s.app_id, l.transaction_id
            FROM theirs JOIN ledger.subscription s USING (subscription_id) JOIN ledger.period d USING (subscription_id)
            JOIN ledger.transaction_alias l USING (period_id)
            UNION
            SELECT p.app_id, unnest(p.transaction_ids || p.original_transaction_id)
            FROM theirs JOIN ledger.purchase p USING (purchase_id))
        OR (c.app_id, lower(c.request ->> 'appAccountToken')) IN (SELECT app_id, name FROM names))
), corrections AS (
    DELETE FROM ledger.correction c
    WHERE (c.subscription_id IN (SELECT subscription_id FROM theirs) OR c.purchase_id IN (SELECT purchase_id FROM theirs))
      AND c.fact LIKE '%app\_account\_token'
)
UPDATE ledger.subscription s SET app_account_token = NULL
WHERE s.subscription_id IN (SELECT subscription_id FROM theirs) AND s.app_account_token IS NOT NULL
