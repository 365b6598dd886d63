import Foundation

/// The App Store Server API: a call is admitted by its token, counted, and answered with its fault if it has one.
extension Simulator {
    /// Answers a call of the Server API, by the store that admits its token.
    func serve(_ request: SimulatorRequest, at environment: StoreEnvironment, path: [Substring]) -> SimulatorReply {
        guard let call = ServerCall(request, at: environment, path: path) else {
            return SimulatorReply(code: 404, body: Array("Not Found".utf8))
        }
        let store = [self, neighbour].compactMap { $0 }.first { $0.admits(request) }
        return store?.answer(call) ?? SimulatorReply(code: 401, body: [])
    }

    /// Answers an admitted call, unless it comes too often, with its fault if it has one.
    private func answer(_ call: ServerCall) -> SimulatorReply {
        if let moment = serverRates.refusal(of: call.endpoint, at: callClock.now) {
            return ServerError.tooMany(until: moment)
        }
        let now = clock.now
        let fault = serverConditions.fault(ofCall: serverConditions.nextCall(), at: now)
        var reply: SimulatorReply
        do {
            reply = try answer(call, with: pen(with: fault))
        } catch let refused as ServerError {
            reply = refused.reply
        } catch {
            reply = ServerError(code: 5_000_000, message: "An unknown error occurred: \(error)").reply
        }
        reply.delaySeconds = Double(max(0, options.latencyMilliseconds)) / 1000
        return fault?.applied(toServer: reply, at: now) ?? reply
    }

    /// Answers a call by its endpoint.
    private func answer(_ call: ServerCall, with pen: SigningPen) throws -> SimulatorReply {
        switch call.endpoint {
        case .subscriptions: try statuses(call, pen)
        case .history: try history(call, pen)
        case .transaction: try transaction(call, pen)
        case .refunds: try refunds(call, pen)
        case .extend: try extend(call)
        case .massExtension: try extendAll(call)
        case .massStatus: try massStatus(call)
        case .consumption: try consume(call)
        case .accountToken: try setAccountToken(call)
        case .testNotification: try requestTest(call)
        case .testStatus: try testStatus(call)
        }
    }

    /// Returns the pen that signs for a call; a fault makes its texts wrong.
    private func pen(with fault: Fault?) throws -> SigningPen {
        var pen = try pen()
        switch fault?.kind {
        case .forged: pen.altersSignatures = true
        case .foreign: pen.bundleID += ".other"
        case .status, .http, .hang, .truncate, .html, .slow, .drip, nil: break
        }
        return pen
    }
}

extension Simulator {
    /// Returns the account that a transaction id names, as the Server API knows it now.
    func account(named id: String, _ call: ServerCall) throws(ServerError) -> Account {
        guard (1...19).contains(id.utf8.count), id.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else {
            throw .invalidTransactionID
        }
        guard let owner = AccountIDs.owner(of: id, at: call.environment), let account = serverAccount(owner.index),
            account.environment == call.environment
        else { throw .transactionNotFound }
        guard account.hasTransaction(id) || id == account.ids.appTransaction else { throw .transactionNotFound }
        guard !account.isDeleted else { throw .accountNotFound }
        return account
    }

    /// Returns an account as the Server API knows it, which may lag behind.
    private func serverAccount(_ index: Int) -> Account? {
        let lag = serverConditions.lag(of: index)
        guard lag > 0 else { return world.account(index, at: now) }
        guard let account = world.account(index, at: now) else { return nil }
        return world.account(index, asOf: max(account.start, now - lag))
    }
}

extension JSONWriter {
    /// Writes the app that an answer of the Server API is about. Only the real store says its number.
    mutating func app(_ bundleID: String, at environment: StoreEnvironment) {
        text("bundleId", bundleID)
        if environment == .production { number("appAppleId", AnswerBody.appID) }
        text("environment", environment.rawValue)
    }
}

extension Fault {
    /// Returns a reply of the Server API as the fault spoils it.
    func applied(toServer reply: SimulatorReply, at now: StoreTime) -> SimulatorReply {
        switch kind {
        case .status:
            let code = Int64(status ?? 5_000_001)
            return ServerError(code: code, message: "An unknown error occurred. Please try again.").reply
        case .http where code == 429:
            return ServerError.tooMany(until: now + Int64((seconds ?? 1) * 1000))
        case .http, .hang, .truncate, .html, .slow, .drip, .forged, .foreign: return applied(to: reply)
        }
    }
}

