/// What a test orders of the store in Swift, and what it may ask: the control API does the same over HTTP.
extension Simulator {
    package var sharedSecret: String { String(decoding: world.secret, as: UTF8.self) }

    /// Rotates the secret: from now on only this one is valid.
    package func rotateSecret(to secret: String) { world.secret = Array(secret.utf8) }

    /// The number of verifyReceipt calls over HTTP.
    package var callCount: Int { conditions.calls }

    /// The number of customers in both environments, including created ones and arrivals.
    package var customerCount: Int { world.customerCount(at: now) }

    /// Creates a customer who buys now, or as many periods ago as the script says.
    package func createCustomer(
        _ script: CustomerScript, environment: StoreEnvironment = .production
    ) -> SimulatedCustomer {
        SimulatedCustomer(world.addCustomer(script, environment: environment, at: now), in: world)
    }

    /// Applies an action now. Returns false when there is no such customer; throws when the action is invalid.
    package func act(_ action: CustomerAction, on customer: String) throws(ActionRefused) -> Bool {
        try perform(action, on: customer) != nil
    }

    /// Applies an action now and returns what it made; nil without such a customer. Throws when the action is invalid.
    package func perform(_ action: CustomerAction, on customer: String) throws(ActionRefused) -> ActionAnswer? {
        guard let index = CustomerName.index(of: customer) else { return nil }
        var action = action
        action.seat = Seat(of: customer)
        try checkSignature(of: action, on: index)
        return try world.apply(action, to: index, at: now).map { ActionAnswer($0.outcome, of: $0.account, in: world) }
    }

    /// Returns the first receipts of the customers' devices from position `from` on, at most `count`, in order.
    package func receipts(from: Int = 0, count: Int = .max) -> [SimulatedCustomer] {
        accounts(from: from, count: count).map { SimulatedCustomer($0, in: world) }
    }

    /// Returns the uploads of the devices after `since` and until `until` (now unless given), in milliseconds since
    /// 1970, in order: a receipt with every purchase, return and restore, and with renewals where the app sends them.
    package func uploads(since: Int64 = .min, until: Int64? = nil) -> [SimulatedUpload] {
        let now = until.map { min(StoreTime(milliseconds: $0), self.now) } ?? self.now
        let found = indices(from: 0, count: .max, at: now).flatMap { index -> [SimulatedUpload] in
            guard let account = world.account(index, asOf: now) else { return [] }
            return account.uploads.filter { $0.at.milliseconds > since }
                .map { SimulatedUpload($0, of: account, in: world) }
        }
        return found.sorted { ($0.at, $0.customer) < ($1.at, $1.customer) }
    }

    /// Returns the receipt the store would write now for this customer; nil when there is no such customer.
    package func latestReceipt(of customer: String) -> String? {
        account(of: customer).map { world.latestReceipt(of: $0) }
    }

    /// Returns a receipt that a device of this customer may still have, written at an instant in milliseconds since
    /// 1970 (at the earliest at the first purchase, at the latest now). `restore` counts restores, from 0 to 4; the
    /// rows of each have their own ids. Nil when there is no such customer.
    package func receipt(
        of customer: String, writtenAt milliseconds: Int64, restore: Int = 0, _ kind: DeviceReceipt = .dated
    ) -> String? {
        account(of: customer).map { account in
            let creation = min(max(StoreTime(milliseconds: milliseconds), account.start), now)
            let restore = min(max(restore, 0), SubscriptionIDs.restoresMax)
            return world.receipt(of: account, creation: creation, restore: restore, kind)
        }
    }

    /// Returns the store's data about one customer, now or at an instant in milliseconds since 1970; nil without one.
    package func truth(of customer: String, at milliseconds: Int64? = nil) -> CustomerTruth? {
        CustomerName.index(of: customer).flatMap { account($0, at: milliseconds) }
            .map { CustomerTruth($0, in: world) }
    }

    /// Returns the store's data about the customers from position `from` on, at most `count`, in order: now, or at an
    /// instant in milliseconds since 1970. For a future instant it assumes no manual actions.
    package func truth(at milliseconds: Int64? = nil, from: Int = 0, count: Int = .max) -> [CustomerTruth] {
        let moment = milliseconds.map { StoreTime(milliseconds: $0) } ?? now
        return indices(from: from, count: count, at: moment).compactMap { index in
            account(index, at: milliseconds).map { CustomerTruth($0, in: world) }
        }
    }
}
