/// How a pretend App Store is set up.
package struct SimulatorOptions: Sendable {
    /// The address to listen on.
    package var host = "127.0.0.1"
    /// The port to listen on; 0 takes any free one.
    package var port = 8090
    /// Decides the population, the ids and the faults.
    package var seed: UInt64
    /// The app's shared secret at the start, 32 hexadecimal characters derived from the seed unless set.
    package var sharedSecret: String
    /// The only app this store sells.
    package var bundleID = "com.example.tracker"
    /// Customers of the production store at the start.
    package var customers = 200
    /// Customers of the sandbox at the start.
    package var sandboxCustomers = 10
    /// New customers of the production store in a month, spread evenly from the epoch on.
    package var arrivalsPerMonth = 0.0
    /// The length of a month in seconds; a week is a quarter, a year twelve. Periods are whole seconds, at least one.
    package var monthSeconds = 60.0
    /// Seeded customers have 0 to this many periods behind them at the epoch.
    package var pastPeriodsMax = 6
    /// The instant, in milliseconds since 1970, the population is laid out around; nil is the start of the process.
    /// The same seed and epoch give the same lives.
    package var epochMilliseconds: Int64?
    /// What the drawn customers are like.
    package var traits = CustomerTraits()
    /// What the drawn customers do.
    package var chances = PeriodChances()
    /// Lives stand still at the epoch while the request dates move: every answer stays as it is.
    package var standsStill = false
    /// Every answer of verifyReceipt is sent this many milliseconds late.
    package var latencyMilliseconds = 0
    /// Troubles of verifyReceipt from the start.
    package var faults: [Fault] = []
    /// Bytes of a request body above this are answered with HTTP 413.
    package var bodyBytesMax = 8 << 20
    /// Finished answers are kept up to this many bytes in all, so that asking again is cheap.
    package var keptAnswerBytesMax = 2 << 30

    /// Options with the defaults and the secret of a seed.
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
