import Postgres
import SQL
import Subscriptions

extension SubscriptionLedger {
    /// The most attempts at a change that collides with other writers.
    private static let triesMax = 10

    /// Lets other receipts take over what `receipts` poll, because these cannot go on.
    func handOver(from receipts: [ReceiptID], in transaction: Transaction) throws {
        guard !receipts.isEmpty else { return }
        var question = FoundPollers.Question()
        (question.polledBy, question.unable) = (receipts, receipts)
        var run = try SettlementRun(covering: question, in: transaction)
        try run.changePolling(in: transaction)
    }

    /// Runs a change of what receipts poll, and runs it again when it collides with other writers.
    func changingPollers<Result: Sendable>(
        _ body: @escaping @Sendable (Transaction) throws -> Result
    ) async throws -> Result {
        try await retryingCollisions { try await database.transaction { try body($0) } }
    }

    /// Runs a change again when it collides with other writers.
    func retryingCollisions<Result: Sendable>(_ change: () async throws -> Result) async throws -> Result {
        var attempt = 1
        while true {
            do {
                return try await change()
            } catch let error as DatabaseError where error.isSerializationFailure && attempt < Self.triesMax {
                attempt += 1
            } catch is PollersChanged where attempt < Self.triesMax {
                attempt += 1
            }
        }
    }
}

extension SettlementRun {
    /// Locks subscriptions and purchases only to change which receipts are asked about them.
    init(
        covering question: FoundPollers.Question, apps: [Int32: App] = [:], in transaction: Transaction
    ) throws {
        let found = try FoundPollers(question, in: transaction)
        let pollers = try LockedPollers(question.polledBy, and: found, in: transaction)
        try pollers.foldClocks(in: transaction)
        let receipts = Parameter.int8s(question.polledBy.map(\.number))
        let subscriptions = try transaction.query(
            Queries.lockSubscriptions,
            SubscriptionRowKey.parameters([]) + [receipts, .int8s(question.subscriptions)])
        let purchases = try transaction.query(
            Queries.lockPurchases, PurchaseRowKey.parameters([]) + [receipts, .int8s(question.purchases)])
        try found.requireUnchanged(in: transaction)
        try self.init(
            locked: subscriptions, purchases: purchases, pollers: pollers, unable: question.unable, apps: apps,
            in: transaction)
    }

    /// Decides again which receipt is asked about each locked subscription and purchase, and when; writes the result.
    mutating func changePolling(in transaction: Transaction) throws {
        try planPolling()
        try writePolling(in: transaction)
    }
}
