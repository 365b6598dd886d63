-- set at=2026-03-25Z
-- set days=14
-- H turns to a weekly product at 3 USD, first with an offer of unknown price, on 1 April; again on the 8th, before the
-- 14 days are over. It has to agree to a higher price. B's renewal on 10 April is after them.
INSERT INTO ledger.product (app_id, product_id, period) SELECT app_id, 'weekly', 'P6D' FROM ledger.app;
SELECT ledger.record_price(app_id, 'weekly', '', tstzrange(NULL, NULL), 3000, 'USD') FROM ledger.app;
UPDATE ledger.subscription
SET renews_to_product_id = 'weekly', flags = '{price_consent_pending}', renewal = '{"promotional_offer_id": "spring"}'
WHERE original_transaction_id = 'H';
