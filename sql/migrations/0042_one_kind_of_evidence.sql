-- One kind of evidence: only whole answers change facts. Notifications are reasons to ask, and add details.

-- Programs of before take notifications for facts, and read parts of what the Server API knows.
UPDATE ledger.compatibility SET program_min = (SELECT count(*) + 1 FROM ledger.migration);

ALTER TABLE ledger.poll_schedule
    DROP COLUMN swept_at,
    ADD COLUMN follow_ups smallint NOT NULL DEFAULT 0,
    ADD CONSTRAINT poll_schedule_follow_ups_known CHECK (follow_ups BETWEEN 0 AND 4);
COMMENT ON COLUMN ledger.poll_schedule.follow_ups IS
    'How many checks may still show nothing of what a notification states: the wanted one, then one after 1, 5 and 10 '
    'minutes; 0: no notification waits for an answer';

-- Whatever was confirmed by a part of an answer is read in full again.
UPDATE ledger.poll_schedule SET fingerprint = NULL, meaning = NULL WHERE fingerprint IS NOT NULL OR meaning IS NOT NULL;
ALTER TABLE ledger.receipt DROP COLUMN history_goes_on, DROP COLUMN reads_whole;
-- The histories of apps with a key are read from their start again, over a week: those of running subscriptions first.
WITH read AS (
    UPDATE ledger.receipt r SET history_revision = NULL
    FROM ledger.server_key k WHERE k.app_id = r.app_id AND r.history_revision IS NOT NULL
    RETURNING r.receipt_id
), turn AS (
    SELECT read.receipt_id, percent_rank() OVER (
               ORDER BY EXISTS (SELECT FROM ledger.subscription s
                                WHERE s.polled_by = read.receipt_id AND s.access_ends_at > now()) DESC, read.receipt_id) AS part
    FROM read
)
UPDATE ledger.poll_schedule s
SET due_at = LEAST(s.due_at, now() + turn.part * interval '7 days'),
    scheduled_for = LEAST(s.scheduled_for, now() + turn.part * interval '7 days')
FROM turn WHERE turn.receipt_id = s.receipt_id AND s.leased_by IS NULL AND s.lane <> 'quarantine';

-- What a lagging answer took back has another form; it is noted anew.
UPDATE ledger.subscription SET suspected = NULL WHERE suspected IS NOT NULL;
COMMENT ON COLUMN ledger.subscription.suspected IS
    'What a newer answer took back of Apple''s own words: refunds, upgrade marks, an end. A second answer has to say so too';

-- Verified notifications: those that waited to be applied become reasons to ask.
ALTER TABLE ledger.notification DROP CONSTRAINT notification_effect_known, DROP CONSTRAINT notification_pulls_to_a_time,
    DROP CONSTRAINT notification_is_applied_from_its_texts;
WITH waiting AS (
    SELECT n.notification_id, COALESCE(
               (SELECT s.polled_by FROM ledger.subscription s
                WHERE s.app_id = n.app_id AND s.environment = n.environment
                  AND s.original_transaction_id = n.original_transaction_id),
               (SELECT min(p.polled_by) FROM ledger.purchase p
                WHERE p.app_id = n.app_id AND p.environment = n.environment
                  AND p.original_transaction_id = n.original_transaction_id)) AS receipt_id
    FROM ledger.notification n WHERE n.effect IN ('received', 'awaits_whole', 'unjoined')
), wanted AS (
    INSERT INTO ledger.poll_schedule AS s (receipt_id, app_id, lane, due_at, scheduled_for, follow_ups)
    SELECT DISTINCT r.receipt_id, r.app_id, 'retry'::ledger.lane, now(), now(), 4
    FROM waiting JOIN ledger.receipt r USING (receipt_id)
    ON CONFLICT (receipt_id) DO UPDATE
    SET follow_ups = 4, want_at = CASE WHEN s.leased_by IS NOT NULL THEN now() ELSE s.want_at END,
        due_at = CASE WHEN s.leased_by IS NULL THEN LEAST(s.due_at, now()) ELSE s.due_at END,
        scheduled_for = CASE WHEN s.leased_by IS NULL THEN LEAST(s.scheduled_for, now()) ELSE s.scheduled_for END
)
UPDATE ledger.notification n
SET effect = CASE WHEN w.receipt_id IS NULL THEN 'unpolled' ELSE 'asked' END
FROM waiting w WHERE w.notification_id = n.notification_id;
UPDATE ledger.notification SET effect = 'pulled', check_at = received_at WHERE effect = 'uploaded';
-- What was taken for facts stays, and a rebuild begins at the first whole answer since.
UPDATE ledger.notification SET effect = 'stated' WHERE effect = 'applied';
DROP INDEX ledger.notification_to_apply;
CREATE OR REPLACE FUNCTION perennial.forget_notifications(before timestamptz) RETURNS bigint LANGUAGE sql AS $$
    WITH gone AS (
        DELETE FROM ledger.notification n
        WHERE n.received_at < before AND n.effect NOT IN ('applied', 'stated')
          AND (n.signed_at IS NULL OR n.received_at < now() - interval '200 days')
        RETURNING 1)
    SELECT count(*) FROM gone
