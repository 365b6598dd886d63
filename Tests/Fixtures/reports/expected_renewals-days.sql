-- set at=2027-11-30T06:00Z
-- set days=130
-- N renews on the 30th of November, December and January, on the last day of February 2028, and on the 30th of March. O, charged on
-- 31 October, renews on the last day of each month. The first day began before the 130 days, so it is not complete.
INSERT INTO ledger.subscription
    (app_id, environment, original_transaction_id, version, as_of, checked_at, recorded_at, will_renew, expires_at, renews_to_product_id)
SELECT app_id, 'Production', n.otid, 1, '2027-11-01Z', '2027-11-01Z', '2027-11-01Z', true, '2027-11-30 12:00Z', 'monthly'
FROM ledger.app CROSS JOIN (VALUES ('N'), ('O')) AS n (otid);
INSERT INTO ledger.period (subscription_id, product_id, quantity, purchased_at, expires_at, is_upgraded, is_trial, is_intro,
                           path, recorded_at)
SELECT subscription_id, 'monthly', 1, n.since::timestamptz, '2027-11-30 12:00Z', false, false, false, 'row', n.since::timestamptz
FROM (VALUES ('N', '2027-10-30 12:00Z'), ('O', '2027-10-31 12:00Z')) AS n (otid, since)
JOIN ledger.subscription ON original_transaction_id = n.otid;
INSERT INTO ledger.subscription_span (subscription_id, valid, known, state, entitled, product_id, version)
SELECT subscription_id, tstzrange('2027-10-30 12:00Z', '2027-11-30 12:00Z'), tstzrange('2025-01-01Z', NULL), 'active', true,
       'monthly', 1
FROM ledger.subscription WHERE original_transaction_id IN ('N', 'O');
