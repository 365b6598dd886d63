-- Intake: counts the receipts of customer $1 that became known in the last hour; also the seconds until the oldest of
-- them is an hour old.
SELECT count(*) AS receipts,
       GREATEST(1, ceil(extract(epoch FROM min(r.received_at) + interval '1 hour' - clock_timestamp())))::bigint
           AS seconds_left
FROM ledger.upload u JOIN ledger.receipt r USING (receipt_id)
WHERE u.customer_id = $1::bigint AND NOT u.imported AND r.received_at > clock_timestamp() - interval '1 hour'
