import Foundation

/// Everything that changes while the store runs: the secret, the faults, and the customers looked at so far.
struct World: Sendable {
    let bundleID: String
    let population: Population
    let codec: ReceiptCodec
    var secret: String
    var faultPlan: FaultPlan

    private var customers: [Int: Customer] = [:]
    private var latestReceipts: [Int: (creation: Moment, base64: String)] = [:]
    private(set) var customerCount: Int

    init(options: SimulatorOptions, epoch: Moment) {
        bundleID = options.bundleID
        population = Population(
            seed: options.seed, epoch: epoch, scale: TimeScale(monthSeconds: options.monthSeconds),
            pastPeriodsMax: max(0, options.pastPeriodsMax), customers: max(0, options.customers),
            sandboxCustomers: max(0, options.sandboxCustomers))
        codec = ReceiptCodec(seed: options.seed)
        secret = options.sharedSecret
        faultPlan = FaultPlan(seed: options.seed)
        customerCount = population.count
    }

    /// The customer, lived up to now. Seeded customers appear when somebody first asks for them.
    mutating func customer(_ index: Int, at now: Moment) -> Customer? {
        guard index >= 0, index < customerCount else { return nil }
        var customer: Customer
        if let known = customers.removeValue(forKey: index) {
            customer = known
        } else if index < population.count {
            customer = population.customer(index)
        } else {
            return nil
        }
        customer.life.advance(to: now)
        customers[index] = customer
        return customer
    }

    mutating func addCustomer(_ script: CustomerScript, environment: StoreEnvironment, at now: Moment) -> Customer {
        let index = customerCount
        customerCount += 1
        var advanced = population.customer(index, script: script, environment: environment, anchor: now)
        advanced.life.advance(to: now)
        customers[index] = advanced
        return advanced
    }

    /// Nil when nobody has this index.
    mutating func apply(_ action: CustomerAction, to index: Int, at now: Moment) throws(ActionRefused) -> Customer? {
        guard var customer = customer(index, at: now) else { return nil }
        try customer.life.apply(action)
        customers[index] = customer
        return customer
    }

    /// The receipt of the customer's device.
    func receipt(of customer: Customer) -> String { receipt(of: customer, creation: customer.receiptCreation) }

    /// The newest receipt the store has written, made once for each booking.
    mutating func latestReceipt(of customer: Customer) -> String {
        let creation = customer.newestReceiptCreation
        if let known = latestReceipts[customer.index], known.creation == creation { return known.base64 }
        let made = receipt(of: customer, creation: creation)
        latestReceipts[customer.index] = (creation, made)
        return made
    }

    private func receipt(of customer: Customer, creation: Moment) -> String {
        let payload = ReceiptPayload(bundleID: bundleID, customer: customer, creation: creation)
        let identity = ReceiptIdentity(
            customer: customer.index, creation: creation, environment: customer.environment)
        return Data(codec.encode(identity, payload: payload.bytes)).base64EncodedString()
    }
}
