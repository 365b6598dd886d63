import Foundation
import Synchronization

/// Extend a Subscription Renewal Date, for one subscription and for all of a product. A day is a thirtieth of a month.
extension Simulator {
    private struct ExtensionRequest: Decodable {
        private static let identifierBytesMax = 128

        let extendByDays: Int?
        let extendReasonCode: Int?
        let requestIdentifier: String?
        let productId: String?
        let storefrontCountryCodes: [String]?

        /// Returns days and identifier of a request that Apple accepts.
        func checked() throws(ServerError) -> (days: Int, request: String) {
            guard let extendByDays, (1...90).contains(extendByDays) else { throw .invalidDays }
            guard let extendReasonCode, (0...3).contains(extendReasonCode) else { throw .invalidReason }
            guard let requestIdentifier, (1...Self.identifierBytesMax).contains(requestIdentifier.utf8.count) else {
                throw .invalidRequestID
            }
            return (extendByDays, requestIdentifier)
        }
    }

    /// Extend a Subscription Renewal Date.
    func extend(_ call: ServerCall) throws -> SimulatorReply {
        let (days, request) = try call.read(ExtensionRequest.self).checked()
        let done = try extensionTurn.withLock { _ in try extend(call, days: days, request: request) }
        return .object { json in
            json.text("originalTransactionId", done.originalID)
            if let item = done.webOrderLineItemID { json.text("webOrderLineItemId", item) }
            json.boolean("success", true)
            json.number("effectiveDate", done.effective.milliseconds)
        }
    }

    /// Extends the subscription that a call names, unless the request did so before. Callers take turns.
    private func extend(_ call: ServerCall, days: Int, request: String) throws -> SupportBook.Extension {
        let id = call.arguments[0]
        let account: Account
        do throws(ServerError) {
            account = try self.account(named: id, call)
        } catch {
            if error.code == ServerError.invalidTransactionID.code { throw ServerError.invalidOriginalID }
            throw error.code == ServerError.transactionNotFound.code ? ServerError.originalNotFound : error
        }
        guard let number = account.lives.firstIndex(where: { $0.ids.originalTransactionID == id }) else {
            throw ServerError.originalNotFound
        }
        let key = "\(call.environment.rawValue) \(id) \(request)"
        if let known = support.withLock({ $0.extensions[key] }) { return known }
        let done = try extend(number, of: account, days: days)
        support.withLock { $0.extensions[key] = done }
        return done
    }

    /// Extend Subscription Renewal Dates for All Active Subscribers.
    func extendAll(_ call: ServerCall) throws -> SimulatorReply {
        let wanted = try call.read(ExtensionRequest.self)
        let (days, request) = try wanted.checked()
        let productIDs = SubscriptionProduct.allCases.map { $0.identifier(in: options.bundleID) }
        guard let productID = wanted.productId, productIDs.contains(productID) else {
            throw ServerError.invalidProductID
        }
        let countries = wanted.storefrontCountryCodes
        if countries?.isEmpty ?? false { throw ServerError.noCountries }
        guard countries?.allSatisfy({ $0.utf8.count == 3 }) ?? true else { throw ServerError.invalidCountry }
        let key = "\(call.environment.rawValue) \(productID) \(request)"
        try extensionTurn.withLock { _ in
            guard support.withLock({ $0.massExtensions[key] }) == nil else { return }
            try extendAll(of: productID, in: countries, days: days, request: request, key: key, call.environment)
        }
        return .object { $0.text("requestIdentifier", request) }
    }

    /// Get Status of Subscription Renewal Date Extensions.
    func massStatus(_ call: ServerCall) throws -> SimulatorReply {
        let key = "\(call.environment.rawValue) \(call.arguments[0]) \(call.arguments[1])"
        guard let done = support.withLock({ $0.massExtensions[key] }) else { throw ServerError.massNotFound }
        return .object { json in
            json.text("requestIdentifier", done.requestID)
            json.boolean("complete", true)
            json.number("completeDate", done.completedAt.milliseconds)
            json.number("succeededCount", Int64(done.succeeded))
            json.number("failedCount", Int64(done.failed))
        }
    }

