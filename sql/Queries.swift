/// The statements Perennial sends, one per file; the first line of each states its purpose. These only read.
package enum Queries {
    /// `queries/count_uploaded.sql`
    package static let countUploaded = SQLFile("count_uploaded", PackageResources.count_uploaded_sql)
    /// `queries/count_due.sql`
    package static let countDue = SQLFile("count_due", PackageResources.count_due_sql)
    /// `queries/count_owned.sql`
    package static let countOwned = SQLFile("count_owned", PackageResources.count_owned_sql)
    /// `queries/count_rebuildable.sql`
    package static let countRebuildable = SQLFile("count_rebuildable", PackageResources.count_rebuildable_sql)
    /// `queries/customer_purchases.sql`
    package static let customerPurchases = SQLFile("customer_purchases", PackageResources.customer_purchases_sql)
    /// `queries/customer_subscriptions.sql`
    package static let customerSubscriptions = SQLFile(
        "customer_subscriptions", PackageResources.customer_subscriptions_sql)
    /// `queries/customer_timeline.sql`
    package static let customerTimeline = SQLFile("customer_timeline", PackageResources.customer_timeline_sql)
    /// `queries/customer_unverified.sql`
    package static let customerUnverified = SQLFile("customer_unverified", PackageResources.customer_unverified_sql)
    /// `queries/entitlements.sql`
    package static let entitlements = SQLFile("entitlements", PackageResources.entitlements_sql)
    /// `queries/find_customer.sql`
    package static let findCustomer = SQLFile("find_customer", PackageResources.find_customer_sql)
    /// `queries/find_customers.sql`
    package static let findCustomers = SQLFile("find_customers", PackageResources.find_customers_sql)
    /// `queries/find_digests.sql`
    package static let findDigests = SQLFile("find_digests", PackageResources.find_digests_sql)
    /// `queries/find_ended_allowances.sql`
    package static let findEndedAllowances = SQLFile(
        "find_ended_allowances", PackageResources.find_ended_allowances_sql)
    /// `queries/find_key.sql`
    package static let findKey = SQLFile("find_key", PackageResources.find_key_sql)
    /// `queries/find_notified_app.sql`
    package static let findNotifiedApp = SQLFile("find_notified_app", PackageResources.find_notified_app_sql)
    /// `queries/find_named_customers.sql`
    package static let findNamedCustomers = SQLFile("find_named_customers", PackageResources.find_named_customers_sql)
    /// `queries/find_purchases_after.sql`
    package static let findPurchasesAfter = SQLFile("find_purchases_after", PackageResources.find_purchases_after_sql)
    /// `queries/find_receipts.sql`
    package static let findReceipts = SQLFile("find_receipts", PackageResources.find_receipts_sql)
    /// `queries/find_session.sql`
    package static let findSession = SQLFile("find_session", PackageResources.find_session_sql)
    /// `queries/find_subscriptions_after.sql`
    package static let findSubscriptionsAfter = SQLFile(
        "find_subscriptions_after", PackageResources.find_subscriptions_after_sql)
    /// `queries/find_probe_receipts.sql`
    package static let findProbeReceipts = SQLFile("find_probe_receipts", PackageResources.find_probe_receipts_sql)
    /// `queries/find_unsummarised.sql`
    package static let findUnsummarised = SQLFile("find_unsummarised", PackageResources.find_unsummarised_sql)
    /// `queries/find_pollers.sql`
    package static let findPollers = SQLFile("find_pollers", PackageResources.find_pollers_sql)
    /// `queries/find_prunable.sql`
    package static let findPrunable = SQLFile("find_prunable", PackageResources.find_prunable_sql)
    /// `queries/gauge_apps.sql`
    package static let gaugeApps = SQLFile("gauge_apps", PackageResources.gauge_apps_sql)
    /// `queries/gauge_lanes.sql`
    package static let gaugeLanes = SQLFile("gauge_lanes", PackageResources.gauge_lanes_sql)
    /// `queries/gauge_whole.sql`
    package static let gaugeWhole = SQLFile("gauge_whole", PackageResources.gauge_whole_sql)
    /// `queries/hold_snapshot.sql`
    package static let holdSnapshot = SQLFile("hold_snapshot", PackageResources.hold_snapshot_sql)
    /// `queries/is_migrated.sql`
    package static let isMigrated = SQLFile("is_migrated", PackageResources.is_migrated_sql)
    /// `queries/known_entitlements.sql`
    package static let knownEntitlements = SQLFile("known_entitlements", PackageResources.known_entitlements_sql)
    /// `queries/list_incidents.sql`
    package static let listIncidents = SQLFile("list_incidents", PackageResources.list_incidents_sql)
    /// `queries/list_products.sql`
    package static let listProducts = SQLFile("list_products", PackageResources.list_products_sql)
    /// `queries/overdue.sql`
    package static let overdue = SQLFile("overdue", PackageResources.overdue_sql)
    /// `queries/overview_checks.sql`
    package static let overviewChecks = SQLFile("overview_checks", PackageResources.overview_checks_sql)
    /// `queries/overview_days.sql`
    package static let overviewDays = SQLFile("overview_days", PackageResources.overview_days_sql)
    /// `queries/overview_staleness.sql`
    package static let overviewStaleness = SQLFile("overview_staleness", PackageResources.overview_staleness_sql)
    /// `queries/quote_values.sql`
    package static let quoteValues = SQLFile("quote_values", PackageResources.quote_values_sql)
    /// `queries/read_answers.sql`
    package static let readAnswers = SQLFile("read_answers", PackageResources.read_answers_sql)
    /// `queries/read_apps.sql`
    package static let readApps = SQLFile("read_apps", PackageResources.read_apps_sql)
    /// `queries/read_bought.sql`
    package static let readBought = SQLFile("read_bought", PackageResources.read_bought_sql)
    /// `queries/read_clock.sql`
    package static let readClock = SQLFile("read_clock", PackageResources.read_clock_sql)
    /// `queries/read_compatibility.sql`
    package static let readCompatibility = SQLFile("read_compatibility", PackageResources.read_compatibility_sql)
    /// `queries/read_contents.sql`
    package static let readContents = SQLFile("read_contents", PackageResources.read_contents_sql)
    /// `queries/read_customer_events.sql`
    package static let readCustomerEvents = SQLFile("read_customer_events", PackageResources.read_customer_events_sql)
    /// `queries/read_feed.sql`
    package static let readFeed = SQLFile("read_feed", PackageResources.read_feed_sql)
    /// `queries/read_feed_head.sql`
    package static let readFeedHead = SQLFile("read_feed_head", PackageResources.read_feed_head_sql)
    /// `queries/read_manual_clock.sql`
    package static let readManualClock = SQLFile("read_manual_clock", PackageResources.read_manual_clock_sql)
    /// `queries/read_hand_grants.sql`
    package static let readHandGrants = SQLFile("read_hand_grants", PackageResources.read_hand_grants_sql)
    /// `queries/read_held.sql`
    package static let readHeld = SQLFile("read_held", PackageResources.read_held_sql)
    /// `queries/read_holdings.sql`
    package static let readHoldings = SQLFile("read_holdings", PackageResources.read_holdings_sql)
    /// `queries/read_incidents.sql`
    package static let readIncidents = SQLFile("read_incidents", PackageResources.read_incidents_sql)
    /// `queries/read_keys.sql`
    package static let readKeys = SQLFile("read_keys", PackageResources.read_keys_sql)
    /// `queries/read_last_check.sql`
    package static let readLastCheck = SQLFile("read_last_check", PackageResources.read_last_check_sql)
    /// `queries/read_links.sql`
    package static let readLinks = SQLFile("read_links", PackageResources.read_links_sql)
    /// `queries/read_merged_contents.sql`
    package static let readMergedContents = SQLFile("read_merged_contents", PackageResources.read_merged_contents_sql)
    /// `queries/read_migrations.sql`
    package static let readMigrations = SQLFile("read_migrations", PackageResources.read_migrations_sql)
    /// `queries/read_observations.sql`
    package static let readObservations = SQLFile("read_observations", PackageResources.read_observations_sql)
    /// `queries/read_schedule_inputs.sql`
    package static let readScheduleInputs = SQLFile("read_schedule_inputs", PackageResources.read_schedule_inputs_sql)
    /// `queries/read_ownerships.sql`
    package static let readOwnerships = SQLFile("read_ownerships", PackageResources.read_ownerships_sql)
    /// `queries/read_periods.sql`
    package static let readPeriods = SQLFile("read_periods", PackageResources.read_periods_sql)
    /// `queries/read_receipts.sql`
    package static let readReceipts = SQLFile("read_receipts", PackageResources.read_receipts_sql)
    /// `queries/read_receipts_of.sql`
    package static let readReceiptsOf = SQLFile("read_receipts_of", PackageResources.read_receipts_of_sql)
    /// `queries/read_schedule.sql`
    package static let readSchedule = SQLFile("read_schedule", PackageResources.read_schedule_sql)
    /// `queries/read_sources.sql`
    package static let readSources = SQLFile("read_sources", PackageResources.read_sources_sql)
    /// `queries/read_spans.sql`
    package static let readSpans = SQLFile("read_spans", PackageResources.read_spans_sql)
    /// `queries/read_standings.sql`
    package static let readStandings = SQLFile("read_standings", PackageResources.read_standings_sql)
    /// `queries/read_timelines.sql`
    package static let readTimelines = SQLFile("read_timelines", PackageResources.read_timelines_sql)
    /// `queries/read_uploads.sql`
    package static let readUploads = SQLFile("read_uploads", PackageResources.read_uploads_sql)
    /// `queries/right_changes.sql`
    package static let rightChanges = SQLFile("right_changes", PackageResources.right_changes_sql)
    /// `queries/rights.sql`
    package static let rights = SQLFile("rights", PackageResources.rights_sql)
    /// `queries/search_customers.sql`
    package static let searchCustomers = SQLFile("search_customers", PackageResources.search_customers_sql)
    /// `queries/standby_lag.sql`
    package static let standbyLag = SQLFile("standby_lag", PackageResources.standby_lag_sql)
    /// `queries/status.sql`
    package static let status = SQLFile("status", PackageResources.status_sql)
    /// `queries/status_incidents.sql`
    package static let statusIncidents = SQLFile("status_incidents", PackageResources.status_incidents_sql)
    /// `queries/status_promises.sql`
    package static let statusPromises = SQLFile("status_promises", PackageResources.status_promises_sql)
    /// `queries/status_totals.sql`
    package static let statusTotals = SQLFile("status_totals", PackageResources.status_totals_sql)
    /// `queries/waiting.sql`
    package static let waiting = SQLFile("waiting", PackageResources.waiting_sql)
    /// `queries/was_asked_lately.sql`
    package static let wasAskedLately = SQLFile("was_asked_lately", PackageResources.was_asked_lately_sql)
}
