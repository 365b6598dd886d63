-- Orders: cancels order $2 of app $1, unless it is paid or has ended.
UPDATE ledger.purchase_order o SET state = 'cancelled', cause = 'service', changed_at = clock_timestamp()
WHERE o.app_id = $1::int AND o.order_id = $2::text::uuid AND o.state IN ('created', 'purchasing', 'deferred', 'failed')
RETURNING o.order_id
