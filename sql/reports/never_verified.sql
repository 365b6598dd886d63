-- Receipts that Apple never vouched for, oldest first
-- Variables: bundle_id, minutes.
-- Receipts that arrived more than minutes (5) ago and have no verified answer. They give their customers nothing yet,
-- except provisional access. last_outcome: rejected, Apple refused to vouch for the receipt; indeterminate, no usable
-- answer came; empty, Apple was not asked. is_retired: it is not checked again unless it is uploaded again.
\if :{?bundle_id} \else \set bundle_id '' \endif
\if :{?minutes} \else \set minutes 5 \endif
SELECT bundle_id, environment, receipt_id, array_to_string(customers, ', ') AS customers, received_at, asked_at, outcome AS last_outcome, reason, lane, attempts,
       due_at, due_at IS NULL AS is_retired
FROM perennial.receipt_now
WHERE verified_at IS NULL AND received_at < now() - :'minutes'::int * interval '1 minute'
  AND (:'bundle_id' = '' OR bundle_id = perennial.known_app(:'bundle_id'))
ORDER BY received_at, receipt_id;
