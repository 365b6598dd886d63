-- Channels compared: what verifyReceipt and the Server API state about the same receipts, for apps that ask both.
ALTER TABLE ledger.app
    DROP CONSTRAINT app_verifier_known,
    ADD COLUMN compares_since timestamptz,
    ADD CONSTRAINT app_verifier_known CHECK (verifier IN ('verify_receipt', 'server_api', 'both')),
    ADD CONSTRAINT app_compares_only_with_both CHECK ((compares_since IS NOT NULL) = (verifier = 'both'));
COMMENT ON COLUMN ledger.app.verifier IS
    'Who is asked about receipts: verify_receipt; server_api; both: verifyReceipt decides, and the Server API is '
    'compared. Uploads without receipts always ask the Server API';
COMMENT ON COLUMN ledger.app.compares_since IS 'Since when both channels are asked; null: one is asked';

CREATE TABLE ledger.channel_comparison (
    subscription_id  bigint PRIMARY KEY REFERENCES ledger.subscription,
    tried_at         timestamptz NOT NULL,
    compared_at      timestamptz
);
COMMENT ON TABLE ledger.channel_comparison IS 'When the channels were last compared about each subscription';
COMMENT ON COLUMN ledger.channel_comparison.tried_at IS 'When both channels were last asked about it';
COMMENT ON COLUMN ledger.channel_comparison.compared_at IS 'When both gave whole answers; null: never';

CREATE TABLE ledger.channel_difference (
    difference_id            bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    app_id                   int NOT NULL REFERENCES ledger.app,
    environment              ledger.environment NOT NULL,
    original_transaction_id  text NOT NULL,
    transaction_id           text NOT NULL,
    fact                     text NOT NULL,
    verify_receipt           text,
    server_api               text,
    explanation              text,
    first_seen_at            timestamptz NOT NULL,
    last_seen_at             timestamptz NOT NULL,
    waits_until              timestamptz NOT NULL,
    agreed_at                timestamptz,
    CONSTRAINT channel_difference_differs CHECK (verify_receipt IS DISTINCT FROM server_api)
);
CREATE UNIQUE INDEX channel_difference_open
    ON ledger.channel_difference (app_id, environment, original_transaction_id, transaction_id, fact)
    WHERE agreed_at IS NULL;
COMMENT ON TABLE ledger.channel_difference IS 'Facts that verifyReceipt and the Server API stated differently';
COMMENT ON COLUMN ledger.channel_difference.transaction_id IS 'The period or purchase; empty: the renewal';
COMMENT ON COLUMN ledger.channel_difference.fact IS 'The name of the fact, such as expires_at';
COMMENT ON COLUMN ledger.channel_difference.verify_receipt IS 'What verifyReceipt states; null: nothing';
COMMENT ON COLUMN ledger.channel_difference.server_api IS 'What the Server API states; null: nothing';
COMMENT ON COLUMN ledger.channel_difference.explanation IS
    'Why it is to be expected: finished_consumable, restored or old_receipt; null: it is not';
COMMENT ON COLUMN ledger.channel_difference.first_seen_at IS 'When it was first seen, by our clock';
COMMENT ON COLUMN ledger.channel_difference.last_seen_at IS 'When it was last seen, by our clock';
COMMENT ON COLUMN ledger.channel_difference.waits_until IS
    'Until then it may be that one channel is later than the other, which explains it';
COMMENT ON COLUMN ledger.channel_difference.agreed_at IS 'When both channels stated the same; null: they do not yet';

CREATE TABLE ledger.channel_walk (
    app_id      int PRIMARY KEY REFERENCES ledger.app,
    begun_at    timestamptz NOT NULL,
    receipt_id  bigint DEFAULT 0
);
COMMENT ON TABLE ledger.channel_walk IS
    'How far workers came with asking both channels about every subscription with access, whose next check may be a '
    'month away';