/// Get All Subscription Statuses, and Get Transaction Info.
extension Simulator {
    /// Get All Subscription Statuses.
    func statuses(_ call: ServerCall, _ pen: SigningPen) throws -> SimulatorReply {
        let wanted = try call.values("status").map { text in
            guard let status = Int(text).flatMap(AppleStatus.init(rawValue:)) else { throw ServerError.invalidStatus }
            return status
        }
        let account = try account(named: call.arguments[0], call)
        let groups = Dictionary(grouping: account.begun, by: \.head.product.groupID)
        return try .object { json in
            json.app(pen.bundleID, at: call.environment)
            try json.array("data") { json in
                for (group, lives) in groups.sorted(by: { $0.key < $1.key }) {
                    let shown = lives.filter { wanted.isEmpty || wanted.contains($0.status(at: account.now)) }
                    guard !shown.isEmpty else { continue }
                    try json.object { json in
                        json.text("subscriptionGroupIdentifier", group)
                        try json.array("lastTransactions") { json in
                            for life in shown { try write(life, of: account, to: &json, pen) }
                        }
                    }
                }
            }
        }
    }

    /// Writes the status and the signed texts of a subscription.
    private func write(_ life: Life, of account: Account, to json: inout JSONWriter, _ pen: SigningPen) throws {
        let transaction = SignedTransaction(life.head, of: life, account, in: world)
        let renewal = SignedRenewal(life: life, account: account, world: world)
        let signedAt = clock.now
        try json.object { json in
            json.text("originalTransactionId", life.ids.originalTransactionID)
            json.number("status", Int64(life.status(at: account.now).rawValue))
            json.text("signedTransactionInfo", try pen.transaction(transaction, at: signedAt))
            json.text("signedRenewalInfo", try pen.renewal(renewal, at: signedAt))
        }
    }

    /// Get Transaction Info.
    func transaction(_ call: ServerCall, _ pen: SigningPen) throws -> SimulatorReply {
        let id = call.arguments[0]
        let account = try account(named: id, call)
        guard let found = SignedTransaction.one(id, of: account, in: world) else { throw ServerError.appTransaction }
        let text = try pen.transaction(found, at: clock.now)
        return .object { $0.text("signedTransactionInfo", text) }
    }
}

/// Apple's `status` of a subscription.
package enum AppleStatus: Int, Codable, Sendable, CaseIterable {
    /// A period runs, or the store is about to charge the next one.
    case active = 1
    /// The subscription is over.
    case expired = 2
    /// A charge failed, and Apple tries again.
    case billingRetry = 3
    /// A charge failed, and the grace period runs.
    case gracePeriod = 4
    /// Apple refunded the newest period, or a family share ended.
    case revoked = 5
}

extension Life {
    /// Returns the status that the Server API says at the instant the life has reached.
    func status(at now: StoreTime) -> AppleStatus {
        if isPaid(at: now) { return .active }
        // A group can have several transactions of its newest period.
        let end = head.expires
        let newest = periods.filter { $0.expires == end }
        if newest.allSatisfy({ $0.cancellation.map { !$0.isUpgrade } ?? false }) { return .revoked }
        switch phase {
        case .subscribed: return .active
        case .retrying(let graceUntil, _, _): return graceUntil.map { now < $0 } ?? false ? .gracePeriod : .billingRetry
        case .ended: return .expired
        }
    }
}

/// Get Transaction History and Get Refund History.
extension Simulator {
    /// Get Transaction History.
    func history(_ call: ServerCall, _ pen: SigningPen) throws -> SimulatorReply {
        let filter = try HistoryFilter(call)
        let account = try account(named: call.arguments[0], call)
        let found = SignedTransaction.all(of: account, in: world).filter { filter.admits($0) }
            .map { (Revision(account: account.index, at: $0.modifiedAt, id: $0.id), $0) }
        let page = try HistoryPage(found, call, of: account, isDescending: filter.isDescending)
        return try .object { json in
            try write(page, to: &json, pen)
            json.app(pen.bundleID, at: call.environment)
        }
    }

