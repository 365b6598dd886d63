/// News of a database's connections, for the log. Never holds a secret.
package enum DatabaseNote: Sendable, Hashable, CustomStringConvertible {
    /// What connections are for.
    package enum Purpose: String, Sendable {
        case reads, transactions
    }

    /// No connection can be made, and why; it is tried whenever there is work, until one can.
    case lost(Purpose, String)
    /// A connection was made after that.
    case found(Purpose)
    /// Something that is mended already, or will be by the next connection.
    case detail(String)

    /// The note in a sentence.
    package var description: String {
        switch self {
        case .lost(_, let reason): "\(reason) Trying again until it works."
        case .found(let purpose): "Connected to PostgreSQL for \(purpose.rawValue) again."
        case .detail(let sentence): sentence
        }
    }
}
