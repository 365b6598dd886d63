/// The outcome of reading a receipt locally: what it says, or why it cannot be told. Never an error, because a receipt
/// that nobody but Apple can read is still Apple's to judge.
package enum LocalReading: Sendable, Hashable {
    /// What the receipt says.
    case read(LocalReceipt)
    /// What is wrong with it, as half a sentence: "a property list without purchase-info".
    case unreadable(String)

    /// Reads decoded receipt bytes, in time that grows with their number. Signature and certificates are stepped over.
    package init(of bytes: [UInt8]) {
        guard bytes.count <= LocalReceipt.bytesMax else {
            self = .unreadable("\(bytes.count) bytes, more than \(LocalReceipt.bytesMax)")
            return
        }
        switch bytes.first {
        case nil: self = .unreadable("no bytes at all")
        case BERElement.sequence: self = UnifiedReceipt.reading(of: bytes)
        default: self = LegacyReceipt.reading(of: bytes)
        }
    }

    /// What the receipt says; nil when it cannot be read.
    package var receipt: LocalReceipt? {
        switch self {
        case .read(let receipt): receipt
        case .unreadable: nil
        }
    }
}
