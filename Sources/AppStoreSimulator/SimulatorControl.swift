/// What a customer of the simulator is known by outside.
public struct SimulatedCustomer: Codable, Sendable {
    /// The bundle id of the app.
    public var app: String
    /// The name, like `c000017`; the app's own user id.
    public var customer: String
    /// `Production` or `Sandbox`.
    public var environment: StoreEnvironment
    /// The device's receipt in Base64.
    public var receipt: String
    /// Apple's id of the subscription.
    public var originalTransactionID: String

    enum CodingKeys: String, CodingKey {
        case app, customer, environment, receipt
        case originalTransactionID = "original_transaction_id"
    }
}

extension Simulator {
    /// The current shared secret.
    public var sharedSecret: String { world.withLock { $0.secret } }

    /// Rotates the secret: from now on only this one is right.
    public func rotateSecret(to secret: String) { world.withLock { $0.secret = secret } }

    /// Makes verifyReceipt misbehave over HTTP.
    public func add(_ fault: Fault) { world.withLock { $0.faultPlan.add(fault) } }

    /// Ends all misbehaviour.
    public func clearFaults() { world.withLock { $0.faultPlan.clear() } }

    /// How many verifyReceipt calls came over HTTP.
    public var callCount: Int { world.withLock { Int($0.faultPlan.calls) } }

    /// How many customers there are, both environments, created ones included.
    public var customerCount: Int { world.withLock { $0.customerCount } }

    /// A new customer who buys now (or so many periods ago, as the script says).
    public func createCustomer(
        _ script: CustomerScript, environment: StoreEnvironment = .production
    ) -> SimulatedCustomer {
        let now = clock.now
        return world.withLock { world in
            let customer = world.addCustomer(script, environment: environment, at: now)
            return SimulatedCustomer(customer, in: world)
        }
    }

    /// Lets something happen now. False when there is no such customer; throws when it makes no sense.
    public func act(_ action: CustomerAction, on customer: String) throws(ActionRefused) -> Bool {
        guard let index = Customer.index(of: customer) else { return false }
        let now = clock.now
        return try world.withLock { (world) throws(ActionRefused) -> Bool in
            try world.apply(action, to: index, at: now) != nil
        }
    }

    /// The device receipts of the customers from `from` on, at most `count`, in order.
    public func receipts(from: Int = 0, count: Int = .max) -> [SimulatedCustomer] {
        let now = clock.now
        return indices(from: from, count: count).compactMap { index in
            world.withLock { world in
                world.customer(index, at: now).map { SimulatedCustomer($0, in: world) }
            }
        }
    }

    /// The receipt the store would write now for this customer; nil when there is no such customer.
    public func latestReceipt(of customer: String) -> String? {
        guard let index = Customer.index(of: customer) else { return nil }
        let now = clock.now
        return world.withLock { world in
            world.customer(index, at: now).map { world.latestReceipt(of: $0) }
        }
    }

    /// What the store knows now about one customer; nil when there is no such customer.
    public func truth(of customer: String) -> CustomerTruth? {
        Customer.index(of: customer).flatMap { truth(index: $0, at: clock.now) }
    }

    /// What the store knows now about the customers from `from` on, at most `count`, in order.
    public func truth(from: Int = 0, count: Int = .max) -> [CustomerTruth] {
        let now = clock.now
        return indices(from: from, count: count).compactMap { truth(index: $0, at: now) }
    }

    private func indices(from: Int, count: Int) -> Range<Int> {
        let end = customerCount
        let start = min(max(0, from), end)
        return start..<(start + min(max(0, count), end - start))
    }

    private func truth(index: Int, at now: Moment) -> CustomerTruth? {
        let found = world.withLock { world in world.customer(index, at: now) }
        return found.map { CustomerTruth($0, bundleID: options.bundleID) }
    }
}

extension SimulatedCustomer {
    init(_ customer: Customer, in world: World) {
        app = world.bundleID
        self.customer = customer.name
        environment = customer.environment
        receipt = world.receipt(of: customer)
        originalTransactionID = customer.ids.originalTransactionID
    }
}
