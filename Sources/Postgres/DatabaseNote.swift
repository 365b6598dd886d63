/// A note for the log about a database's connections. It never contains a secret.
package enum DatabaseNote: Sendable, Hashable, CustomStringConvertible {
    /// The purpose of connections.
    package enum Purpose: String, Sendable {
        case reads, transactions
    }

    /// No connection can be made, and the reason. Attempts go on whenever there is work, until one succeeds.
    case lost(Purpose, String)
    /// A connection was made after such a loss.
    case found(Purpose)
    /// A problem that is already solved, or will be with the next connection.
    case detail(String)

    /// The note as a sentence.
    package var description: String {
        switch self {
        case .lost(_, let reason): "\(reason) Trying again until it works."
        case .found(let purpose): "Connected to PostgreSQL for \(purpose.rawValue) again."
        case .detail(let sentence): sentence
        }
    }
}
