import AppStore
package import Ledger
import Subscriptions

/// What a notification of version 2 turned out to be.
package enum ReceivedNotification: Sendable {
    /// Apple signed it, and it is about this app.
    case verified(VerifiedNotification)
    /// It is no fact, for this reason.
    case unverified(String)
}

extension Tracker {
    /// How far ahead of the database's clock Apple's may be.
    private static let aheadMax = Delay.minutes(5)
    /// The age from which a notification is not believed: Apple's last repetition comes after a week.
    private static let ageMax = Delay.days(15)

    /// Verifies the texts of a notification, and that it is about the app.
    ///
    /// `admits` says whether an unknown chain may be verified now. Throws ``SignedTextRefusal/tooManyChains`` where it
    /// may not: that says nothing about the notification.
    package func receive(
        _ text: [UInt8], for app: NotifiedApp,
        admittingChain admits: @Sendable () -> Bool = { true }
    ) async throws -> ReceivedNotification {
        do {
            let outer = try await signedTexts.verify(text, admittingChain: admits)
            let inner = outer.innerTexts
            let transaction = try await payload(of: inner.transaction, admits)
            let renewal = try await payload(of: inner.renewal, admits)
            guard
                let said = SignedNotification(payload: outer.payload, transaction: transaction, renewal: renewal)
            else { return .unverified("Its payload is not that of a notification.") }
            if let reason = Self.refusal(of: said, for: app) { return .unverified(reason) }
            await noteUnread(
                of: app, in: (outer.payload, text), (transaction, inner.transaction), (renewal, inner.renewal))
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

    private func noteUnread(
        of app: NotifiedApp, in outer: (payload: [UInt8], text: [UInt8]),
        _ transaction: (payload: [UInt8]?, text: String?), _ renewal: (payload: [UInt8]?, text: String?)
    ) async {
        let subject = transaction.payload.flatMap { SignedTransaction(payload: $0)?.originalTransactionID }
        var claims = SeenClaim.all(.notification, payload: outer.payload, text: outer.text)
        for index in claims.indices { claims[index].subject = subject.map { OriginalTransactionID($0.storable) } }
        claims += SeenClaim.all(.transaction, payload: transaction.payload, text: Array((transaction.text ?? "").utf8))
        claims += SeenClaim.all(.renewal, payload: renewal.payload, text: Array((renewal.text ?? "").utf8))
        await noteUnread(claims, of: app.id)
    }

    private func packed(_ text: [UInt8], _ inner: [String]) async throws -> [UInt8] {
        let numbers = try await ledger.chainNumbers(of: PackedNotification.headers(of: text, inner))
        guard let packed = PackedNotification.packed(text, numbers: numbers) else {
            throw LedgerError(.mismatch, "A verified notification could not be packed.")
        }
        return packed
    }

    /// Returns why a genuine notification is no fact about the app; nil where it is one.
    private static func refusal(of said: SignedNotification, for app: NotifiedApp) -> String? {
        let bundles = Set([said.bundleID, said.transaction?.bundleID].compactMap(\.self))
        if let other = bundles.first(where: { $0 != app.bundleID.text }) {
            return "It is about another app, \(other.prefix(255))."
        }
        let holdsFacts = said.transaction != nil || said.renewal != nil
        if bundles.isEmpty, holdsFacts { return "It does not say which app it is about." }
        let environments = Set(
            [said.environment, said.transaction?.environment, said.renewal?.environment].compactMap(\.self))
        guard environments.count == 1 || environments.isEmpty && !holdsFacts,
            environments.allSatisfy({ StoreEnvironment(rawValue: $0) != nil })
        else {
            return "It names no environment of Apple's, or several."
        }
        // The sandbox does not know Apple's number.
        if let number = app.appleAppID, environments.first == StoreEnvironment.production.rawValue,
            said.appleAppID != String(number)
        {
            return "Its app has another number of Apple's than \(number) (`app set --apple-app-id`)."
        }
        if environments.first == StoreEnvironment.sandbox.rawValue, !app.sandboxAllowed {
            return "The app accepts no sandbox purchases."
        }
        let signedAt = Instant(milliseconds: said.signedAt)
        if signedAt > app.now + aheadMax {
            return "It was signed in the future; check the clock of the database's machine."
        }
        if signedAt < app.now - ageMax { return "It was signed more than 15 days ago." }
        return nil
    }
}

extension VerifiedNotification {
    /// Creates a notification from what its texts state, with its packed texts.
    init(_ said: SignedNotification, texts: [UInt8]) {
        let environment = said.environment ?? said.transaction?.environment ?? said.renewal?.environment
        self.init(
            kind: String(said.kind.prefix(64)).storable, subkind: said.subkind.map { String($0.prefix(64)).storable },
            appleID: String(said.uuid.prefix(64)).storable,
            environment: environment.flatMap(StoreEnvironment.init(rawValue:)),
            originalTransactionID: (said.transaction?.originalTransactionID ?? said.renewal?.originalTransactionID)
                .map { OriginalTransactionID($0.storable) },
            transactionID: (said.transaction?.transactionID).map { TransactionID($0.storable) },
            accountToken: said.transaction?.appAccountToken?.storable,
            signedAt: Instant(milliseconds: said.signedAt), texts: texts,
            holdsFacts: said.transaction != nil || said.renewal != nil)
    }
}
