import Postgres
import SQL
import Subscriptions

extension LedgerIntake {
    /// The most receipts of a customer that one notification has asked about.
    private static let tokenReceiptsMax: Int32 = 10
    /// The most notifications about what no receipt polls that one transaction takes up.
    private static let takenUpMax: Int32 = 100

    /// Stores a verified notification once, and has the receipt that polls its subject asked about soon, in the same
    /// transaction. The notification changes nothing else.
    ///
    /// What no receipt polls gets a receipt of its own where the app has a server key. Else the receipts of the customer
    /// whom its account token names are asked about, and it stays known by notification only.
    @discardableResult
    package func keep(
        _ notification: VerifiedNotification, for app: NotifiedApp
    ) async throws -> NotificationEffect {
        try await ledger.changingPollers { transaction in
            let rows = try transaction.query(
                Queries.storeVerifiedNotification,
                [
                    .int4(app.id), .text(notification.kind), .text(notification.subkind), .text(notification.appleID),
                    .text(notification.environment?.rawValue), .text(notification.originalTransactionID?.text),
                    .instant(notification.signedAt), .bytea(notification.texts), .bool(notification.holdsFacts),
                    .text(notification.transactionID?.text), .text(notification.accountToken?.lowercased()),
                    .float8(waitSeconds), .float8(apartSeconds),
                ])
            guard let row = rows.first else { return .repeated }
            let effect: NotificationEffect = try row.word("effect")
            // Another transaction may have changed the poller before its schedule was locked here.
            let missed = try transaction.query(
                Queries.findMissedPollers,
                [
                    .int4(app.id), .text(notification.environment?.rawValue),
                    .text(notification.originalTransactionID?.text),
                ])
            if effect == .asked || effect == .unpolled, !missed.isEmpty { throw PollersChanged() }
            guard effect == .unpolled else { return effect }
            let subject =
                notification.transactionID ?? notification.originalTransactionID.map { TransactionID($0.text) }
            if app.hasServerKey, let subject {
                let id = try row.int8("notification_id")
                try ask(about: [(id, app.id, subject, notification.environment)], in: transaction)
                return .asked
            }
            if let token = notification.accountToken {
                let receipts = try transaction.query(
                    Queries.findTokenReceipts, [.int4(app.id), .text(token), .int4(Self.tokenReceiptsMax)])
                try want(try receipts.map { try $0.int8("receipt_id") }, withFollowUps: false, in: transaction)
            }
            return .unpolled
        }
    }

    /// Has the Server API asked about what is known by notification only, of apps that have got a server key since. Returns
    /// whether more may be left.
    package func takeUpUnpolled() async throws -> Bool {
        try await ledger.changingPollers { transaction in
            let rows = try transaction.query(Queries.findUnpolled, [.int4(Self.takenUpMax)])
            let found = try rows.compactMap { row -> Unpolled? in
                guard let id = try row.textIfPresent("transaction_id") else { return nil }
                return (
                    try row.int8("notification_id"), try row.int4("app_id"), TransactionID(id),
                    try row.wordIfPresent("environment")
                )
            }
            try ask(about: found, in: transaction)
            return found.count == Int(Self.takenUpMax)
        }
    }

    /// A notification about what no receipt polls, and the transaction to ask by.
    private typealias Unpolled = (id: Int64, app: Int32, subject: TransactionID, environment: StoreEnvironment?)

    /// Stores transactions as uploads of no customer, and has the Server API asked about them.
    private func ask(about found: [Unpolled], in transaction: Transaction) throws {
        guard !found.isEmpty else { return }
        let uploads = found.map { unpolled in
            var upload = Upload(
                appID: unpolled.app, customer: nil, receipt: Array(unpolled.subject.text.utf8), imported: false,
                form: .transactionID, transactionID: unpolled.subject)
            upload.saysSandbox = unpolled.environment == .sandbox
            return upload
        }
        let stored = try UploadBatch(uploads).store(newReceiptsMax: nil, in: transaction)
        try want(Set(stored.map(\.receiptID.number)).sorted(), withFollowUps: true, in: transaction)
        let asked = NotificationEffect.asked.rawValue
        try transaction.query(Queries.writeEffects, [.int8s(found.map(\.id)), .texts(found.map { _ in asked })])
    }

    private func want(_ receipts: [Int64], withFollowUps: Bool, in transaction: Transaction) throws {
        guard !receipts.isEmpty else { return }
        try transaction.query(
            Queries.wantReceipts, [.int8s(receipts), .float8(waitSeconds), .bool(withFollowUps), .float8(apartSeconds)])
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
            Queries.storeUnaskedNotification,
            [
                .int4(app.id), .int2(notification.version.rawValue), .text(notification.kind),
                .text(notification.subkind), .text(notification.environment?.rawValue),
                .text(notification.originalTransactionID?.text), .text(effect.rawValue), .text(notification.body),
            ])
    }
}
