-- Orders: returns the transactions that may pay the orders $1, bought at most $2 ms before the first of them;
-- ledger.paying_transactions says what the columns mean. What a customer only pointed at pays nothing.
SELECT t.purchase_id, t.subscription_id, t.period_id, t.environment::text AS environment, t.product_id, t.quantity,
       t.purchased_at, t.owner_id, t.is_claimed, t.is_renewal, t.transaction_ids, t.account_token,
       t.token_order::text AS token_order, t.token_customer, t.is_given, t.is_duplicate, t.proved_for, t.sent_for,
       t.named_for, t.pays::text AS pays, t.is_revoked
FROM ledger.paying_transactions($1::text[]::uuid[], $2::bigint * interval '1 ms') t
WHERE NOT EXISTS (
        SELECT FROM ledger.ownership w
        WHERE w.purchase_id = t.purchase_id AND upper_inf(w.known) AND upper_inf(w.valid) AND w.cause = 'pointer' OFFSET 0)
  AND NOT EXISTS (
        SELECT FROM ledger.ownership w
        WHERE w.subscription_id = t.subscription_id AND upper_inf(w.known) AND upper_inf(w.valid) AND w.cause = 'pointer'
        OFFSET 0)
