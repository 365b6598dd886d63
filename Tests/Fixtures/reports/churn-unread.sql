-- set from=2025-03-01
-- set until=2025-04-01
-- Three began to pay on 10 February. K was refunded on 5 March. L was taken back on that day in words that are not known: it
-- churned, and not by a refund. M pays on. G, of the history, pays since January.
INSERT INTO ledger.subscription (app_id, environment, original_transaction_id)
SELECT app_id, 'Production', unnest('{K,L,M}'::text[]) FROM ledger.app;
INSERT INTO ledger.period (subscription_id, product_id, quantity, purchased_at, expires_at, cancelled_at, is_upgraded, is_trial,
                           is_intro, path, recorded_at)
SELECT subscription_id, 'monthly', 1, '2025-02-10Z', '2025-05-10Z', p.cancelled::timestamptz, false, false, false, 'row',
       '2025-02-10Z'
FROM (VALUES ('K', '2025-03-05Z'), ('L', '2025-03-05Z'), ('M', NULL)) AS p (otid, cancelled)
JOIN ledger.subscription ON original_transaction_id = p.otid;
SELECT public.tell('K', '2025-03-05Z', '2025-02-10|2025-03-05|active||monthly||', '2025-03-05||revoked|refund|monthly||');
SELECT public.tell('L', '2025-03-05Z', '2025-02-10|2025-03-05|active||monthly||', '2025-03-05||revoked|other|monthly||');
SELECT public.tell('M', '2025-03-05Z', '2025-02-10|2025-05-10|active||monthly||', '2025-05-10||expired|voluntary|monthly||');
