-- Settlement: returns the periods of subscriptions ($1) with their transaction ids.
SELECT p.period_id, p.subscription_id, p.web_order_line_item_id, p.product_id, p.quantity, p.purchased_at, p.expires_at,
       p.original_purchased_at, p.cancelled_at, p.cancellation_reason, p.is_upgraded, p.is_trial, p.is_intro,
       p.promotional_offer_id, p.offer_code_ref_name, p.group_id, p.ownership, p.app_account_token, p.replaced_by,
       p.price_milliunits, p.price_currency, p.revocation_percentage, p.sale, p.ending, p.as_of, p.path, p.older_facts,
       ARRAY(SELECT a.transaction_id FROM ledger.transaction_alias a WHERE a.period_id = p.period_id) AS transaction_ids
FROM ledger.period p
WHERE p.subscription_id = ANY($1::bigint[])
ORDER BY p.subscription_id, p.period_id
