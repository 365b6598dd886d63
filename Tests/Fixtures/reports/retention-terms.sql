-- set from=2025-09-01
-- set until=2025-10-01
-- set months=2
-- Three pay since 10 September: K and L a term of a yearly product, N a monthly one. On 10 October no payment could be made. K's and
-- N's were on 22 October; Apple goes on to try L's. A month later, on 11 October, the terms are open: 2 of 3 are retained; on
-- 11 November all are.
INSERT INTO ledger.subscription (app_id, environment, original_transaction_id)
SELECT app_id, 'Production', unnest('{K,L,N}'::text[]) FROM ledger.app;
INSERT INTO ledger.period (subscription_id, product_id, quantity, purchased_at, expires_at, is_upgraded, is_trial, is_intro,
                           price_milliunits, price_currency, sale, path, recorded_at)
SELECT public.id(p.otid), CASE WHEN p.number IS NULL THEN 'monthly' ELSE 'yearly' END, 1, p.since::timestamptz,
       p.until::timestamptz, false, false, false, 10990, 'USD',
       CASE WHEN p.number IS NOT NULL THEN jsonb_build_object('plan', 'MONTHLY', 'payment_number', p.number, 'payments', 12) END,
       'row', p.since::timestamptz
FROM (VALUES
    ('K', '2025-09-10Z', '2025-10-10Z', 1), ('K', '2025-10-22Z', '2026-09-22Z', 2), ('L', '2025-09-10Z', '2025-10-10Z', 1),
    ('N', '2025-09-10Z', '2025-10-10Z', NULL), ('N', '2025-10-22Z', '2026-09-22Z', NULL)
) AS p (otid, since, until, number);
SELECT public.tell('K', '2025-10-22Z', '2025-09-10|2025-10-10|active||yearly||', '2025-10-10|2025-10-22|billing_retry||yearly||',
                    '2025-10-22|2026-09-22|active||yearly||', '2026-09-22||expired|unknown|yearly||');
SELECT public.tell('L', '2025-10-10Z', '2025-09-10|2025-10-10|active||yearly||', '2025-10-10||billing_retry||yearly||');
SELECT public.tell('N', '2025-10-22Z', '2025-09-10|2025-10-10|active||monthly||', '2025-10-10|2025-10-22|billing_retry||monthly||',
                    '2025-10-22|2026-09-22|active||monthly||', '2026-09-22||expired|unknown|monthly||');
