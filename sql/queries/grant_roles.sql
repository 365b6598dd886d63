-- What each role may do: owner all data; worker and api what a check and an upload write, but no app, secret, catalog or
-- key; report only the schema perennial.
GRANT USAGE ON SCHEMA perennial TO perennial_report, perennial_api, perennial_worker, perennial_owner;
GRANT SELECT ON ALL TABLES IN SCHEMA perennial TO perennial_report, perennial_api, perennial_worker, perennial_owner;
GRANT USAGE ON SCHEMA ledger TO perennial_worker, perennial_api, perennial_owner;
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA ledger TO perennial_owner;
GRANT SELECT ON ALL TABLES IN SCHEMA ledger TO perennial_worker, perennial_api;
GRANT INSERT, UPDATE ON
    ledger.customer, ledger.receipt, ledger.upload, ledger.poll_schedule, ledger.subscription, ledger.receipt_subscription,
    ledger.period, ledger.period_past, ledger.transaction_alias, ledger.purchase, ledger.purchase_past,
    ledger.subscription_span, ledger.ownership, ledger.observation, ledger.event, ledger.event_outbox, ledger.event_feed,
    ledger.worker, ledger.app_budget, ledger.import, ledger.provisional, ledger.receipt_purchase, ledger.incident,
    ledger.refusal, ledger.vouched_minute, ledger.apple_breaker
    TO perennial_worker, perennial_api;
GRANT INSERT ON ledger.audit TO perennial_worker, perennial_api;
GRANT DELETE ON
    ledger.poll_schedule, ledger.period, ledger.event_outbox, ledger.refusal, ledger.vouched_minute
    TO perennial_worker, perennial_api;
GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA ledger TO perennial_worker, perennial_api, perennial_owner;
REVOKE EXECUTE ON FUNCTION ledger.add_observation_month(timestamptz) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION ledger.add_observation_month(timestamptz) TO perennial_worker, perennial_api, perennial_owner;