    /// Extends the running subscriptions of a product. What is over or in retry is no active subscription.
    private func extendAll(
        of productID: String, in countries: [String]?, days: Int, request: String, key: String,
        _ environment: StoreEnvironment
    ) throws {
        var succeeded = 0
        var failures: [NotificationOccasion] = []
        for account in accounts() where account.environment == environment && !account.isDeleted {
            guard countries?.contains(world.storefront(of: account).country) ?? true else { continue }
            for (number, life) in account.lives.enumerated() where life.start <= account.now {
                guard life.phase == .subscribed, !life.script.isMember,
                    life.head.product.identifier(in: options.bundleID) == productID
                else { continue }
                do {
                    _ = try extend(number, of: account, days: days)
                    succeeded += 1
                } catch is ServerError {
                    failures.append(
                        account.occasion(
                            .failure(subscription: number, key: key), NotificationName("RENEWAL_EXTENSION", "FAILURE"),
                            at: now, life.ids.transactionID(of: life.head.ordinal),
                            of: life.ids.originalTransactionID))
                }
            }
        }
        let done = SupportBook.MassExtension(
            environment: environment, productID: productID, requestID: request, countries: countries ?? [],
            completedAt: clock.now, succeeded: succeeded, failed: failures.count)
        support.withLock { $0.massExtensions[key] = done }
        let summary = NotificationOccasion(
            source: .summary(key), name: NotificationName("RENEWAL_EXTENSION", "SUMMARY"), at: now,
            environment: environment)
        notifications.add(failures + [summary], until: StoreTime(milliseconds: 0))
    }

    /// Extends the running period of a subscription; throws why Apple refuses.
    private func extend(_ number: Int, of account: Account, days: Int) throws -> SupportBook.Extension {
        let life = account.lives[number]
        guard !life.script.isMember else { throw ServerError.familyExtension }
        let head = life.head
        guard life.phase == .subscribed, !head.isTrial, head.cancellation == nil else {
            throw ServerError.notExtendable
        }
        guard
            life.renewalDateExtensions(since: account.now - life.scale.milliseconds(months: 12))
                < Life.yearlyExtensionsMax
        else { throw ServerError.extendedTooOften }
        var action = CustomerAction(.extend)
        action.subscription = number
        action.seconds = life.scale.monthMilliseconds * Double(days) / 30 / 1000
        do {
            guard let found = try world.apply(action, to: account.index, at: now) else {
                throw ServerError.originalNotFound
            }
            let period = found.account.lives[number].periods[head.ordinal]
            return SupportBook.Extension(
                originalID: life.ids.originalTransactionID,
                webOrderLineItemID: life.ids.webOrderLineItemID(of: head.ordinal), effective: period.expires)
        } catch is ActionRefused {
            throw ServerError.notExtendable
        }
    }
}

extension Life {
    /// The most extensions of a subscription in a year.
    fileprivate static let yearlyExtensionsMax = 2

    /// Returns how often calls of the Server API moved the renewal date on since then.
    fileprivate func renewalDateExtensions(since moment: StoreTime) -> Int {
        periods.reduce(0) { $0 + $1.expiries.dropFirst().count { $0.knownAt > moment } }
    }
}

/// Send Consumption Information, and Set App Account Token.
extension Simulator {
    private static let deliveries = [
        "DELIVERED", "UNDELIVERED_QUALITY_ISSUE", "UNDELIVERED_WRONG_ITEM", "UNDELIVERED_SERVER_OUTAGE",
        "UNDELIVERED_OTHER",
    ]
    private static let preferences = ["DECLINE", "GRANT_FULL", "GRANT_PRORATED"]

    private struct Consumption: Decodable {
        let customerConsented: Bool?
        let deliveryStatus: String?
        let sampleContentProvided: Bool?
        let consumptionPercentage: Int?
        let refundPreference: String?
    }

    private struct FirstConsumption: Decodable {
        let customerConsented: Bool?
    }

    private struct TokenRequest: Decodable {
        let appAccountToken: String?
    }

    /// Send Consumption Information.
    func consume(_ call: ServerCall) throws -> SimulatorReply {
        let id = call.arguments[0]
        let account = try account(named: id, call)
        guard let transaction = SignedTransaction.one(id, of: account, in: world) else {
            throw ServerError.transactionNotFound
        }
        if call.isFirstVersion {
            guard transaction.kind == .consumable else { throw ServerError.notConsumable }
            guard try call.read(FirstConsumption.self).customerConsented == true else {
                throw ServerError.notConsented
            }
        } else {
            try check(try call.read(Consumption.self), of: transaction)
        }
        let said = SupportBook.Consumption(
            transactionID: id, at: clock.now.milliseconds, body: String(decoding: call.body, as: UTF8.self))
        support.withLock { $0.consumptions.append(said) }
        return SimulatorReply(code: 202, body: [])
    }

