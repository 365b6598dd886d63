package import Subscriptions

/// A stored verified answer from Apple: one body, which was true from its first to its last clock.
package struct KeptAnswer: Sendable {
    /// The observation that stores it.
    package let observation: Observation
    /// The app asked about.
    package let bundleID: BundleID
    /// The environment in which it was verified.
    package let environment: StoreEnvironment
    /// Apple's answer as it came at the first clock.
    package var body: [UInt8]
}

/// The number and receipt of a stored answer, and Apple's clocks between which it was given.
package struct Observation: Sendable, Hashable {
    /// Its number.
    package let id: Int64
    /// The receipt it is about.
    package let receiptID: ReceiptID
    /// Apple's clock at the first such answer.
    package let firstAsOf: Instant
    /// Apple's clock at the last such answer.
    package let lastAsOf: Instant
}

/// Reads the evidence in what is stored, by the present rules.
package struct EvidenceReader: Sendable {
    let answer: @Sendable (KeptAnswer) -> Evidence?
    let notification: ReadNotification

    /// Creates a reader. `answer` returns nil for an answer that does not count as verified by the present rules,
    /// `notification` for one that holds no evidence.
    package init(
        answer: @escaping @Sendable (KeptAnswer) -> Evidence?, notification: @escaping ReadNotification
    ) {
        self.answer = answer
        self.notification = notification
    }
}

extension Evidence {
    /// Returns the same answer, given again at another of Apple's clocks. Apple signs transactions anew each time; signed
    /// renewal information and a device's snapshot keep their age.
    func given(at instant: Instant) -> Evidence {
        var again = self
        again.asOf = instant
        again.transactions = transactions.map { row in
            var row = row
            switch row.source {
            case .latestReceiptInfo: row.asOf = instant
            case .signedText, .statuses: row.asOf = row.asOf + (instant - asOf)
            case .deviceReceipt: row.asOf = min(receiptCreatedAt ?? instant, instant)
            }
            return row
        }
        again.renewals = renewals.map { row in
            var row = row
            if !row.isSigned { row.asOf = instant }
            return row
        }
        return again
    }

    /// Returns the same answer with every path in it prefixed by the observation that stores it.
    func kept(in observation: Observation) -> Evidence {
        var kept = self
        kept.transactions = transactions.map { row in
            var row = row
            row.path = observation.path(to: row.path)
            return row
        }
        kept.renewals = renewals.map { row in
            var row = row
            row.path = observation.path(to: row.path)
            return row
        }
        return kept
    }
}

extension Observation {
    /// Returns the path of a fact across all observations: the observation's number, then the path within its body.
    func path(to path: String) -> String { "\(id)/\(path)" }

    /// Returns the observation's number and the path within its body; nil when the path leads into no observation.
    static func split(_ path: String) -> (id: Int64, path: String)? {
        guard let slash = path.firstIndex(of: "/"), let id = Int64(path[..<slash]) else { return nil }
        // A legacy answer's row is the top level itself: its path is empty.
        return (id, String(path[path.index(after: slash)...].drop { $0 == "." }))
    }
}
