import Postgres
import Subscriptions

extension Instant {
    /// Microseconds since 1970, PostgreSQL's unit.
    var microseconds: Int64 {
        let (product, overflow) = milliseconds.multipliedReportingOverflow(by: 1000)
        guard overflow else { return product }
        return milliseconds < 0 ? .min : .max
    }

    /// Creates the instant of the millisecond that contains the given microsecond.
    init(microseconds: Int64) {
        self.init(milliseconds: microseconds >= 0 ? microseconds / 1000 : (microseconds - 999) / 1000)
    }
}

extension Parameter {
    static func instant(_ instant: Instant?) -> Parameter {
        .timestamptz(microseconds: instant?.microseconds)
    }

    static func instants(_ instants: [Instant?]) -> Parameter {
        .timestamptzs(instants.map { $0?.microseconds })
    }
}

extension Row {
    func instant(_ column: String) throws -> Instant {
        Instant(microseconds: try timestamptz(column))
    }

    func instantIfPresent(_ column: String) throws -> Instant? {
        try timestamptzIfPresent(column).map(Instant.init(microseconds:))
    }
}
