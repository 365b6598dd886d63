/// Extend a Subscription Renewal Date, for one subscription and for all of a product. A day is a thirtieth of a month.
extension Simulator {
    private struct Request: Decodable {
        private static let identifierBytesMax = 128

        let extendByDays: Int?
        let extendReasonCode: Int?
        let requestIdentifier: String?
        let productId: String?
        let storefrontCountryCodes: [String]?

        /// Returns days and request identifier.
        func checked() throws(ServerError) -> (days: Int, request: String) {
            guard let extendByDays, (1...90).contains(extendByDays) else { throw .invalidDays }
            guard let extendReasonCode, (0...3).contains(extendReasonCode) else { throw .invalidReason }
            guard let requestIdentifier, (1...Self.identifierBytesMax).contains(requestIdentifier.utf8.count) else {
                throw .invalidRequestID
            }
            return (extendByDays, requestIdentifier)
        }
    }

    func extend(_ call: ServerCall) throws -> SimulatorReply {
        let (days, request) = try call.read(Request.self).checked()
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
        let done: SupportBook.Extension
        if let known = support.extended(key) {
            done = known
        } else {
            done = try extend(number, of: account, days: days)
            support.note(done, key: key)
        }
        return .server { json in
            json.text("originalTransactionId", done.originalID)
            if let item = done.webOrderLineItemID { json.text("webOrderLineItemId", item) }
            json.boolean("success", true)
            json.number("effectiveDate", done.effective.milliseconds)
        }
    }

    func extendAll(_ call: ServerCall) throws -> SimulatorReply {
        let wanted = try call.read(Request.self)
        let (days, request) = try wanted.checked()
        let productIDs = SubscriptionProduct.allCases.map { $0.identifier(in: options.bundleID) }
        guard let productID = wanted.productId, productIDs.contains(productID) else {
            throw ServerError.invalidProductID
        }
        let countries = wanted.storefrontCountryCodes
        if countries?.isEmpty ?? false { throw ServerError.noCountries }
        guard countries?.allSatisfy({ $0.utf8.count == 3 }) ?? true else { throw ServerError.invalidCountry }
        let key = "\(call.environment.rawValue) \(productID) \(request)"
        if support.massExtension(key) == nil {
            try extendAll(of: productID, in: countries, days: days, request: request, key: key, call.environment)
        }
        return .server { $0.text("requestIdentifier", request) }
    }

    func massStatus(_ call: ServerCall) throws -> SimulatorReply {
        let key = "\(call.environment.rawValue) \(call.arguments[0]) \(call.arguments[1])"
        guard let done = support.massExtension(key) else { throw ServerError.massNotFound }
        return .server { json in
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
                    life.periods.last?.product.identifier(in: options.bundleID) == productID
                else { continue }
                do {
                    _ = try extend(number, of: account, days: days)
                    succeeded += 1
                } catch is ServerError {
                    failures.append(
                        NotificationOccasion(
                            source: .failure(subscription: number, key: key),
                            name: NotificationName("RENEWAL_EXTENSION", "FAILURE"), at: now, account: account.index,
                            environment: environment,
                            transactionID: life.periods.last.map { life.ids.transactionID(of: $0.ordinal) },
                            originalTransactionID: life.ids.originalTransactionID))
                }
            }
        }
        support.note(
            SupportBook.MassExtension(
                environment: environment, productID: productID, requestID: request, countries: countries ?? [],
                completedAt: clock.now, succeeded: succeeded, failed: failures.count), key: key)
        let summary = NotificationOccasion(
            source: .summary(key), name: NotificationName("RENEWAL_EXTENSION", "SUMMARY"), at: now, account: nil,
            environment: environment, transactionID: nil, originalTransactionID: nil)
        notifications.add(failures + [summary], until: StoreTime(milliseconds: 0))
    }

    /// Extends the running period of a subscription; throws why Apple refuses.
    private func extend(_ number: Int, of account: Account, days: Int) throws -> SupportBook.Extension {
        let life = account.lives[number]
        guard !life.script.isMember else { throw ServerError.familyExtension }
        guard life.phase == .subscribed, let head = life.periods.last, !head.isTrial, head.cancellation == nil else {
            throw ServerError.notExtendable
        }
        guard life.extensions(since: account.now - life.scale.milliseconds(months: 12)) < Life.yearlyExtensionsMax
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

    fileprivate func extensions(since moment: StoreTime) -> Int {
        periods.reduce(0) { $0 + $1.expiries.dropFirst().count { $0.knownAt > moment } }
    }
}
