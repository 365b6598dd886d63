/// The statements that lock or change something.
extension Queries {
    /// `queries/add_app.sql`
    public static let addApp = SQLFile("add_app", PackageResources.add_app_sql)
    /// `queries/add_checks.sql`
    public static let addChecks = SQLFile("add_checks", PackageResources.add_checks_sql)
    /// `queries/add_observation_months.sql`
    public static let addObservationMonths = SQLFile(
        "add_observation_months", PackageResources.add_observation_months_sql)
    /// `queries/add_shares.sql`
    public static let addShares = SQLFile("add_shares", PackageResources.add_shares_sql)
    /// `queries/add_summary_rows.sql`
    public static let addSummaryRows = SQLFile("add_summary_rows", PackageResources.add_summary_rows_sql)
    /// `queries/ask_refused_again.sql`
    public static let askRefusedAgain = SQLFile("ask_refused_again", PackageResources.ask_refused_again_sql)
    /// `queries/audit_uploads.sql`
    public static let auditUploads = SQLFile("audit_uploads", PackageResources.audit_uploads_sql)
    /// `queries/beat_worker.sql`
    public static let beatWorker = SQLFile("beat_worker", PackageResources.beat_worker_sql)
    /// `queries/claim.sql`
    public static let claim = SQLFile("claim", PackageResources.claim_sql)
    /// `queries/claim_one.sql`
    public static let claimOne = SQLFile("claim_one", PackageResources.claim_one_sql)
    /// `queries/close_clock_incidents.sql`
    public static let closeClockIncidents = SQLFile(
        "close_clock_incidents", PackageResources.close_clock_incidents_sql)
    /// `queries/close_incidents.sql`
    public static let closeIncidents = SQLFile("close_incidents", PackageResources.close_incidents_sql)
    /// `queries/close_session.sql`
    public static let closeSession = SQLFile("close_session", PackageResources.close_session_sql)
    /// `queries/close_spans.sql`
    public static let closeSpans = SQLFile("close_spans", PackageResources.close_spans_sql)
    /// `queries/confirm.sql`
    public static let confirm = SQLFile("confirm", PackageResources.confirm_sql)
    /// `queries/confirm_purchases.sql`
    public static let confirmPurchases = SQLFile("confirm_purchases", PackageResources.confirm_purchases_sql)
    /// `queries/cover.sql`
    public static let cover = SQLFile("cover", PackageResources.cover_sql)
    /// `queries/create_key.sql`
    public static let createKey = SQLFile("create_key", PackageResources.create_key_sql)
    /// `queries/create_roles.sql`
    public static let createRoles = SQLFile("create_roles", PackageResources.create_roles_sql)
    /// `queries/delete_aliases.sql`
    public static let deleteAliases = SQLFile("delete_aliases", PackageResources.delete_aliases_sql)
    /// `queries/delete_audit.sql`
    public static let deleteAudit = SQLFile("delete_audit", PackageResources.delete_audit_sql)
    /// `queries/delete_observations.sql`
    public static let deleteObservations = SQLFile("delete_observations", PackageResources.delete_observations_sql)
    /// `queries/delete_periods.sql`
    public static let deletePeriods = SQLFile("delete_periods", PackageResources.delete_periods_sql)
    /// `queries/delete_products.sql`
    public static let deleteProducts = SQLFile("delete_products", PackageResources.delete_products_sql)
    /// `queries/drop_empty_months.sql`
    public static let dropEmptyMonths = SQLFile("drop_empty_months", PackageResources.drop_empty_months_sql)
    /// `queries/end_grants.sql`
    public static let endGrants = SQLFile("end_grants", PackageResources.end_grants_sql)
    /// `queries/end_hand_grants.sql`
    public static let endHandGrants = SQLFile("end_hand_grants", PackageResources.end_hand_grants_sql)
    /// `queries/end_ownerships.sql`
    public static let endOwnerships = SQLFile("end_ownerships", PackageResources.end_ownerships_sql)
    /// `queries/erase_people.sql`
    public static let erasePeople = SQLFile("erase_people", PackageResources.erase_people_sql)
    /// `queries/erase_receipts.sql`
    public static let eraseReceipts = SQLFile("erase_receipts", PackageResources.erase_receipts_sql)
    /// `queries/erase_tokens.sql`
    public static let eraseTokens = SQLFile("erase_tokens", PackageResources.erase_tokens_sql)
    /// `queries/erase_uploads.sql`
    public static let eraseUploads = SQLFile("erase_uploads", PackageResources.erase_uploads_sql)
    /// `queries/extend_observations.sql`
    public static let extendObservations = SQLFile("extend_observations", PackageResources.extend_observations_sql)
    /// `queries/finish_import.sql`
    public static let finishImport = SQLFile("finish_import", PackageResources.finish_import_sql)
    /// `queries/forget_fingerprints.sql`
    public static let forgetFingerprints = SQLFile("forget_fingerprints", PackageResources.forget_fingerprints_sql)
    /// `queries/forget_refusals.sql`
    public static let forgetRefusals = SQLFile("forget_refusals", PackageResources.forget_refusals_sql)
    /// `queries/forget_shares.sql`
    public static let forgetShares = SQLFile("forget_shares", PackageResources.forget_shares_sql)
    /// `queries/forget_summary_rows.sql`
    public static let forgetSummaryRows = SQLFile("forget_summary_rows", PackageResources.forget_summary_rows_sql)
    /// `queries/forget_workers.sql`
    public static let forgetWorkers = SQLFile("forget_workers", PackageResources.forget_workers_sql)
    /// `queries/grant_roles.sql`
    public static let grantRoles = SQLFile("grant_roles", PackageResources.grant_roles_sql)
    /// `queries/insert_aliases.sql`
    public static let insertAliases = SQLFile("insert_aliases", PackageResources.insert_aliases_sql)
    /// `queries/insert_audit.sql`
    public static let insertAudit = SQLFile("insert_audit", PackageResources.insert_audit_sql)
    /// `queries/insert_corrections.sql`
    public static let insertCorrections = SQLFile("insert_corrections", PackageResources.insert_corrections_sql)
    /// `queries/insert_customers.sql`
    public static let insertCustomers = SQLFile("insert_customers", PackageResources.insert_customers_sql)
    /// `queries/insert_events.sql`
    public static let insertEvents = SQLFile("insert_events", PackageResources.insert_events_sql)
    /// `queries/insert_grants.sql`
    public static let insertGrants = SQLFile("insert_grants", PackageResources.insert_grants_sql)
    /// `queries/insert_hand_grant.sql`
    public static let insertHandGrant = SQLFile("insert_hand_grant", PackageResources.insert_hand_grant_sql)
    /// `queries/insert_observations.sql`
    public static let insertObservations = SQLFile("insert_observations", PackageResources.insert_observations_sql)
    /// `queries/insert_ownerships.sql`
    public static let insertOwnerships = SQLFile("insert_ownerships", PackageResources.insert_ownerships_sql)
    /// `queries/insert_purchases.sql`
    public static let insertPurchases = SQLFile("insert_purchases", PackageResources.insert_purchases_sql)
    /// `queries/insert_receipts.sql`
    public static let insertReceipts = SQLFile("insert_receipts", PackageResources.insert_receipts_sql)
    /// `queries/insert_refusals.sql`
    public static let insertRefusals = SQLFile("insert_refusals", PackageResources.insert_refusals_sql)
    /// `queries/insert_spans.sql`
    public static let insertSpans = SQLFile("insert_spans", PackageResources.insert_spans_sql)
    /// `queries/insert_subscriptions.sql`
    public static let insertSubscriptions = SQLFile("insert_subscriptions", PackageResources.insert_subscriptions_sql)
    /// `queries/keep_checked.sql`
    public static let keepChecked = SQLFile("keep_checked", PackageResources.keep_checked_sql)
    /// `queries/keep_notification.sql`
    public static let keepNotification = SQLFile("keep_notification", PackageResources.keep_notification_sql)
    /// `queries/link_purchases.sql`
    public static let linkPurchases = SQLFile("link_purchases", PackageResources.link_purchases_sql)
    /// `queries/link_receipts.sql`
    public static let linkReceipts = SQLFile("link_receipts", PackageResources.link_receipts_sql)
    /// `queries/lock_apple_breaker.sql`
    public static let lockAppleBreaker = SQLFile("lock_apple_breaker", PackageResources.lock_apple_breaker_sql)
    /// `queries/lock_bringer.sql`
    public static let lockBringer = SQLFile("lock_bringer", PackageResources.lock_bringer_sql)
    /// `queries/lock_catalog.sql`
    public static let lockCatalog = SQLFile("lock_catalog", PackageResources.lock_catalog_sql)
    /// `queries/lock_confirmed.sql`
    public static let lockConfirmed = SQLFile("lock_confirmed", PackageResources.lock_confirmed_sql)
    /// `queries/lock_confirmed_purchases.sql`
    public static let lockConfirmedPurchases = SQLFile(
        "lock_confirmed_purchases", PackageResources.lock_confirmed_purchases_sql)
    /// `queries/lock_ended_holds.sql`
    public static let lockEndedHolds = SQLFile("lock_ended_holds", PackageResources.lock_ended_holds_sql)
    /// `queries/lock_feed.sql`
    public static let lockFeed = SQLFile("lock_feed", PackageResources.lock_feed_sql)
    /// `queries/lock_grantee.sql`
    public static let lockGrantee = SQLFile("lock_grantee", PackageResources.lock_grantee_sql)
    /// `queries/lock_incidents.sql`
    public static let lockIncidents = SQLFile("lock_incidents", PackageResources.lock_incidents_sql)
    /// `queries/lock_migrations.sql`
    public static let lockMigrations = SQLFile("lock_migrations", PackageResources.lock_migrations_sql)
    /// `queries/lock_owned.sql`
    public static let lockOwned = SQLFile("lock_owned", PackageResources.lock_owned_sql)
    /// `queries/lock_owned_purchases.sql`
    public static let lockOwnedPurchases = SQLFile("lock_owned_purchases", PackageResources.lock_owned_purchases_sql)
    /// `queries/lock_pace.sql`
    public static let lockPace = SQLFile("lock_pace", PackageResources.lock_pace_sql)
    /// `queries/lock_people.sql`
    public static let lockPeople = SQLFile("lock_people", PackageResources.lock_people_sql)
    /// `queries/lock_polled.sql`
    public static let lockPolled = SQLFile("lock_polled", PackageResources.lock_polled_sql)
    /// `queries/lock_purchases.sql`
    public static let lockPurchases = SQLFile("lock_purchases", PackageResources.lock_purchases_sql)
    /// `queries/lock_rebuilt_purchases.sql`
    public static let lockRebuiltPurchases = SQLFile(
        "lock_rebuilt_purchases", PackageResources.lock_rebuilt_purchases_sql)
    /// `queries/lock_rebuilt_subscriptions.sql`
    public static let lockRebuiltSubscriptions = SQLFile(
        "lock_rebuilt_subscriptions", PackageResources.lock_rebuilt_subscriptions_sql)
    /// `queries/lock_schedules.sql`
    public static let lockSchedules = SQLFile("lock_schedules", PackageResources.lock_schedules_sql)
    /// `queries/lock_subscriptions.sql`
    public static let lockSubscriptions = SQLFile("lock_subscriptions", PackageResources.lock_subscriptions_sql)
    /// `queries/lock_summaries.sql`
    public static let lockSummaries = SQLFile("lock_summaries", PackageResources.lock_summaries_sql)
    /// `queries/mark_import.sql`
    public static let markImport = SQLFile("mark_import", PackageResources.mark_import_sql)
    /// `queries/mark_omissions.sql`
    public static let markOmissions = SQLFile("mark_omissions", PackageResources.mark_omissions_sql)
    /// `queries/mark_summarised.sql`
    public static let markSummarised = SQLFile("mark_summarised", PackageResources.mark_summarised_sql)
    /// `queries/merge_names.sql`
    public static let mergeNames = SQLFile("merge_names", PackageResources.merge_names_sql)
    /// `queries/merge_uploads.sql`
    public static let mergeUploads = SQLFile("merge_uploads", PackageResources.merge_uploads_sql)
    /// `queries/move_summaries.sql`
    public static let moveSummaries = SQLFile("move_summaries", PackageResources.move_summaries_sql)
    /// `queries/open_import.sql`
    public static let openImport = SQLFile("open_import", PackageResources.open_import_sql)
    /// `queries/open_clock_incidents.sql`
    public static let openClockIncidents = SQLFile(
        "open_clock_incidents", PackageResources.open_clock_incidents_sql)
    /// `queries/open_incidents.sql`
    public static let openIncidents = SQLFile("open_incidents", PackageResources.open_incidents_sql)
    /// `queries/open_session.sql`
    public static let openSession = SQLFile("open_session", PackageResources.open_session_sql)
    /// `queries/pause_app.sql`
    public static let pauseApp = SQLFile("pause_app", PackageResources.pause_app_sql)
    /// `queries/prune_notifications.sql`
    public static let pruneNotifications = SQLFile("prune_notifications", PackageResources.prune_notifications_sql)
    /// `queries/raise_versions.sql`
    public static let raiseVersions = SQLFile("raise_versions", PackageResources.raise_versions_sql)
    /// `queries/read_owners.sql`
    public static let readOwners = SQLFile("read_owners", PackageResources.read_owners_sql)
    /// `queries/record_migration.sql`
    public static let recordMigration = SQLFile("record_migration", PackageResources.record_migration_sql)
    /// `queries/release.sql`
    public static let release = SQLFile("release", PackageResources.release_sql)
    /// `queries/renew_feed.sql`
    public static let renewFeed = SQLFile("renew_feed", PackageResources.renew_feed_sql)
    /// `queries/reschedule.sql`
    public static let reschedule = SQLFile("reschedule", PackageResources.reschedule_sql)
    /// `queries/reserve_ids.sql`
    public static let reserveIds = SQLFile("reserve_ids", PackageResources.reserve_ids_sql)
    /// `queries/retire.sql`
    public static let retire = SQLFile("retire", PackageResources.retire_sql)
    /// `queries/return_budget.sql`
    public static let returnBudget = SQLFile("return_budget", PackageResources.return_budget_sql)
    /// `queries/revoke_key.sql`
    public static let revokeKey = SQLFile("revoke_key", PackageResources.revoke_key_sql)
    /// `queries/rotate_secret.sql`
    public static let rotateSecret = SQLFile("rotate_secret", PackageResources.rotate_secret_sql)
    /// `queries/sequence_feed.sql`
    public static let sequenceFeed = SQLFile("sequence_feed", PackageResources.sequence_feed_sql)
    /// `queries/set_app.sql`
    public static let setApp = SQLFile("set_app", PackageResources.set_app_sql)
    /// `queries/set_notification_digest.sql`
    public static let setNotificationDigest = SQLFile(
        "set_notification_digest", PackageResources.set_notification_digest_sql)
    /// `queries/settle_uploads.sql`
    public static let settleUploads = SQLFile("settle_uploads", PackageResources.settle_uploads_sql)
    /// `queries/split_name.sql`
    public static let splitName = SQLFile("split_name", PackageResources.split_name_sql)
    /// `queries/start_worker.sql`
    public static let startWorker = SQLFile("start_worker", PackageResources.start_worker_sql)
    /// `queries/store_provisionals.sql`
    public static let storeProvisionals = SQLFile("store_provisionals", PackageResources.store_provisionals_sql)
    /// `queries/store_uploads.sql`
    public static let storeUploads = SQLFile("store_uploads", PackageResources.store_uploads_sql)
    /// `queries/take_budget.sql`
    public static let takeBudget = SQLFile("take_budget", PackageResources.take_budget_sql)
    /// `queries/take_refusals_back.sql`
    public static let takeRefusalsBack = SQLFile("take_refusals_back", PackageResources.take_refusals_back_sql)
    /// `queries/tend_feed.sql`
    public static let tendFeed = SQLFile("tend_feed", PackageResources.tend_feed_sql)
    /// `queries/tend_right_log.sql`
    public static let tendRightLog = SQLFile("tend_right_log", PackageResources.tend_right_log_sql)
    /// `queries/upsert_products.sql`
    public static let upsertProducts = SQLFile("upsert_products", PackageResources.upsert_products_sql)
    /// `queries/write_apple_breaker.sql`
    public static let writeAppleBreaker = SQLFile("write_apple_breaker", PackageResources.write_apple_breaker_sql)
    /// `queries/write_pace.sql`
    public static let writePace = SQLFile("write_pace", PackageResources.write_pace_sql)
    /// `queries/write_periods.sql`
    public static let writePeriods = SQLFile("write_periods", PackageResources.write_periods_sql)
    /// `queries/write_polling.sql`
    public static let writePolling = SQLFile("write_polling", PackageResources.write_polling_sql)
    /// `queries/write_purchases.sql`
    public static let writePurchases = SQLFile("write_purchases", PackageResources.write_purchases_sql)
    /// `queries/write_receipts.sql`
    public static let writeReceipts = SQLFile("write_receipts", PackageResources.write_receipts_sql)
    /// `queries/write_subscriptions.sql`
    public static let writeSubscriptions = SQLFile("write_subscriptions", PackageResources.write_subscriptions_sql)
}
