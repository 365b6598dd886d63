-- Returns the number of a new webhook, to which its secret is sealed.
SELECT nextval('ledger.webhook_webhook_id_seq')::int AS webhook_id
