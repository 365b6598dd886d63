import Subscriptions

/// Which receipts can be asked from now on, and which of them is newest.
struct ReceiptFitness: Sendable {
    private var able: Set<ReceiptID>
    private var madeAt: [ReceiptID: Instant]
    private let lost: Set<ReceiptID>

    /// By what is stored; `unable` cannot go on whatever is stored.
    init(_ pollers: LockedPollers, unable: [ReceiptID]) {
        able = Set(pollers.receipts.keys.filter(pollers.canPoll)).subtracting(unable)
        madeAt = pollers.receipts.compactMapValues(\.createdAt)
        lost = Set(pollers.receipts.keys.filter(pollers.isLost))
    }

    /// Takes what an answer says of its receipt: whether it can be asked again, and when the device made it.
    mutating func learn(_ receipt: ReceiptID, canPoll: Bool, createdAt: Instant?) {
        if canPoll { able.insert(receipt) } else { able.remove(receipt) }
        if let createdAt { madeAt[receipt] = max(createdAt, self.madeAt(receipt)) }
    }

    /// Whether Apple may be asked about what a receipt holds.
    func canPoll(_ receipt: ReceiptID) -> Bool { able.contains(receipt) }

    /// Whether a receipt that cannot be asked will never recover by itself.
    func isLost(_ receipt: ReceiptID) -> Bool { !canPoll(receipt) && lost.contains(receipt) }

    /// When the device made the receipt; before everything else where it does not say.
    func madeAt(_ receipt: ReceiptID) -> Instant { madeAt[receipt] ?? .distantPast }
}
