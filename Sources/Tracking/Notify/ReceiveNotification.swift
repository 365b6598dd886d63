import AppStore
import Postgres
import SQL
package import Subscriptions

/// What a notification of version 2 turned out to be.
package enum ReceivedNotification: Sendable {
    /// Apple signed it, and it is about this app.
    case verified(VerifiedNotification)
    /// It cannot be verified, for this reason.
    case unverified(String)
}

extension Tracker {
    /// How far ahead of the database's clock Apple's may be.
    private static let aheadMax = Delay.minutes(5)
    /// The age from which a notification is not believed: Apple's last repetition comes after a week.
    private static let ageMax = Delay.days(15)

    /// Verifies the texts of a notification, and that it is about the app. Throws ``SignedTextRefusal/tooManyChains``,
    /// which says nothing about the notification, where `admits` lets no unknown chain be verified now.
    package func receive(
        _ text: [UInt8], for app: NotifiedApp, admittingChain admits: @Sendable () -> Bool = { true }
    ) async throws -> ReceivedNotification {
        do {
            let outer = try await signedTexts.verify(text, admittingChain: admits)
            let inner = outer.innerTexts
            let transaction = try await payload(of: inner.transaction, admits)
            let renewal = try await payload(of: inner.renewal, admits)
            guard let said = SignedNotification(payload: outer.payload, transaction: transaction, renewal: renewal)
            else { return .unverified("Its payload is not that of a notification.") }
            if let reason = Self.refusal(of: said, for: app) { return .unverified(reason) }
            let claims =
                SeenClaim.all(.notification, payload: outer.payload, text: text, about: [transaction, renewal])
                + SeenClaim.all(.transaction, payload: transaction, text: Array((inner.transaction ?? "").utf8))
                + SeenClaim.all(.renewal, payload: renewal, text: Array((inner.renewal ?? "").utf8))
            await noteUnread(claims, of: app.id)
            return .verified(
                VerifiedNotification(
                    said, texts: try await packed(text, [inner.transaction, inner.renewal].compactMap(\.self))))
        } catch let refusal as SignedTextRefusal {
            if refusal == .tooManyChains { throw refusal }
            return .unverified(refusal.sentence)
        }
    }

    private func payload(of text: String?, _ admits: @Sendable () -> Bool) async throws -> [UInt8]? {
        guard let text else { return nil }
        return try await signedTexts.verify(Array(text.utf8), admittingChain: admits).payload
    }

    private func packed(_ text: [UInt8], _ inner: [String]) async throws -> [UInt8] {
        let numbers = try await ledger.chainNumbers(of: PackedNotification.headers(of: text, inner))
        guard let packed = PackedNotification.packed(text, numbers: numbers) else {
            throw LedgerError(.mismatch, "A verified notification could not be packed.")
        }
        return packed
    }

    /// Returns why a genuine notification is none about the app; nil where it is one.
    private static func refusal(of said: SignedNotification, for app: NotifiedApp) -> String? {
        let bundles = Set([said.bundleID, said.subject?.bundleID].compactMap(\.self))
        if let other = bundles.first(where: { $0 != app.bundleID.text }) {
            return "It is about another app, \(other.prefix(255))."
        }
        let holdsFacts = said.subject != nil || said.renewal != nil
        if bundles.isEmpty, holdsFacts { return "It does not say which app it is about." }
        let environments = Set(
            [said.environment, said.subject?.environment, said.renewal?.environment].compactMap(\.self))
        guard environments.count == 1 || environments.isEmpty && !holdsFacts,
            environments.allSatisfy({ StoreEnvironment(rawValue: $0) != nil })
        else { return "It names no environment of Apple's, or several." }
        // The sandbox does not know Apple's number.
        if let number = app.appleAppID, environments.first == StoreEnvironment.production.rawValue,
            said.appleAppID != String(number)
        {
            return "Its app has another number of Apple's than \(number) (`app set --apple-app-id`)."
        }
        if environments.first == StoreEnvironment.sandbox.rawValue, !app.sandboxAllowed {
            return "The app accepts no sandbox purchases."
        }
        if said.signedAt > app.now + aheadMax {
            return "It was signed in the future; check the clock of the database's machine."
        }
        if said.signedAt < app.now - ageMax { return "It was signed more than 15 days ago." }
        return nil
    }
}

