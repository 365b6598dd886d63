-- Settlement: returns the subscriptions that hold line items ($3) of apps ($1) and environments ($2) under another
-- original transaction id than an answer does ($4); locks nothing.
SELECT DISTINCT s.subscription_id
FROM unnest($1::int[], $2::text[], $3::text[], $4::text[])
    AS n(app_id, environment, web_order_line_item_id, original_transaction_id)
JOIN ledger.period p ON p.web_order_line_item_id = n.web_order_line_item_id
JOIN ledger.subscription s ON s.subscription_id = p.subscription_id
WHERE s.app_id = n.app_id AND s.environment = n.environment::ledger.environment
  AND s.original_transaction_id <> n.original_transaction_id
