-- Returns when the notification $2 of app $1 came; no row if it did not.
SELECT n.received_at FROM ledger.notification n WHERE n.app_id = $1::int AND n.apple_id = $2::text
