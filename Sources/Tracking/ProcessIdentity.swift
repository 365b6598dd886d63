import Foundation

/// How this process is known to the operator.
enum ProcessIdentity {
    /// The machine's name.
    static let host = ProcessInfo.processInfo.hostName
    /// The process number.
    static let number = ProcessInfo.processInfo.processIdentifier
}