COMMENT ON COLUMN ledger.channel_walk.begun_at IS 'When the walk began';
COMMENT ON COLUMN ledger.channel_walk.receipt_id IS 'The last receipt of the walk so far; null: the walk is over';

CREATE VIEW perennial.channel_coverage AS
SELECT a.bundle_id, a.compares_since, count(s.subscription_id) AS live,
       count(s.subscription_id) FILTER (WHERE c.compared_at >= a.compares_since) AS compared
FROM ledger.app a
LEFT JOIN (ledger.subscription s
           JOIN ledger.receipt r ON r.receipt_id = s.polled_by AND r.form = 'receipt'
           JOIN ledger.subscription_span p
             ON p.subscription_id = s.subscription_id AND upper_inf(p.known) AND p.valid @> now() AND p.entitled)
       ON s.app_id = a.app_id
LEFT JOIN ledger.channel_comparison c ON c.subscription_id = s.subscription_id
WHERE a.verifier = 'both'
GROUP BY a.app_id;
COMMENT ON VIEW perennial.channel_coverage IS
    'One row for each app that asks both channels: how many of its live subscriptions were compared. Subscriptions that '
    'verifyReceipt cannot be asked about do not count';
COMMENT ON COLUMN perennial.channel_coverage.bundle_id IS 'The app, by its bundle identifier';
COMMENT ON COLUMN perennial.channel_coverage.compares_since IS 'Since when both channels are asked';
COMMENT ON COLUMN perennial.channel_coverage.live IS 'Subscriptions with access now, asked about by a receipt';
COMMENT ON COLUMN perennial.channel_coverage.compared IS 'How many of these were compared since';

CREATE VIEW perennial.channel_difference AS
SELECT a.bundle_id, d.environment::text AS environment, d.original_transaction_id,
       NULLIF(d.transaction_id, '') AS transaction_id, d.fact, d.verify_receipt, d.server_api,
       CASE WHEN d.agreed_at IS NOT NULL THEN 'agreed' WHEN d.explanation IS NOT NULL THEN 'explained'
            WHEN d.waits_until > now() THEN 'waiting' ELSE 'unexplained' END AS standing,
       d.explanation, d.first_seen_at, d.last_seen_at, d.agreed_at
FROM ledger.channel_difference d
JOIN ledger.app a USING (app_id)
WHERE d.first_seen_at >= a.compares_since;
COMMENT ON VIEW perennial.channel_difference IS
    'One row for each fact that the channels stated differently since both are asked, also where they agree by now';
COMMENT ON COLUMN perennial.channel_difference.bundle_id IS 'The app, by its bundle identifier';
COMMENT ON COLUMN perennial.channel_difference.environment IS 'Production or Sandbox';
COMMENT ON COLUMN perennial.channel_difference.original_transaction_id IS 'The subscription or one-time purchase';
COMMENT ON COLUMN perennial.channel_difference.transaction_id IS 'The period or purchase; null: the renewal';
COMMENT ON COLUMN perennial.channel_difference.fact IS 'The name of the fact, such as expires_at';
COMMENT ON COLUMN perennial.channel_difference.verify_receipt IS 'What verifyReceipt states; null: nothing';
COMMENT ON COLUMN perennial.channel_difference.server_api IS 'What the Server API states; null: nothing';
COMMENT ON COLUMN perennial.channel_difference.standing IS
    'agreed (both state the same by now), explained, waiting (one channel may be later than the other) or unexplained';
COMMENT ON COLUMN perennial.channel_difference.explanation IS
    'Why it is to be expected: finished_consumable, restored or old_receipt; null: it is not';
COMMENT ON COLUMN perennial.channel_difference.first_seen_at IS 'When it was first seen, by our clock';
COMMENT ON COLUMN perennial.channel_difference.last_seen_at IS 'When it was last seen, by our clock';
COMMENT ON COLUMN perennial.channel_difference.agreed_at IS 'When both channels stated the same; null: they do not yet';
