/// The outcome of reading a receipt locally: its contents, or the reason it is unreadable. Never an error, because
/// Apple may still judge a receipt that only Apple can read.
package enum LocalReading: Sendable, Hashable {
    /// The receipt's contents.
    case read(LocalReceipt)
    /// The fault, as half a sentence: "a property list without purchase-info".
    case unreadable(String)

    /// Reads decoded receipt bytes, in time that grows with their number. Skips signature and certificates.
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

    /// The receipt's contents; nil if it cannot be read.
    package var receipt: LocalReceipt? {
        switch self {
        case .read(let receipt): receipt
        case .unreadable: nil
        }
    }
}
