-- What verifyReceipt and the Server API state differently, for apps that ask both; status 2 if something is unexplained
-- Variables: bundle_id.
-- A row for each kind of fact that differed, or one without a fact. live: subscriptions with access that a receipt is
-- asked about; compared: those about which both channels gave whole answers since both are asked. differed: how many facts
-- ever did. agreed: those that both state alike by now, with the delay between the channels at the median and at the 95th
-- percentile. waiting: younger than an hour. explained: to be expected. unexplained: to be looked at; example is one of
-- them. only_verify_receipt, only_server_api: of those that still differ, what one channel alone states.
\if :{?bundle_id} \else \set bundle_id '' \endif
SELECT c.bundle_id, c.live, c.compared, d.fact, count(d.fact) AS differed,
       count(*) FILTER (WHERE d.standing = 'agreed') AS agreed,
       round(percentile_cont(0.5) WITHIN GROUP (ORDER BY EXTRACT(epoch FROM d.agreed_at - d.first_seen_at))::numeric, 1)
           AS delay_p50_s,
       round(percentile_cont(0.95) WITHIN GROUP (ORDER BY EXTRACT(epoch FROM d.agreed_at - d.first_seen_at))::numeric, 1)
           AS delay_p95_s,
       count(*) FILTER (WHERE d.agreed_at IS NULL AND d.server_api IS NULL AND d.verify_receipt IS NOT NULL)
           AS only_verify_receipt,
       count(*) FILTER (WHERE d.agreed_at IS NULL AND d.verify_receipt IS NULL AND d.server_api IS NOT NULL)
           AS only_server_api,
       count(*) FILTER (WHERE d.standing = 'waiting') AS waiting,
       count(*) FILTER (WHERE d.standing = 'explained') AS explained,
       string_agg(DISTINCT d.explanation, ', ') AS explanation,
       count(*) FILTER (WHERE d.standing = 'unexplained') AS unexplained,
       min(d.original_transaction_id) FILTER (WHERE d.standing = 'unexplained') AS example
FROM perennial.channel_coverage c
LEFT JOIN perennial.channel_difference d USING (bundle_id)
WHERE :'bundle_id' = '' OR c.bundle_id = perennial.known_app(:'bundle_id')
GROUP BY c.bundle_id, c.live, c.compared, d.fact
ORDER BY c.bundle_id, unexplained DESC, d.fact;
