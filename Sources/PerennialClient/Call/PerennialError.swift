/// Why a call brought no answer, and what to do about it.
///
/// An error never means "no": a customer whose entitlements cannot be read may well have paid.
public struct PerennialError: Error, Sendable {
    /// What went wrong.
    public enum Cause: Sendable, Hashable {
        /// The server does not answer: the network is away, or the time is over.
        case unreachable
        /// The server refuses the request, or cannot carry it out.
        case problem(Problem)
        /// The answer is not Perennial's.
        case unreadable
        /// The request cannot be sent as it is.
        case invalid
        /// The queue is full.
        case full
        /// The queue's storage failed.
        case storage
    }

    /// What to do.
    public enum Disposition: Sendable, Hashable {
        /// Send it again, at the earliest after these seconds where the server says so.
        case retry(afterSeconds: Double?)
        /// Do not send it again: the same request gets the same answer.
        case reject
        /// A person has to look: the key, the address, the app's registration or the storage is wrong. Keep what you
        /// have; it succeeds when that is repaired.
        case alarm
    }

    /// What went wrong.
    public let cause: Cause
    /// What to do.
    public let disposition: Disposition
    /// One sentence for the log. It holds no key and no receipt.
    public let description: String

    init(_ cause: Cause, _ description: String) {
        self.cause = cause
        self.description = description
        disposition =
            switch cause {
            case .unreachable, .full: .retry(afterSeconds: nil)
            case .problem(let problem): problem.disposition
            case .unreadable, .storage: .alarm
            case .invalid: .reject
            }
    }

    init(_ problem: Problem) {
        let id = problem.requestID.map { " (request \($0))" } ?? ""
        self.init(.problem(problem), problem.detail + id)
    }

    /// The server's problem, where it is one.
    public var problem: Problem? {
        if case .problem(let problem) = cause { problem } else { nil }
    }
}

extension PerennialError: CustomStringConvertible {}

extension Problem {
    /// What to do. A refusal that is not Perennial's own word, such as a proxy's page, is never final.
    var disposition: PerennialError.Disposition {
        switch (status, kind) {
        case (408, _), (429, _), (500..., _): .retry(afterSeconds: retryAfterSeconds)
        case (_, .proofRefused): .reject
        case (401, _), (403, _), (405, _), (_, .unknownApp), (_, nil): .alarm
        case (400..<500, _): .reject
        case (_, _): .alarm
        }
    }
}
