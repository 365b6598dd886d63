/// The statements that lock or change data.
extension Queries {
    /// `queries/add_app.sql`
    package static let addApp = SQLFile("add_app", PackageResources.add_app_sql)
    /// `queries/add_checks.sql`
    package static let addChecks = SQLFile("add_checks", PackageResources.add_checks_sql)
    /// `queries/add_observation_months.sql`
    package static let addObservationMonths = SQLFile(
        "add_observation_months", PackageResources.add_observation_months_sql)
    /// `queries/add_shares.sql`
    package static let addShares = SQLFile("add_shares", PackageResources.add_shares_sql)
    /// `queries/add_summary_rows.sql`
    package static let addSummaryRows = SQLFile("add_summary_rows", PackageResources.add_summary_rows_sql)
    /// `queries/ask_refused_again.sql`
    package static let askRefusedAgain = SQLFile("ask_refused_again", PackageResources.ask_refused_again_sql)
    /// `queries/audit_uploads.sql`
    package static let auditUploads = SQLFile("audit_uploads", PackageResources.audit_uploads_sql)
    /// `queries/store_heartbeat.sql`
    package static let storeHeartbeat = SQLFile("store_heartbeat", PackageResources.store_heartbeat_sql)
    /// `queries/claim.sql`
    package static let claim = SQLFile("claim", PackageResources.claim_sql)
    /// `queries/claim_one.sql`
    package static let claimOne = SQLFile("claim_one", PackageResources.claim_one_sql)
    /// `queries/close_clock_incidents.sql`
    package static let closeClockIncidents = SQLFile(
        "close_clock_incidents", PackageResources.close_clock_incidents_sql)
    /// `queries/close_incidents.sql`
    package static let closeIncidents = SQLFile("close_incidents", PackageResources.close_incidents_sql)
    /// `queries/close_session.sql`
    package static let closeSession = SQLFile("close_session", PackageResources.close_session_sql)
    /// `queries/close_spans.sql`
    package static let closeSpans = SQLFile("close_spans", PackageResources.close_spans_sql)
    /// `queries/confirm.sql`
    package static let confirm = SQLFile("confirm", PackageResources.confirm_sql)
    /// `queries/confirm_purchases.sql`
    package static let confirmPurchases = SQLFile("confirm_purchases", PackageResources.confirm_purchases_sql)
    /// `queries/cover.sql`
    package static let cover = SQLFile("cover", PackageResources.cover_sql)
    /// `queries/create_key.sql`
    package static let createKey = SQLFile("create_key", PackageResources.create_key_sql)
    /// `queries/create_roles.sql`
    package static let createRoles = SQLFile("create_roles", PackageResources.create_roles_sql)
    /// `queries/delete_aliases.sql`
    package static let deleteAliases = SQLFile("delete_aliases", PackageResources.delete_aliases_sql)
    /// `queries/delete_audit.sql`
    package static let deleteAudit = SQLFile("delete_audit", PackageResources.delete_audit_sql)
    /// `queries/delete_observations.sql`
    package static let deleteObservations = SQLFile("delete_observations", PackageResources.delete_observations_sql)
    /// `queries/delete_periods.sql`
    package static let deletePeriods = SQLFile("delete_periods", PackageResources.delete_periods_sql)
    /// `queries/delete_products.sql`
    package static let deleteProducts = SQLFile("delete_products", PackageResources.delete_products_sql)
    /// `queries/drop_empty_months.sql`
    package static let dropEmptyMonths = SQLFile("drop_empty_months", PackageResources.drop_empty_months_sql)
    /// `queries/end_grants.sql`
    package static let endGrants = SQLFile("end_grants", PackageResources.end_grants_sql)
    /// `queries/end_hand_grants.sql`
    package static let endHandGrants = SQLFile("end_hand_grants", PackageResources.end_hand_grants_sql)
    /// `queries/end_ownerships.sql`
    package static let endOwnerships = SQLFile("end_ownerships", PackageResources.end_ownerships_sql)
    /// `queries/erase_customers.sql`
    package static let eraseCustomers = SQLFile("erase_customers", PackageResources.erase_customers_sql)
    /// `queries/erase_receipts.sql`
    package static let eraseReceipts = SQLFile("erase_receipts", PackageResources.erase_receipts_sql)
    /// `queries/erase_tokens.sql`
    package static let eraseTokens = SQLFile("erase_tokens", PackageResources.erase_tokens_sql)
    /// `queries/erase_uploads.sql`
    package static let eraseUploads = SQLFile("erase_uploads", PackageResources.erase_uploads_sql)
    /// `queries/extend_observations.sql`
    package static let extendObservations = SQLFile("extend_observations", PackageResources.extend_observations_sql)
    /// `queries/finish_import.sql`
    package static let finishImport = SQLFile("finish_import", PackageResources.finish_import_sql)
    /// `queries/forget_fingerprints.sql`
    package static let forgetFingerprints = SQLFile("forget_fingerprints", PackageResources.forget_fingerprints_sql)
    /// `queries/forget_refusals.sql`
    package static let forgetRefusals = SQLFile("forget_refusals", PackageResources.forget_refusals_sql)
    /// `queries/forget_shares.sql`
    package static let forgetShares = SQLFile("forget_shares", PackageResources.forget_shares_sql)
    /// `queries/forget_summary_rows.sql`
    package static let forgetSummaryRows = SQLFile("forget_summary_rows", PackageResources.forget_summary_rows_sql)
    /// `queries/forget_workers.sql`
    package static let forgetWorkers = SQLFile("forget_workers", PackageResources.forget_workers_sql)
    /// `queries/grant_roles.sql`
    package static let grantRoles = SQLFile("grant_roles", PackageResources.grant_roles_sql)
    /// `queries/insert_aliases.sql`
    package static let insertAliases = SQLFile("insert_aliases", PackageResources.insert_aliases_sql)
    /// `queries/insert_audit.sql`
    package static let insertAudit = SQLFile("insert_audit", PackageResources.insert_audit_sql)
    /// `queries/insert_corrections.sql`
    package static let insertCorrections = SQLFile("insert_corrections", PackageResources.insert_corrections_sql)
    /// `queries/insert_customers.sql`
    package static let insertCustomers = SQLFile("insert_customers", PackageResources.insert_customers_sql)
    /// `queries/insert_events.sql`
    package static let insertEvents = SQLFile("insert_events", PackageResources.insert_events_sql)
    /// `queries/insert_grants.sql`
    package static let insertGrants = SQLFile("insert_grants", PackageResources.insert_grants_sql)
    /// `queries/insert_manual_grant.sql`
    package static let insertManualGrant = SQLFile("insert_manual_grant", PackageResources.insert_manual_grant_sql)
    /// `queries/insert_observations.sql`
    package static let insertObservations = SQLFile("insert_observations", PackageResources.insert_observations_sql)
    /// `queries/insert_ownerships.sql`
    package static let insertOwnerships = SQLFile("insert_ownerships", PackageResources.insert_ownerships_sql)
    /// `queries/insert_purchases.sql`
    package static let insertPurchases = SQLFile("insert_purchases", PackageResources.insert_purchases_sql)
    /// `queries/insert_receipts.sql`
    package static let insertReceipts = SQLFile("insert_receipts", PackageResources.insert_receipts_sql)
    /// `queries/insert_refusals.sql`
    package static let insertRefusals = SQLFile("insert_refusals", PackageResources.insert_refusals_sql)
    /// `queries/insert_spans.sql`
    package static let insertSpans = SQLFile("insert_spans", PackageResources.insert_spans_sql)
    /// `queries/insert_subscriptions.sql`
    package static let insertSubscriptions = SQLFile("insert_subscriptions", PackageResources.insert_subscriptions_sql)
    /// `queries/store_checked_at.sql`
    package static let storeCheckedAt = SQLFile("store_checked_at", PackageResources.store_checked_at_sql)
    /// `queries/store_notification.sql`
    package static let storeNotification = SQLFile("store_notification", PackageResources.store_notification_sql)
    /// `queries/link_purchases.sql`
    package static let linkPurchases = SQLFile("link_purchases", PackageResources.link_purchases_sql)
    /// `queries/link_receipts.sql`
    package static let linkReceipts = SQLFile("link_receipts", PackageResources.link_receipts_sql)
    /// `queries/lock_apple_breaker.sql`
    package static let lockAppleBreaker = SQLFile("lock_apple_breaker", PackageResources.lock_apple_breaker_sql)
    /// `queries/lock_uploader.sql`
    package static let lockUploader = SQLFile("lock_uploader", PackageResources.lock_uploader_sql)
    /// `queries/lock_catalog.sql`
    package static let lockCatalog = SQLFile("lock_catalog", PackageResources.lock_catalog_sql)
    /// `queries/lock_confirmed.sql`
    package static let lockConfirmed = SQLFile("lock_confirmed", PackageResources.lock_confirmed_sql)
    /// `queries/lock_confirmed_purchases.sql`
    package static let lockConfirmedPurchases = SQLFile(
        "lock_confirmed_purchases", PackageResources.lock_confirmed_purchases_sql)
    /// `queries/lock_ended_allowances.sql`
    package static let lockEndedAllowances = SQLFile(
        "lock_ended_allowances", PackageResources.lock_ended_allowances_sql)
    /// `queries/lock_feed.sql`
    package static let lockFeed = SQLFile("lock_feed", PackageResources.lock_feed_sql)
    /// `queries/lock_grantee.sql`
    package static let lockGrantee = SQLFile("lock_grantee", PackageResources.lock_grantee_sql)
    /// `queries/lock_incidents.sql`
    package static let lockIncidents = SQLFile("lock_incidents", PackageResources.lock_incidents_sql)
    /// `queries/lock_migrations.sql`
    package static let lockMigrations = SQLFile("lock_migrations", PackageResources.lock_migrations_sql)
    /// `queries/lock_owned.sql`
    package static let lockOwned = SQLFile("lock_owned", PackageResources.lock_owned_sql)
    /// `queries/lock_owned_purchases.sql`
    package static let lockOwnedPurchases = SQLFile("lock_owned_purchases", PackageResources.lock_owned_purchases_sql)
    /// `queries/lock_rate_limit.sql`
    package static let lockRateLimit = SQLFile("lock_rate_limit", PackageResources.lock_rate_limit_sql)
    /// `queries/lock_customers.sql`
    package static let lockCustomers = SQLFile("lock_customers", PackageResources.lock_customers_sql)
    /// `queries/lock_polled.sql`
    package static let lockPolled = SQLFile("lock_polled", PackageResources.lock_polled_sql)
    /// `queries/lock_purchases.sql`
    package static let lockPurchases = SQLFile("lock_purchases", PackageResources.lock_purchases_sql)
    /// `queries/lock_rebuilt_purchases.sql`
    package static let lockRebuiltPurchases = SQLFile(
        "lock_rebuilt_purchases", PackageResources.lock_rebuilt_purchases_sql)
    /// `queries/lock_rebuilt_subscriptions.sql`
    package static let lockRebuiltSubscriptions = SQLFile(
        "lock_rebuilt_subscriptions", PackageResources.lock_rebuilt_subscriptions_sql)
    /// `queries/lock_schedules.sql`
    package static let lockSchedules = SQLFile("lock_schedules", PackageResources.lock_schedules_sql)
    /// `queries/lock_subscriptions.sql`
    package static let lockSubscriptions = SQLFile("lock_subscriptions", PackageResources.lock_subscriptions_sql)
    /// `queries/lock_summaries.sql`
    package static let lockSummaries = SQLFile("lock_summaries", PackageResources.lock_summaries_sql)
    /// `queries/mark_import.sql`
    package static let markImport = SQLFile("mark_import", PackageResources.mark_import_sql)
    /// `queries/mark_omissions.sql`
    package static let markOmissions = SQLFile("mark_omissions", PackageResources.mark_omissions_sql)
    /// `queries/mark_summarised.sql`
    package static let markSummarised = SQLFile("mark_summarised", PackageResources.mark_summarised_sql)
    /// `queries/merge_names.sql`
    package static let mergeNames = SQLFile("merge_names", PackageResources.merge_names_sql)
    /// `queries/merge_uploads.sql`
    package static let mergeUploads = SQLFile("merge_uploads", PackageResources.merge_uploads_sql)
    /// `queries/move_summaries.sql`
    package static let moveSummaries = SQLFile("move_summaries", PackageResources.move_summaries_sql)
    /// `queries/open_import.sql`
    package static let openImport = SQLFile("open_import", PackageResources.open_import_sql)
    /// `queries/open_clock_incidents.sql`
    package static let openClockIncidents = SQLFile(
        "open_clock_incidents", PackageResources.open_clock_incidents_sql)
    /// `queries/open_incidents.sql`
    package static let openIncidents = SQLFile("open_incidents", PackageResources.open_incidents_sql)
    /// `queries/open_session.sql`
    package static let openSession = SQLFile("open_session", PackageResources.open_session_sql)
    /// `queries/pause_app.sql`
    package static let pauseApp = SQLFile("pause_app", PackageResources.pause_app_sql)
    /// `queries/prune_notifications.sql`
    package static let pruneNotifications = SQLFile("prune_notifications", PackageResources.prune_notifications_sql)
    /// `queries/raise_versions.sql`
    package static let raiseVersions = SQLFile("raise_versions", PackageResources.raise_versions_sql)
    /// `queries/read_owners.sql`
    package static let readOwners = SQLFile("read_owners", PackageResources.read_owners_sql)
    /// `queries/record_migration.sql`
    package static let recordMigration = SQLFile("record_migration", PackageResources.record_migration_sql)
    /// `queries/release.sql`
    package static let release = SQLFile("release", PackageResources.release_sql)
    /// `queries/renew_feed.sql`
    package static let renewFeed = SQLFile("renew_feed", PackageResources.renew_feed_sql)
    /// `queries/reschedule.sql`
    package static let reschedule = SQLFile("reschedule", PackageResources.reschedule_sql)
    /// `queries/reserve_ids.sql`
    package static let reserveIds = SQLFile("reserve_ids", PackageResources.reserve_ids_sql)
    /// `queries/retire.sql`
    package static let retire = SQLFile("retire", PackageResources.retire_sql)
    /// `queries/return_budget.sql`
    package static let returnBudget = SQLFile("return_budget", PackageResources.return_budget_sql)
    /// `queries/revoke_key.sql`
    package static let revokeKey = SQLFile("revoke_key", PackageResources.revoke_key_sql)
    /// `queries/rotate_secret.sql`
    package static let rotateSecret = SQLFile("rotate_secret", PackageResources.rotate_secret_sql)
    /// `queries/sequence_feed.sql`
    package static let sequenceFeed = SQLFile("sequence_feed", PackageResources.sequence_feed_sql)
    /// `queries/set_app.sql`
    package static let setApp = SQLFile("set_app", PackageResources.set_app_sql)
    /// `queries/set_notification_digest.sql`
    package static let setNotificationDigest = SQLFile(
        "set_notification_digest", PackageResources.set_notification_digest_sql)
    /// `queries/settle_uploads.sql`
    package static let settleUploads = SQLFile("settle_uploads", PackageResources.settle_uploads_sql)
    /// `queries/split_name.sql`
    package static let splitName = SQLFile("split_name", PackageResources.split_name_sql)
    /// `queries/start_worker.sql`
    package static let startWorker = SQLFile("start_worker", PackageResources.start_worker_sql)
    /// `queries/store_provisionals.sql`
    package static let storeProvisionals = SQLFile("store_provisionals", PackageResources.store_provisionals_sql)
    /// `queries/store_uploads.sql`
    package static let storeUploads = SQLFile("store_uploads", PackageResources.store_uploads_sql)
    /// `queries/take_budget.sql`
    package static let takeBudget = SQLFile("take_budget", PackageResources.take_budget_sql)
    /// `queries/take_refusals_back.sql`
    package static let takeRefusalsBack = SQLFile("take_refusals_back", PackageResources.take_refusals_back_sql)
    /// `queries/check_feed_place.sql`
    package static let checkFeedPlace = SQLFile("check_feed_place", PackageResources.check_feed_place_sql)
    /// `queries/prune_right_log.sql`
    package static let pruneRightLog = SQLFile("prune_right_log", PackageResources.prune_right_log_sql)
    /// `queries/upsert_products.sql`
    package static let upsertProducts = SQLFile("upsert_products", PackageResources.upsert_products_sql)
    /// `queries/write_apple_breaker.sql`
    package static let writeAppleBreaker = SQLFile("write_apple_breaker", PackageResources.write_apple_breaker_sql)
    /// `queries/write_rate_limit.sql`
    package static let writeRateLimit = SQLFile("write_rate_limit", PackageResources.write_rate_limit_sql)
    /// `queries/write_periods.sql`
    package static let writePeriods = SQLFile("write_periods", PackageResources.write_periods_sql)
    /// `queries/write_polling.sql`
    package static let writePolling = SQLFile("write_polling", PackageResources.write_polling_sql)
    /// `queries/write_purchases.sql`
    package static let writePurchases = SQLFile("write_purchases", PackageResources.write_purchases_sql)
    /// `queries/write_receipts.sql`
    package static let writeReceipts = SQLFile("write_receipts", PackageResources.write_receipts_sql)
    /// `queries/write_subscriptions.sql`
    package static let writeSubscriptions = SQLFile("write_subscriptions", PackageResources.write_subscriptions_sql)
}
