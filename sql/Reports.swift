/// The reports, each runnable by `psql -f` with variables.
package enum Reports {
    /// Every report, by name.
    package static let all: [SQLFile] = [
        SQLFile("access_now", PackageResources.access_now_sql),
        SQLFile("active_subscriptions", PackageResources.active_subscriptions_sql),
        SQLFile("apple_errors_by_hour", PackageResources.apple_errors_by_hour_sql),
        SQLFile("billing_recovery", PackageResources.billing_recovery_sql),
        SQLFile("changes_by_day", PackageResources.changes_by_day_sql),
        SQLFile("channel_differences", PackageResources.channel_differences_sql),
        SQLFile("churn", PackageResources.churn_sql),
        SQLFile("expected_renewals", PackageResources.expected_renewals_sql),
        SQLFile("lifetime_value", PackageResources.lifetime_value_sql),
        SQLFile("mrr", PackageResources.mrr_sql),
        SQLFile("mrr_churn", PackageResources.mrr_churn_sql),
        SQLFile("mrr_movement", PackageResources.mrr_movement_sql),
        SQLFile("never_verified", PackageResources.never_verified_sql),
        SQLFile("ownership_conflicts", PackageResources.ownership_conflicts_sql),
        SQLFile("refunds_by_purchase_date", PackageResources.refunds_by_purchase_date_sql),
        SQLFile("refunds_by_refund_date", PackageResources.refunds_by_refund_date_sql),
        SQLFile("refused_receipts", PackageResources.refused_receipts_sql),
        SQLFile("renewal_rate", PackageResources.renewal_rate_sql),
        SQLFile("restatement", PackageResources.restatement_sql),
        SQLFile("retention", PackageResources.retention_sql),
        SQLFile("revenue", PackageResources.revenue_sql),
        SQLFile("stale_subscriptions", PackageResources.stale_subscriptions_sql),
        SQLFile("stuck_work", PackageResources.stuck_work_sql),
        SQLFile("summaries_check", PackageResources.summaries_check_sql),
        SQLFile("trial_cohorts", PackageResources.trial_cohorts_sql),
        SQLFile("trials", PackageResources.trials_sql),
        SQLFile("unacknowledged_deliveries", PackageResources.unacknowledged_deliveries_sql),
    ]
}