extension VerifiedNotification {
    init(_ said: SignedNotification, texts: [UInt8]) {
        let environment = said.environment ?? said.subject?.environment ?? said.renewal?.environment
        let row = said.transaction?.row
        let paysPeriod = row?.expiresAt != nil && row?.cancelledAt == nil && row?.isUpgraded == false
        self.init(
            kind: String(said.kind.prefix(64)).storable, subkind: said.subkind.map { String($0.prefix(64)).storable },
            appleID: String(said.uuid.prefix(64)).storable,
            environment: environment.flatMap(StoreEnvironment.init(rawValue:)),
            originalTransactionID: said.subject?.originalTransactionID ?? said.renewal?.row.originalTransactionID,
            transactionID: said.subject?.transactionID, accountToken: said.subject?.appAccountToken,
            signedAt: said.signedAt, texts: texts, holdsFacts: said.subject != nil || said.renewal != nil,
            period: paysPeriod ? row : nil)
    }
}

/// A notification whose signatures were verified when it came.
package struct VerifiedNotification: Sendable, Hashable {
    /// Apple's name of the event, such as `REFUND`.
    package var kind: String
    /// Apple's subtype of the event.
    package var subkind: String?
    /// `notificationUUID`, the same in every repetition.
    package var appleID: String
    /// The environment of the purchase; nil where it is about none.
    package var environment: StoreEnvironment?
    /// The subscription or one-time purchase it is about; nil where it is about none.
    package var originalTransactionID: OriginalTransactionID?
    package var transactionID: TransactionID?
    package var accountToken: String?
    package var signedAt: Instant
    package var texts: [UInt8]
    /// Whether it holds a transaction or renewal information.
    package var holdsFacts: Bool
    /// Its transaction where that pays a period; nil for any other one, and for one that was taken back.
    package var period: TransactionRow?
}

/// A stored notification that was verified when it came.
package struct KeptNotification: Sendable {
    package let id: Int64
    package let environment: StoreEnvironment
    /// Its texts, packed; nil once they were removed.
    package let texts: [UInt8]?
    /// The claims that were kept instead, as JSON.
    package let claims: String?

    init(row: Row) throws {
        id = try row.int8("notification_id")
        environment = try row.word("environment")
        texts = try row.byteaIfPresent("texts")
        claims = try row.textIfPresent("claims")
    }
}

/// A function that reads the evidence in a stored notification by the present rules; nil where it holds none.
package typealias ReadNotification = @Sendable (KeptNotification) -> Evidence?

extension LedgerIntake {
    /// The most receipts of a customer that one notification has asked about.
    private static let tokenReceiptsMax: Int32 = 10
    /// The most notifications about what no receipt polls that one transaction takes up.
    private static let takenUpMax: Int32 = 100