$$;
COMMENT ON FUNCTION perennial.forget_notifications IS
    'Removes notifications that came before an instant, and returns how many. Those whose details are part of the ledger '
    'stay, and the ids of verified ones for 200 days. For perennial_owner';
DROP VIEW perennial.notification_log;
ALTER TABLE ledger.notification
    DROP COLUMN apply_at, DROP COLUMN attempts, DROP COLUMN applied_at, DROP COLUMN source,
    ADD CONSTRAINT notification_effect_known CHECK (effect IN (
        'pulled', 'awaited', 'no_subscription', 'unknown', 'ignored', 'wrong_password', 'asked', 'planned', 'unpolled',
        'unshown', 'applied', 'stated', 'no_facts')),
    ADD CONSTRAINT notification_pulls_to_a_time CHECK (check_at IS NOT NULL OR effect NOT IN ('pulled', 'awaited'));
CREATE INDEX notification_waits ON ledger.notification (app_id, original_transaction_id, environment)
    WHERE effect IN ('asked', 'planned', 'unpolled', 'unshown');
CREATE VIEW perennial.notification_log AS
SELECT n.notification_id, a.bundle_id, n.environment::text AS environment, n.received_at, n.kind, n.subkind,
       n.original_transaction_id, n.effect, n.check_at
FROM ledger.notification n LEFT JOIN ledger.app a USING (app_id);
COMMENT ON VIEW perennial.notification_log IS
    'Apple''s notifications, what each was about and what it did, without its texts. Unverified ones stay for 90 days';
COMMENT ON COLUMN perennial.notification_log.effect IS
    'What it did: asked, planned, unpolled, unshown, applied, stated or no_facts if it is verified; else pulled, awaited, '
    'no_subscription, unknown, wrong_password or ignored';
COMMENT ON COLUMN perennial.notification_log.notification_id IS 'The number of the notification';
COMMENT ON COLUMN perennial.notification_log.bundle_id IS 'The app, by its bundle identifier';
COMMENT ON COLUMN perennial.notification_log.original_transaction_id IS
    'Apple''s id of the subscription or one-time purchase';
COMMENT ON COLUMN perennial.notification_log.subkind IS 'Apple''s subtype; null: it has none';
COMMENT ON COLUMN perennial.notification_log.check_at IS
    'When the check came that it asked for; null: it asked for none';
COMMENT ON COLUMN perennial.notification_log.environment IS 'Production or Sandbox; null: it does not say';
COMMENT ON COLUMN perennial.notification_log.kind IS 'Apple''s notification type';
COMMENT ON COLUMN perennial.notification_log.received_at IS 'When it came, by our clock';
COMMENT ON TABLE ledger.notification IS
    'Apple''s notifications: reasons to ask soon. The details in verified ones become part of what answers show';
COMMENT ON COLUMN ledger.notification.signed_at IS 'When Apple signed it; null: it is not verified';
COMMENT ON COLUMN ledger.notification.effect IS
    'Of a verified one: asked: Apple is asked until an answer shows what it states; planned: the planned check shows it; '
    'unpolled: no receipt polls its subject, which is known by notification only; unshown: no answer showed it; applied: its '
    'details are part of the ledger; stated: an earlier edition took it for facts; no_facts: it holds no transaction and no '
    'renewal. '
    'pulled: the next check is at check_at or sooner; awaited: a worker asks about the receipt now and will again '
    'by check_at, or the receipt is in quarantine and keeps its pace; no_subscription: the notification names none; '
    'unknown: no receipt polls a subscription of that name; ignored: the notification is about another app; '
    'wrong_password: its password is not the app''s secret';
COMMENT ON COLUMN ledger.notification.reason IS 'Why it counts as unverified';

-- Apple sends a notification again for three days, and the schedule asks anyway: its history is not read.
DROP TABLE ledger.catch_up;
DELETE FROM ledger.call_budget WHERE endpoint = 'notifications';
ALTER TABLE ledger.call_budget
    DROP CONSTRAINT call_budget_endpoint_known,
    ADD CONSTRAINT call_budget_endpoint_known CHECK (
        endpoint IN ('statuses', 'history', 'transactions', 'refunds', 'extensions', 'single'));
COMMENT ON COLUMN ledger.call_budget.endpoint IS
    'A kind of call: statuses, history (of transactions), transactions (one transaction, consumption), refunds (refund '
    'history and orders), extensions (extend one, account token), single (extend all, test notification)';

-- Trust in notifications does not lengthen the intervals between refund checks any more.
UPDATE ledger.app SET sweep = 'relaxed' WHERE sweep = 'auto';
ALTER TABLE ledger.app
    DROP CONSTRAINT app_sweep_known,
    ADD CONSTRAINT app_sweep_known CHECK (sweep IN ('normal', 'relaxed'));
COMMENT ON COLUMN ledger.app.sweep IS
    'How often the worker looks for refunds: normal, or relaxed, which is half as often, for an app with notifications';
DROP TABLE ledger.sweep_proof, ledger.sweep_trust;
DROP INDEX ledger.event_of_refund, ledger.notification_verified;
