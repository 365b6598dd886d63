import Postgres
import SQL

/// The customers behind some names, with everything they have, locked in the order that all writers use.
struct LockedCustomers {
    /// One name of a customer.
    struct Name: Hashable {
        let customer: CustomerID
        let name: String
        /// The customer the name stands for; its own customer unless it was merged.
        let head: CustomerID
    }

    /// Every name, merged ones included.
    let names: [Name]
    /// Receipts that are of no other customer.
    let soleReceipts: [Int64]
    /// Receipts that other customers uploaded too, or that were sent for their orders.
    let sharedReceipts: [Int64]
    /// Whether Apple is being asked about one of the receipts at this moment.
    let isBeingAsked: Bool
    /// The subscriptions and purchases that these customers own or that their sole receipts poll.
    var run: SettlementRun

    /// Returns the customer a name stands for; nil when the name is unknown.
    func head(of name: String) -> Name? {
        guard let known = names.first(where: { $0.name == name }) else { return nil }
        return names.first { $0.customer == known.head }
    }

    /// Returns the names of a customer.
    func names(of head: CustomerID) -> [Name] { names.filter { $0.head == head } }

    /// Locks the customers behind the names; throws `busy` when their data changes meanwhile.
    init(named texts: [String], appID: Int32, in transaction: Transaction) throws {
        let found = try Self.find(texts, appID: appID, in: transaction)
        let ids = Parameter.int8s(found.map(\.customer.number))
        let uploaded = try UploadedReceipts(of: ids, in: transaction)
        let pollers = try LockedPollers(
            uploaded.all, and: FoundPollers(polledBySole: uploaded, in: transaction), in: transaction)
        try pollers.foldClocks(in: transaction)
        isBeingAsked = uploaded.all.contains { pollers.schedules[$0]?.isLeased ?? false }
        soleReceipts = uploaded.sole.map(\.number)
        sharedReceipts = uploaded.shared.map(\.number)
        let subscriptions = try transaction.query(
            Queries.lockOwned, [ids, .int8s(soleReceipts), .int4(nil), .text(nil)])
        let purchases = try transaction.query(
            Queries.lockOwnedPurchases, [ids, .int8s(soleReceipts), .int4(nil), .text(nil)])
        try transaction.query(Queries.lockCustomers, [ids])
        try pollers.found.requireUnchanged(in: transaction)
        run = try SettlementRun(
            locked: subscriptions, purchases: purchases, pollers: pollers, unable: uploaded.sole, in: transaction)
        names = try Self.find(texts, appID: appID, in: transaction)
        guard let now = try transaction.query(Queries.countOwned, [ids]).first, names == found,
            try now.int8("things") == run.thingsOwned(by: Set(found.map(\.customer))),
            try UploadedReceipts(of: ids, in: transaction) == uploaded
        else { throw LedgerError(.busy, "What the customer has is changing at this moment; try again.") }
    }

    private static func find(_ texts: [String], appID: Int32, in transaction: Transaction) throws -> [Name] {
        try transaction.query(Queries.findNamedCustomers, [.int4(appID), .texts(texts)]).map { row in
            Name(
                customer: CustomerID(number: try row.int8("customer_id")), name: try row.text("name"),
                head: CustomerID(number: try row.int8("head_id")))
        }
    }
}

/// The receipts that the customers uploaded, that were sent for their orders, or that notifications made about what they own.
private struct UploadedReceipts: Equatable {
    /// Receipts that are of no other customer.
    let sole: [ReceiptID]
    /// Receipts that are of other customers too.
    let shared: [ReceiptID]

    var all: [ReceiptID] { sole + shared }

    init(of customers: Parameter, in transaction: Transaction) throws {
        let rows = try transaction.query(Queries.readReceiptsOf, [customers])
        sole = try rows.filter { try $0.bool("sole") }.map { ReceiptID(try $0.int8("receipt_id")) }
        shared = try rows.filter { try $0.bool("sole") == false }.map { ReceiptID(try $0.int8("receipt_id")) }
    }
}

extension FoundPollers {
    /// Finds what only these customers' receipts poll, with the receipts that would take over if these were removed.
    fileprivate init(polledBySole uploaded: UploadedReceipts, in transaction: Transaction) throws {
        var question = Question()
        (question.polledBy, question.unable) = (uploaded.sole, uploaded.sole)
        try self.init(question, in: transaction)
    }
}

extension SubscriptionLedger {
    /// The maximum number of attempts at a change of customers that conflicts with other writers.
    private static let customerTriesMax = 5

    /// Runs a change of customers; repeats it after a conflict with other writers.
    func changingCustomers<Result: Sendable>(
        _ body: @escaping @Sendable (Transaction) throws -> Result
    ) async throws -> Result {
        var attempt = 1
        while true {
            do {
                return try await changingPollers(body)
            } catch let error as LedgerError where error.kind == .busy && attempt < Self.customerTriesMax {
                attempt += 1
            }
        }
    }
}
