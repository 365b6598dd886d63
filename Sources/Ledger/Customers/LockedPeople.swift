import Postgres
import SQL

/// The people behind some names, with everything of theirs, locked in the order in which everybody locks.
struct LockedPeople {
    /// One name of somebody.
    struct Name: Hashable {
        let customer: CustomerID
        let name: String
        /// Whose name it is; the customer themselves unless it was merged.
        let head: CustomerID
    }

    /// Every name, merged ones included.
    let names: [Name]
    /// Receipts that nobody else uploaded.
    let soleReceipts: [Int64]
    /// Receipts that others uploaded too.
    let sharedReceipts: [Int64]
    /// Whether Apple is being asked about one of them at this moment.
    let isBeingAsked: Bool
    /// What they own and what their receipts alone poll.
    var run: SettlementRun

    /// Who stands behind a name; nil when nobody does.
    func head(of name: String) -> Name? {
        guard let known = names.first(where: { $0.name == name }) else { return nil }
        return names.first { $0.customer == known.head }
    }

    /// The names that are a customer's.
    func names(of head: CustomerID) -> [Name] { names.filter { $0.head == head } }

    /// Throws `busy` when what they have changes meanwhile.
    init(named texts: [String], appID: Int32, in transaction: Transaction) throws {
        let found = try Self.find(texts, appID: appID, in: transaction)
        let ids = Parameter.int8s(found.map(\.customer.number))
        let uploaded = try UploadedReceipts(of: ids, in: transaction)
        let pollers = try LockedPollers(
            uploaded.all, and: FoundPollers(polledBySole: uploaded, in: transaction), in: transaction)
        isBeingAsked = uploaded.all.contains { pollers.schedules[$0]?.isLeased ?? false }
        soleReceipts = uploaded.sole.map(\.number)
        sharedReceipts = uploaded.shared.map(\.number)
        let subscriptions = try transaction.query(
            Queries.lockOwned, [ids, .int8s(soleReceipts), .int4(nil), .text(nil)])
        let purchases = try transaction.query(
            Queries.lockOwnedPurchases, [ids, .int8s(soleReceipts), .int4(nil), .text(nil)])
        try transaction.query(Queries.lockPeople, [ids])
        run = try SettlementRun(
            locked: subscriptions, purchases: purchases, pollers: pollers, unable: uploaded.sole, in: transaction)
        names = try Self.find(texts, appID: appID, in: transaction)
        guard let now = try transaction.query(Queries.countOwned, [ids]).first, names == found,
            try now.int8("things") == run.thingsOwned(by: Set(found.map(\.customer))),
            try now.int8("receipts") == uploaded.all.count,
            try UploadedReceipts(of: ids, in: transaction) == uploaded
        else { throw LedgerError(.busy, "What the customer has is changing at this moment; try again.") }
    }

    private static func find(_ texts: [String], appID: Int32, in transaction: Transaction) throws -> [Name] {
        try transaction.query(Queries.findPeople, [.int4(appID), .texts(texts)]).map { row in
            Name(
                customer: CustomerID(number: try row.int8("customer_id")), name: try row.text("name"),
                head: CustomerID(number: try row.int8("head_id")))
        }
    }
}

/// The receipts that some customers uploaded.
private struct UploadedReceipts: Equatable {
    /// Those that only they uploaded.
    let sole: [ReceiptID]
    /// Those that others uploaded too.
    let shared: [ReceiptID]

    var all: [ReceiptID] { sole + shared }

    init(of customers: Parameter, in transaction: Transaction) throws {
        let rows = try transaction.query(Queries.readReceiptsOf, [customers])
        sole = try rows.filter { try $0.bool("sole") }.map { ReceiptID(try $0.int8("receipt_id")) }
        shared = try rows.filter { try $0.bool("sole") == false }.map { ReceiptID(try $0.int8("receipt_id")) }
    }
}

extension FoundPollers {
    /// What only these customers' receipts are asked about, with the receipts that would take over if these went.
    fileprivate init(polledBySole uploaded: UploadedReceipts, in transaction: Transaction) throws {
        var question = Question()
        (question.polledBy, question.unable) = (uploaded.sole, uploaded.sole)
        try self.init(question, in: transaction)
    }
}

extension SubscriptionLedger {
    /// How often a change of customers that met other writers is tried in all.
    private static let customerTriesMax = 5

    /// Runs a change of customers, again when it met other writers.
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
