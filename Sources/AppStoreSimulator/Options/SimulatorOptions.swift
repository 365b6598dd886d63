/// The configuration of a simulated App Store.
package struct SimulatorOptions: Sendable {
    /// The address to listen on.
    package var host = "127.0.0.1"
    /// The port to listen on; 0 takes any free one.
    package var port = 8090
    /// The seed of the population, the ids and the faults.
    package var seed: UInt64
    /// The app's shared secret at the start, 32 hexadecimal characters derived from the seed unless set.
    package var sharedSecret: String
    /// The only app this store sells.
    package var bundleID = "com.example.tracker"
    /// Customers of the production store at the start.
    package var customers = 200
    /// Customers of the sandbox at the start.
    package var sandboxCustomers = 10
    /// New customers of the production store per month, spread evenly from the epoch on.
    package var arrivalsPerMonth = 0.0
    /// The length of a month in seconds. A week is a quarter of it, a year twelve. Periods are whole seconds, at least
    /// one.
    package var monthSeconds = 60.0
    /// The most past periods of a seeded customer at the epoch; each has 0 to this many.
    package var pastPeriodsMax = 6
    /// The instant around which the population is laid out, in milliseconds since 1970; nil means the start of the
    /// process. The same seed and epoch give the same lives.
    package var epochMilliseconds: Int64?
    /// The traits of the drawn customers.
    package var traits = CustomerTraits()
    /// The events of the drawn customers.
    package var chances = PeriodChances()
    /// Whether lives stand still at the epoch while the request dates move: every response then stays the same.
    package var standsStill = false
    /// The delay of every response of verifyReceipt and the Server API, in milliseconds.
    package var latencyMilliseconds = 0
    /// The faults of verifyReceipt from the start.
    package var faults: [Fault] = []
    /// Where notifications go from the start; nil means that none are made.
    package var notifications: NotificationOptions?
    /// The most bytes of a request body; a longer one gets HTTP 413.
    package var bodyBytesMax = 8 << 20
    /// The most bytes of rendered responses kept in all, so that repeated requests are cheap.
    package var keptAnswerBytesMax = 2 << 30

    /// Creates options with the defaults and the secret of a seed.
    package init(seed: UInt64 = 1) {
        self.seed = seed
        self.sharedSecret = SimulatorOptions.secret(of: seed)
    }

    static func secret(of seed: UInt64) -> String {
        var numbers = SeededGenerator(seed: seed, stream: 77)
        let digits = Array("0123456789abcdef")
        return String((0..<32).map { _ in digits[numbers.below(16)] })
    }
}