    /// Stores a verified notification once, and has the receipt that polls its subject asked about soon, in the same
    /// transaction. The notification changes nothing else.
    ///
    /// What no receipt polls gets a receipt of its own where the app has a server key, and so does a one-time purchase
    /// about which verifyReceipt is asked. Else the receipts of the customer whom its account token names are asked
    /// about, and it stays known by notification only.
    @discardableResult
    package func keep(_ notification: VerifiedNotification, for app: NotifiedApp) async throws -> NotificationEffect {
        try await ledger.changingPollers { transaction in
            let rows = try transaction.query(
                Queries.storeVerifiedNotification, .int4(app.id), .text(notification.kind), .text(notification.subkind),
                .text(notification.appleID), .text(notification.environment?.rawValue),
                .text(notification.originalTransactionID?.text), .instant(notification.signedAt),
                .bytea(notification.texts), .bool(notification.holdsFacts), .text(notification.transactionID?.text),
                .text(notification.accountToken?.lowercased()), .float8(waitSeconds), .float8(apartSeconds),
                .text(notification.period?.productID.text), .text(notification.period?.webOrderLineItemID?.text),
                .instant(notification.period?.purchasedAt), .instant(notification.period?.expiresAt))
            guard let row = rows.first else { return .repeated }
            let effect: NotificationEffect = try row.word("effect")
            let about: [Parameter] = [
                .int4(app.id), .text(notification.environment?.rawValue),
                .text(notification.originalTransactionID?.text),
            ]
            // Another transaction may have changed the poller before its schedule was locked here.
            let missed = try transaction.query(Queries.findMissedPollers, about)
            if effect == .asked || effect == .unpolled, !missed.isEmpty { throw PollersChanged() }
            guard effect == .unpolled || effect == .asked && app.hasServerKey else { return effect }
            // The receipt of a one-time purchase may hold it as the device had it, and so show no refund of it.
            if effect == .asked, try transaction.query(Queries.findReceiptPurchases, about).isEmpty { return effect }
            let subject =
                notification.transactionID ?? notification.originalTransactionID.map { TransactionID($0.text) }
            if app.hasServerKey, let subject {
                let id = try row.int8("notification_id")
                try ask(about: [(id, app.id, subject, notification.environment)], in: transaction)
                return .asked
            }
            if let token = notification.accountToken {
                let receipts = try transaction.query(
                    Queries.findTokenReceipts, .int4(app.id), .text(token), .int4(Self.tokenReceiptsMax))
                let wanted = try receipts.map { (receipt: try $0.int8("receipt_id"), isSandbox: false) }
                try want(wanted, withFollowUps: false, in: transaction)
            }
            return effect
        }
    }

    /// Has the Server API asked about what is known by notification only, of apps that have got a server key since.
    /// Returns whether more may be left.
    package func takeUpUnpolled() async throws -> Bool {
        try await ledger.changingPollers { transaction in
            let found = try unpolled(in: transaction.query(Queries.findUnpolled, .int4(Self.takenUpMax)))
            try ask(about: found, in: transaction)
            return found.count == Int(Self.takenUpMax)
        }
    }

    /// Has the Server API asked once, of apps that have got a server key since, about one-time purchases of
    /// notifications about which it is not asked, and about receipts that notifications made and that hold what no
    /// receipt polls. Takes up some of both, remembers how far it came, and returns whether more may be left.
    package func takeUpOwnerless(atMost receiptsMax: Int32 = 1_000) async throws -> Bool {
        try await ledger.changingPollers { transaction in
            guard let app = try transaction.query(Queries.lockNewServerKey).first?.int4("app_id") else { return false }
            let rows = try transaction.query(Queries.findUnaskedPurchases, .int4(app), .int4(Self.takenUpMax))
            let found = try unpolled(in: rows)
            try ask(about: found, in: transaction)
            // What waits for an answer has follow-ups at the receipt that polls it, too.
            let polling = try rows.compactMap { row in
                let environment: StoreEnvironment? = try row.wordIfPresent("environment")
                return try row.int8IfPresent("polled_by").map { (receipt: $0, isSandbox: environment == .sandbox) }
            }
            try want(polling, withFollowUps: true, in: transaction)
            if found.count < Int(Self.takenUpMax) {
                try transaction.query(Queries.takeUpOwnerless, .int4(app), .int4(receiptsMax))
            }
            return true
        }
    }

    private func unpolled(in rows: [Row]) throws -> [Unpolled] {
        try rows.compactMap { row in
            guard let id = try row.textIfPresent("transaction_id") else { return nil }
            return (
                try row.int8("notification_id"), try row.int4("app_id"), TransactionID(id),
                try row.wordIfPresent("environment")
            )
        }
    }