    /// Refuses what Apple refuses to hear about the consumption of a purchase.
    private func check(_ said: Consumption, of transaction: SignedTransaction) throws(ServerError) {
        guard said.customerConsented == true else { throw .notConsented }
        guard let delivery = said.deliveryStatus, Self.deliveries.contains(delivery) else { throw .invalidDelivery }
        guard said.sampleContentProvided != nil else { throw .invalidSample }
        guard said.refundPreference.map(Self.preferences.contains) ?? true else {
            throw .badRequest("Invalid refund preference.")
        }
        guard let percentage = said.consumptionPercentage else { return }
        let isAllowed =
            transaction.kind != .subscription
            && (delivery == "DELIVERED" ? (0...100_000).contains(percentage) : percentage == 0)
        guard isAllowed else { throw .badRequest("Invalid consumption percentage.") }
    }

    /// Set App Account Token.
    func setAccountToken(_ call: ServerCall) throws -> SimulatorReply {
        guard let token = try call.read(TokenRequest.self).appAccountToken.flatMap({ AccountToken($0) }) else {
            throw ServerError.invalidToken
        }
        let id = call.arguments[0]
        let account = try account(named: id, call)
        guard let transaction = SignedTransaction.one(id, of: account, in: world) else {
            throw ServerError.notOriginal
        }
        guard !transaction.isShared else { throw ServerError.familyTransaction }
        guard transaction.originalID == id else { throw ServerError.notOriginal }
        var action = CustomerAction(.setAccountToken)
        action.transactionID = id
        action.accountToken = token
        _ = try world.apply(action, to: account.index, at: now)
        return SimulatorReply(body: [])
    }
}

extension Simulator {
    /// Request a Test Notification.
    func requestTest(_ call: ServerCall) throws -> SimulatorReply {
        guard notifications.options != nil else { throw ServerError.noAddress }
        let occasion = NotificationOccasion(
            source: .test(notifications.nextTest()), name: NotificationName("TEST"), at: now,
            environment: call.environment)
        let next = notifications.made().last.map { $0.sequence + 1 } ?? 0
        notifications.add([occasion], until: StoreTime(milliseconds: 0))
        guard let made = notifications.made(from: next).first(where: { $0.occasion.source == occasion.source }) else {
            throw ServerError.noAddress
        }
        return .object { $0.text("testNotificationToken", "\(made.uuid)_\(occasion.at.milliseconds)") }
    }

    /// Get Test Notification Status.
    func testStatus(_ call: ServerCall) throws -> SimulatorReply {
        let parts = call.arguments[0].split(separator: "_")
        guard parts.count == 2, UUID(uuidString: String(parts[0])) != nil, Int64(parts[1]) != nil else {
            throw ServerError.invalidTestToken
        }
        guard let made = notifications.notification(String(parts[0])),
            made.occasion.at.milliseconds == Int64(parts[1])
        else { throw ServerError.testNotFound }
        let text = try signedPayload(of: made)
        return .object { $0.write(made, text) }
    }
}

extension JSONWriter {
    /// Writes the status of a test notification: its text, and the attempts to send it.
    fileprivate mutating func write(_ made: MadeNotification, _ signedPayload: String) {
        text("signedPayload", signedPayload)
        array("sendAttempts") { json in
            for attempt in made.attempts {
                json.object { json in
                    json.number("attemptDate", attempt.at.milliseconds)
                    json.text("sendAttemptResult", attempt.result.rawValue)
                }
            }
        }
    }
}

/// What the support calls of the Server API left behind. It is in memory only.
struct SupportBook: Sendable {
    /// An extension of one subscription; the same request gets the same answer again.
    struct Extension: Sendable {
        let originalID: String
        let webOrderLineItemID: String?
        let effective: StoreTime
    }

    /// An extension of all subscriptions of a product.
    struct MassExtension: Sendable {
        let environment: StoreEnvironment
        let productID: String
        let requestID: String
        let countries: [String]
        let completedAt: StoreTime
        let succeeded: Int
        let failed: Int
    }

    /// What an app said about the consumption of a purchase.
    struct Consumption: Encodable, Sendable {
        let transactionID: String
        let at: Int64
        let body: String

        enum CodingKeys: String, CodingKey {
            case body
            case transactionID = "transaction_id"
            case at = "at_ms"
        }
    }

    var extensions: [String: Extension] = [:]
    var massExtensions: [String: MassExtension] = [:]
    var consumptions: [Consumption] = []
}
