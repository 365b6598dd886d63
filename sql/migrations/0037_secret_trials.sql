-- What Apple says of each app's shared secret, and the apps that refused receipts name.

CREATE TABLE ledger.secret_trial (
    app_id        int NOT NULL REFERENCES ledger.app ON DELETE CASCADE,
    environment   ledger.environment NOT NULL,
    proved_at     timestamptz,
    refused_at    timestamptz,
    paused_since  timestamptz,
    try_at        timestamptz NOT NULL DEFAULT '-infinity',
    unanswered    smallint NOT NULL DEFAULT 0,
    PRIMARY KEY (app_id, environment)
);
COMMENT ON TABLE ledger.secret_trial IS
    'Whether Apple accepts the present shared secret of an app in an environment. A refusal (21004) about one receipt may '
    'only mean that the receipt is of another app, so the secret is tried on a receipt that is known to be of the app';
COMMENT ON COLUMN ledger.secret_trial.proved_at IS 'When Apple first accepted the present secret; null: not yet';
COMMENT ON COLUMN ledger.secret_trial.refused_at IS
    'When the first call began that Apple refused since the last trial; null: none';
COMMENT ON COLUMN ledger.secret_trial.paused_since IS
    'Since when Apple refuses the secret: nothing is asked until a trial is accepted; null: not paused';
COMMENT ON COLUMN ledger.secret_trial.try_at IS 'The next trial is not before this';
COMMENT ON COLUMN ledger.secret_trial.unanswered IS 'How many trials in a row brought no answer';

-- What is polled now was vouched for with the present secret, as far as is known.
INSERT INTO ledger.secret_trial (app_id, environment, proved_at)
SELECT a.app_id, e.environment, now()
FROM ledger.app a CROSS JOIN unnest(enum_range(NULL::ledger.environment)) AS e(environment)
WHERE a.sealed_secret IS NOT NULL AND EXISTS (
    SELECT FROM ledger.subscription s JOIN ledger.receipt r ON r.receipt_id = s.polled_by
    WHERE s.app_id = a.app_id AND s.environment = e.environment AND r.outcome = 'verified');

CREATE TABLE ledger.refused_bundle (
    app_id     int NOT NULL REFERENCES ledger.app ON DELETE CASCADE,
    bundle_id  text NOT NULL,
    receipts   bigint NOT NULL,
    last_at    timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (app_id, bundle_id)
);
COMMENT ON TABLE ledger.refused_bundle IS
    'Bundle ids of receipts that were sent for an app and refused because they name another one, with how many; a '
    'bounded number for each app, so that a new one may take the place of the rarest and count on from it';

CREATE FUNCTION ledger.secret_pause(app int) RETURNS text
LANGUAGE sql STABLE AS $$
    SELECT 'Apple refuses the shared secret (21004) in ' || min(t.environment)
           || '; run `perennial app rotate-secret`. One receipt is tried every minute until Apple accepts it'
    FROM ledger.secret_trial t
    WHERE t.app_id = app AND t.paused_since IS NOT NULL
    HAVING count(*) > 0
$$;
COMMENT ON FUNCTION ledger.secret_pause IS
    'Why checks of an app wait, if Apple refuses its shared secret; production first';

CREATE OR REPLACE VIEW perennial.receipt_now AS
SELECT r.receipt_id, a.bundle_id, r.environment::text AS environment,
       ARRAY(SELECT c.name FROM ledger.upload u JOIN ledger.customer c USING (customer_id)
             WHERE u.receipt_id = r.receipt_id ORDER BY u.uploaded_at, c.name) AS customers,
       r.outcome::text AS outcome, r.reason, r.received_at, GREATEST(r.asked_at, s.confirmed_at) AS asked_at,
       GREATEST(r.verified_at, s.confirmed_at) AS verified_at, r.rejections, r.rejected_since,
       GREATEST(s.due_at, s.scheduled_for) AS due_at, s.scheduled_for,
       s.lane::text AS lane, s.attempts, s.crashes,
       s.leased_by IS NOT NULL AS is_leased, s.leased_by IS NOT NULL AND s.due_at > now() AS is_in_flight,
       b.paused_until, CASE WHEN b.paused_until > now() THEN b.paused_because
           ELSE (SELECT 'Apple refuses the shared secret (21004)' FROM ledger.secret_trial t
                 WHERE t.app_id = r.app_id AND t.environment = COALESCE(r.environment, 'Production')
                   AND t.paused_since IS NOT NULL) END AS paused_because
FROM ledger.receipt r
JOIN ledger.app a USING (app_id)
LEFT JOIN ledger.app_budget b USING (app_id)
LEFT JOIN ledger.poll_schedule s USING (receipt_id);
