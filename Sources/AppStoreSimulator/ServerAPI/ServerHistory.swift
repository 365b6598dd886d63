import Foundation

/// Get Transaction History and Get Refund History.
extension Simulator {
    func history(_ call: ServerCall, _ pen: SigningPen) throws -> SimulatorReply {
        let filter = try HistoryFilter(call)
        let account = try account(named: call.arguments[0], call)
        let found = SignedTransaction.all(of: account, in: world).filter { filter.admits($0) }
            .map { (Revision(account: account.index, at: $0.modifiedAt, id: $0.id), $0) }
        let page = try HistoryPage(found, call, of: account, isDescending: filter.isDescending)
        return try .server { json in
            try write(page, to: &json, pen)
            json.app(pen.bundleID, at: call.environment)
        }
    }

    func refunds(_ call: ServerCall, _ pen: SigningPen) throws -> SimulatorReply {
        let account = try account(named: call.arguments[0], call)
        let found = SignedTransaction.all(of: account, in: world).compactMap { transaction in
            transaction.isUpgraded || transaction.isShared
                ? nil
                : transaction.revocation.map {
                    (Revision(account: account.index, at: $0.at, id: transaction.id), transaction)
                }
        }
        let page = try HistoryPage(found, call, of: account, isDescending: false)
        return try .server { try write(page, to: &$0, pen) }
    }

    private func write(_ page: HistoryPage, to json: inout JSONWriter, _ pen: SigningPen) throws {
        let texts = try page.transactions.map { try pen.transaction($0, at: clock.now) }
        json.text("revision", page.revision.text)
        json.boolean("hasMore", page.hasMore)
        json.array("signedTransactions") { json in
            for text in texts { json.text(text) }
        }
    }
}

/// A place in the history of an account: after the transaction that was last on a page.
struct Revision: Sendable, Comparable {
    let account: Int
    let at: StoreTime
    let id: String

    init(account: Int, at: StoreTime, id: String) {
        self.account = account
        self.at = at
        self.id = id
    }

    /// Reads what ``text`` returned; nil for any other text.
    init?(_ text: String) {
        let parts = Data(base64Encoded: text).map { String(decoding: $0, as: UTF8.self).split(separator: " ") } ?? []
        guard parts.count >= 2, let account = Int(parts[0]), let at = Int64(parts[1]) else { return nil }
        self.init(
            account: account, at: StoreTime(milliseconds: at), id: parts.count == 3 ? String(parts[2]) : "")
    }

    /// An opaque text.
    var text: String { Data("\(account) \(at.milliseconds) \(id)".utf8).base64EncodedString() }

    static func < (left: Revision, right: Revision) -> Bool { (left.at, left.id) < (right.at, right.id) }
}

/// One page of a history.
struct HistoryPage: Sendable {
    static let sizeMax = 20

    let transactions: [SignedTransaction]
    let revision: Revision
    let hasMore: Bool

    init(
        _ all: [(revision: Revision, transaction: SignedTransaction)], _ call: ServerCall, of account: Account,
        isDescending: Bool
    ) throws(ServerError) {
        let given = call.values("revision").first
        let start = given.flatMap { Revision($0) }
        if given != nil, start?.account != account.index { throw .invalidRevision }
        let rest = all.filter { entry in
            guard let start else { return true }
            return isDescending ? entry.revision < start : entry.revision > start
        }.sorted { isDescending ? $0.revision > $1.revision : $0.revision < $1.revision }
        let shown = rest.prefix(Self.sizeMax)
        transactions = shown.map(\.transaction)
        revision =
            shown.last?.revision ?? start ?? Revision(account: account.index, at: StoreTime(milliseconds: 0), id: "")
        hasMore = rest.count > Self.sizeMax
    }
}