    /// Get Refund History.
    func refunds(_ call: ServerCall, _ pen: SigningPen) throws -> SimulatorReply {
        let account = try account(named: call.arguments[0], call)
        let refundable = SignedTransaction.all(of: account, in: world).filter { !$0.isUpgraded && !$0.isShared }
        let found = refundable.compactMap { refunded in
            refunded.revocation.map { (Revision(account: account.index, at: $0.at, id: refunded.id), refunded) }
        }
        let page = try HistoryPage(found, call, of: account, isDescending: false)
        return try .object { try write(page, to: &$0, pen) }
    }

    /// Writes the signed transactions of a page and where the next one begins.
    private func write(_ page: HistoryPage, to json: inout JSONWriter, _ pen: SigningPen) throws {
        json.text("revision", page.revision.text)
        json.boolean("hasMore", page.hasMore)
        try json.array("signedTransactions") { json in
            for transaction in page.transactions { json.text(try pen.transaction(transaction, at: clock.now)) }
        }
    }
}

/// A place in the history of an account: after the transaction that was last on a page.
struct Revision: Sendable, Comparable {
    let account: Int
    let at: StoreTime
    let id: String
}

extension Revision {
    init?(_ text: String) {
        let parts = Data(base64Encoded: text).map { String(decoding: $0, as: UTF8.self).split(separator: " ") } ?? []
        guard parts.count >= 2, let account = Int(parts[0]), let at = Int64(parts[1]) else { return nil }
        self.init(account: account, at: StoreTime(milliseconds: at), id: parts.count == 3 ? String(parts[2]) : "")
    }

    /// An opaque text.
    var text: String { Data("\(account) \(at.milliseconds) \(id)".utf8).base64EncodedString() }

    static func < (left: Revision, right: Revision) -> Bool { (left.at, left.id) < (right.at, right.id) }
}

/// A page of a history: at most twenty transactions after a revision.
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

/// The part of a history that a call asks for.
struct HistoryFilter: Sendable {
    private let productIDs: [String]
    private let kinds: [String]
    private let groups: [String]
    private let ownership: String?
    private let isRevoked: Bool?
    private let start: Int64?
    private let end: Int64?
    /// The first version of the call has no finished consumables.
    private let hasFinished: Bool
    let isDescending: Bool

    init(_ call: ServerCall) throws(ServerError) {
        productIDs = call.values("productId")
        guard productIDs.allSatisfy({ !$0.isEmpty }) else { throw .invalidProductID }
        kinds = call.values("productType")
        guard kinds.allSatisfy({ DeliveryKind.allCases.map(\.productType).contains($0) }) else {
            throw .invalidProductType
        }
        groups = call.values("subscriptionGroupIdentifier")
        guard groups.allSatisfy({ !$0.isEmpty }) else { throw .invalidGroup }
        ownership = call.values("inAppOwnershipType").first
        guard ["FAMILY_SHARED", "PURCHASED", "ASSIGNED", nil].contains(ownership) else { throw .invalidOwnership }
        isRevoked = try call.value("revoked", orElse: .invalidRevoked) { ["true": true, "false": false][$0] }
        isDescending =
            try call.value("sort", orElse: .invalidSort) { ["DESCENDING": true, "ASCENDING": false][$0] } ?? false
        start = try call.value("startDate", orElse: .invalidStart, Self.instant)
        end = try call.value("endDate", orElse: .invalidEnd, Self.instant)
        if let start, let end, start > end { throw .startAfterEnd }
        hasFinished = !call.isFirstVersion
    }

    /// Returns whether the call asks for a transaction.
    func admits(_ transaction: SignedTransaction) -> Bool {
        let purchase = transaction.purchase.milliseconds
        return (productIDs.isEmpty || productIDs.contains(transaction.productID))
            && (kinds.isEmpty || kinds.contains(transaction.kind.productType))
            && (groups.isEmpty || groups.contains(transaction.groupID ?? ""))
            && (ownership.map { $0 == transaction.ownership } ?? true)
            && (isRevoked.map { $0 == (transaction.revocation != nil) } ?? true)
            && (start.map { purchase >= $0 } ?? true) && (end.map { purchase < $0 } ?? true)
            && (hasFinished || transaction.kind != .consumable || !transaction.isFinished)
    }

    private static func instant(_ text: String) -> Int64? { Int64(text).flatMap { $0 >= 0 ? $0 : nil } }
}
