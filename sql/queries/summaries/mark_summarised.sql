-- Marks the subscriptions $1 as summarised in their present version. Their rows follow in the same transaction, so that
-- a later settlement or price makes the mark outdated.
INSERT INTO ledger.summarised AS t (subscription_id, recorded_at, price_mark)
SELECT s.subscription_id, s.recorded_at, m.price_mark
FROM ledger.subscription s JOIN ledger.price_mark m USING (app_id)
WHERE s.subscription_id = ANY ($1::bigint[])
ORDER BY s.subscription_id
ON CONFLICT (subscription_id) DO UPDATE SET recorded_at = EXCLUDED.recorded_at, price_mark = EXCLUDED.price_mark
