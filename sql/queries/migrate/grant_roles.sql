-- Grants each role its privileges. owner: all data. worker and api: what a check and an upload write, but no app,
-- secret, catalog or key. api: also sessions, manual grants, support calls and merges; only api reads API keys and offer
-- keys. report: only the schema perennial.
-- worker and api may insert and close bitemporal rows but never change them, and may only insert events.
GRANT USAGE ON SCHEMA perennial TO perennial_report, perennial_api, perennial_worker, perennial_owner;
GRANT SELECT ON ALL TABLES IN SCHEMA perennial TO perennial_report, perennial_api, perennial_worker, perennial_owner;
-- The functions that reports rest on are in ledger; report reads no table there.
GRANT USAGE ON SCHEMA ledger TO perennial_report, perennial_worker, perennial_api, perennial_owner;
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA ledger TO perennial_owner;
GRANT SELECT ON ALL TABLES IN SCHEMA ledger TO perennial_worker, perennial_api;
GRANT INSERT, UPDATE ON
    ledger.customer, ledger.receipt, ledger.upload, ledger.poll_schedule, ledger.subscription, ledger.receipt_subscription,
    ledger.period, ledger.period_history, ledger.transaction_alias, ledger.purchase, ledger.purchase_history,
    ledger.observation, ledger.event_outbox, ledger.worker, ledger.app_budget, ledger.import, ledger.provisional,
    ledger.receipt_purchase, ledger.incident, ledger.refusal, ledger.verified_minute, ledger.apple_breaker,
    ledger.check_hour, ledger.summary_share, ledger.summary_day, ledger.summary_progress,
    ledger.summarised, ledger.summary_paying, ledger.summary_revenue, ledger.summary_renewal, ledger.summary_trial,
    ledger.verify_turn, ledger.invariant, ledger.current_entitlements, ledger.purchase_order, ledger.order_request,
    ledger.order_receipt, ledger.delivery, ledger.due_delivery, ledger.delivery_queue, ledger.delivery_release,
    ledger.call_budget, ledger.signer_chain, ledger.channel_comparison, ledger.channel_difference, ledger.channel_walk,
    ledger.secret_trial, ledger.refused_bundle, ledger.webhook_line, ledger.unread_claim
    TO perennial_worker, perennial_api;
-- A role that can open sessions could act as any administrator.
REVOKE ALL ON ledger.admin_session, ledger.api_key FROM perennial_worker;
GRANT INSERT, UPDATE, DELETE ON ledger.admin_session TO perennial_api;
-- A worker signs nothing; it reads the names of keys with the other settings of apps.
REVOKE ALL ON ledger.offer_key FROM perennial_worker;
GRANT SELECT (app_id, key_id, issuer_id) ON ledger.offer_key TO perennial_worker;
REVOKE UPDATE ON ledger.subscription_span, ledger.ownership, ledger.event, ledger.event_feed
    FROM perennial_worker, perennial_api;
GRANT INSERT, UPDATE (known) ON ledger.subscription_span, ledger.ownership TO perennial_worker, perennial_api;
GRANT INSERT, UPDATE (known) ON ledger.manual_grant TO perennial_api;
GRANT INSERT, UPDATE ON ledger.grant_request, ledger.support_call TO perennial_api;
GRANT UPDATE ON ledger.webhook TO perennial_worker;
GRANT INSERT, UPDATE, DELETE ON ledger.webhook TO perennial_api;
-- The pages merge customers.
GRANT INSERT, UPDATE (applies) ON ledger.customer_merge TO perennial_api;
GRANT DELETE ON ledger.upload TO perennial_api;
GRANT UPDATE (customer_id) ON ledger.stated_price TO perennial_api;
GRANT INSERT ON ledger.event, ledger.event_feed TO perennial_worker, perennial_api;
GRANT UPDATE (position) ON ledger.feed TO perennial_worker, perennial_api;
GRANT INSERT ON ledger.audit, ledger.acknowledgement TO perennial_worker, perennial_api;
GRANT DELETE ON
    ledger.poll_schedule, ledger.period, ledger.event_outbox, ledger.worker, ledger.refusal, ledger.verified_minute,
    ledger.check_hour, ledger.summary_share, ledger.summary_paying, ledger.summary_revenue, ledger.summary_renewal,
    ledger.summary_trial, ledger.order_request, ledger.grant_request, ledger.delivery_release, ledger.due_delivery,
    ledger.webhook_line, ledger.unread_claim
    TO perennial_worker, perennial_api;
GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA ledger TO perennial_worker, perennial_api, perennial_owner;
REVOKE EXECUTE ON FUNCTION ledger.add_observation_month(timestamptz) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION ledger.add_observation_month(timestamptz) TO perennial_worker, perennial_api, perennial_owner;
GRANT EXECUTE ON FUNCTION ledger.drop_empty_observation_months(timestamptz) TO perennial_owner;
REVOKE EXECUTE ON FUNCTION
    perennial.set_price, perennial.set_small_business, perennial.forget_notifications, perennial.keep_feed_id FROM PUBLIC;
GRANT EXECUTE ON FUNCTION
    perennial.set_price, perennial.set_small_business, perennial.forget_notifications TO perennial_owner;
GRANT INSERT, UPDATE, DELETE ON ledger.notification TO perennial_worker, perennial_api;
