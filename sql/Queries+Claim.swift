/// Statements that lease due receipts, count them, and pace the calls to Apple.
extension Queries {
    package static let storeHeartbeat = SQLFile("store_heartbeat", PackageResources.store_heartbeat_sql)
    package static let claim = SQLFile("claim", PackageResources.claim_sql)
    package static let claimOne = SQLFile("claim_one", PackageResources.claim_one_sql)
    package static let countDue = SQLFile("count_due", PackageResources.count_due_sql)
    package static let forgetWorkers = SQLFile("forget_workers", PackageResources.forget_workers_sql)
    package static let lockAppleBreaker = SQLFile("lock_apple_breaker", PackageResources.lock_apple_breaker_sql)
    package static let lockRateLimit = SQLFile("lock_rate_limit", PackageResources.lock_rate_limit_sql)
    package static let overdue = SQLFile("overdue", PackageResources.overdue_sql)
    package static let pauseCalls = SQLFile("pause_calls", PackageResources.pause_calls_sql)
    package static let release = SQLFile("release", PackageResources.release_sql)
    package static let returnBudget = SQLFile("return_budget", PackageResources.return_budget_sql)
    package static let startWorker = SQLFile("start_worker", PackageResources.start_worker_sql)
    package static let takeCall = SQLFile("take_call", PackageResources.take_call_sql)
    package static let takeBudget = SQLFile("take_budget", PackageResources.take_budget_sql)
    package static let writeAppleBreaker = SQLFile("write_apple_breaker", PackageResources.write_apple_breaker_sql)
    package static let writeRateLimit = SQLFile("write_rate_limit", PackageResources.write_rate_limit_sql)
}
