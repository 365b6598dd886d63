import Postgres
import SQL

extension SubscriptionLedger {
    /// Opens and closes incidents, takes back earlier refusals and schedules new checks of refused receipts.
    ///
    /// Call it every few seconds; one caller works at a time, another does nothing. Refusals that were settled before
    /// an incident was recognised count until it is recognised.
    package func watchCanaries() async throws {
        let window = Parameter.float8(CanaryLimits.windowSeconds)
        let limits = [window, .int4(CanaryLimits.receiptsMin), .int4(CanaryLimits.sharePercent)]
        _ = try await alone { transaction in
            try transaction.query(Queries.forgetRefusals, [window])
            try transaction.query(Queries.openIncidents, limits)
            try transaction.query(Queries.closeClockIncidents, [window])
            return try transaction.query(Queries.closeIncidents, limits)
        }
        try await repeatedly(Queries.takeRefusalsBack)
        try await repeatedly(
            Queries.askRefusedAgain,
            [.float8(CanaryLimits.askAgainPerSecond), .float8(CanaryLimits.askAgainWithinSeconds)])
    }

    /// Runs a statement for a limited number of receipts, each time in a transaction of its own, until one returns
    /// fewer.
    private func repeatedly(_ file: SQLFile, _ parameters: [Parameter] = []) async throws {
        let most = CanaryLimits.receiptsAtOnceMax
        while try await alone({ try $0.query(file, [.int4(most)] + parameters) }).count == most {}
    }

    /// Runs `body` in a transaction of its own; does nothing while another process watches.
    private func alone(_ body: @escaping @Sendable (Transaction) throws -> [Row]) async throws -> [Row] {
        try await database.transaction { transaction in
            let isAlone = try transaction.query(Queries.lockIncidents).first?.bool("locked") == true
            return isAlone ? try body(transaction) : []
        }
    }
}
