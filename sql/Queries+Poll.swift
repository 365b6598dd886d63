/// Statements that choose the receipt through which a subscription or purchase is polled.
extension Queries {
    package static let cover = SQLFile("cover", PackageResources.cover_sql)
    package static let findPollers = SQLFile("find_pollers", PackageResources.find_pollers_sql)
    package static let foldClocks = SQLFile("fold_clocks", PackageResources.fold_clocks_sql)
    package static let findUncovered = SQLFile("find_uncovered", PackageResources.find_uncovered_sql)
    package static let lockSchedules = SQLFile("lock_schedules", PackageResources.lock_schedules_sql)
    package static let markOmissions = SQLFile("mark_omissions", PackageResources.mark_omissions_sql)
    package static let postpone = SQLFile("postpone", PackageResources.postpone_sql)
    package static let readOmissions = SQLFile("read_omissions", PackageResources.read_omissions_sql)
    package static let readReceipts = SQLFile("read_receipts", PackageResources.read_receipts_sql)
    package static let writePolling = SQLFile("write_polling", PackageResources.write_polling_sql)
}