    /// Gives up receipts that notifications made, of apps without a server key: other receipts take over what they
    /// poll, and the rest is known by notification only. Returns whether more may be left. A check that was under way
    /// when the key went may bring such a receipt back; the next round gives it up again.
    package func giveUpKeyless() async throws -> Bool {
        try await ledger.changingPollers { transaction in
            let receipts = try transaction.query(Queries.findKeyless, .int4(Self.takenUpMax)).map {
                ReceiptID(try $0.int8("receipt_id"))
            }
            guard !receipts.isEmpty else { return false }
            var question = FoundPollers.Question()
            (question.polledBy, question.unable) = (receipts, receipts)
            var run = try SettlementRun(covering: question, in: transaction)
            try run.planPolling()
            run.releaseUnable()
            let numbers = Parameter.int8s(receipts.map(\.number))
            try transaction.query(Queries.giveUp, numbers)
            try run.writePolling(refused: receipts, in: transaction)
            try transaction.query(Queries.unschedule, numbers)
            return receipts.count == Int(Self.takenUpMax)
        }
    }

    /// A notification about what no receipt polls, and the transaction to ask by.
    private typealias Unpolled = (id: Int64, app: Int32, subject: TransactionID, environment: StoreEnvironment?)

    /// Stores transactions as uploads of no customer, and has the Server API asked about them.
    private func ask(about found: [Unpolled], in transaction: Transaction) throws {
        guard !found.isEmpty else { return }
        let uploads = found.map { unpolled in
            Upload(
                appID: unpolled.app, customer: nil, receipt: Array(unpolled.subject.text.utf8), imported: false,
                form: .transactionID, transactionID: unpolled.subject)
        }
        let stored = try UploadBatch(uploads).store(newReceiptsMax: nil, in: transaction)
        let wanted = zip(stored, found).map { (receipt: $0.receiptID.number, isSandbox: $1.environment == .sandbox) }
        try want(wanted, withFollowUps: true, in: transaction)
        let asked = NotificationEffect.asked.rawValue
        try transaction.query(
            Queries.writeEffects, .int8s(found.map(\.id)), .texts(found.map { _ in asked }),
            .bools(found.map { _ in false }))
    }

    /// Has receipts asked about because of notifications, once Apple had a moment; with follow-ups until an answer shows it.
    private func want(
        _ receipts: [(receipt: Int64, isSandbox: Bool)], withFollowUps: Bool, in transaction: Transaction
    ) throws {
        guard !receipts.isEmpty else { return }
        try transaction.query(
            Queries.wantReceipts, .int8s(receipts.map(\.receipt)), .bools(receipts.map(\.isSandbox)),
            .float8(waitSeconds), .bool(withFollowUps), .float8(apartSeconds))
    }

    /// The delay between a notification and its check, in seconds: Apple's own servers need a moment to agree.
    var waitSeconds: Double {
        let seconds = ledger.notificationWaitSeconds
        return seconds == 0 ? 0 : max(Self.delaySecondsMin, seconds / Double(ledger.speedup))
    }

    /// The shortest time between two checks of one receipt that notifications ask for, in seconds.
    var apartSeconds: Double { max(Self.delaySecondsMin, Self.secondsApart / Double(ledger.speedup)) }

    /// Stores a notification that pulls no check, such as one with a wrong password.
    package func keep(
        _ notification: UnverifiedNotification, for app: NotifiedApp, because effect: NotificationEffect
    ) async throws {
        _ = try await write(
            Queries.storeUnaskedNotification, .int4(app.id), .int2(notification.version.rawValue),
            .text(notification.kind), .text(notification.subkind), .text(notification.environment?.rawValue),
            .text(notification.originalTransactionID?.text), .text(effect.rawValue), .text(notification.body))
    }
}
