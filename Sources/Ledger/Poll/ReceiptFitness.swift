import Subscriptions

/// The receipts that can be asked about from now on, and their age.
struct ReceiptFitness: Sendable {
    private var able: Set<ReceiptID>
    private var madeAt: [ReceiptID: Instant]
    private let lost: Set<ReceiptID>

    /// Starts from the stored facts; `unable` receipts cannot go on, whatever is stored.
    init(_ pollers: LockedPollers, unable: [ReceiptID]) {
        able = Set(pollers.receipts.keys.filter(pollers.canPoll)).subtracting(unable)
        madeAt = pollers.receipts.compactMapValues(\.createdAt)
        lost = Set(pollers.receipts.keys.filter(pollers.isLost))
    }

    /// Learns from an answer whether its receipt can be asked about again, and when the device made the receipt.
    mutating func learn(_ receipt: ReceiptID, canPoll: Bool, createdAt: Instant?) {
        if canPoll { able.insert(receipt) } else { able.remove(receipt) }
        if let createdAt { madeAt[receipt] = max(createdAt, self.madeAt(receipt)) }
    }

    /// Whether Apple may be asked about a receipt's contents.
    func canPoll(_ receipt: ReceiptID) -> Bool { able.contains(receipt) }

    /// Whether a receipt that cannot be asked about will never recover by itself.
    func isLost(_ receipt: ReceiptID) -> Bool { !canPoll(receipt) && lost.contains(receipt) }

    /// Returns when the device made the receipt; the earliest instant where the receipt does not say.
    func madeAt(_ receipt: ReceiptID) -> Instant { madeAt[receipt] ?? .distantPast }
}
