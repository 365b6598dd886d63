/// The apparent form of a receipt's bytes, read without trusting them.
package enum ReceiptForm: Sendable, Hashable {
    /// PKCS#7 signed data: the app receipt of iOS 7 and later, and of macOS.
    case unified
    /// An old property list with `purchase-info` and `signature`: the iOS 6 style transaction receipt.
    case legacy
    /// Neither; Apple decides.
    case unknown

    /// Detects the form of decoded receipt bytes; examines no more bytes than needed.
    init(sniffing bytes: some Collection<UInt8>) {
        if bytes.first == 0x30, bytes.prefix(64).holds(Self.signedDataIdentifier) {
            self = .unified
        } else if bytes.holds(Array(#""purchase-info""#.utf8)), bytes.holds(Array(#""signature""#.utf8)) {
            self = .legacy
        } else {
            self = .unknown
        }
    }

    /// The DER of the object identifier 1.2.840.113549.1.7.2, PKCS#7 signed data.
    private static let signedDataIdentifier: [UInt8] = [
        0x06, 0x09, 0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x07, 0x02,
    ]
}

extension Collection<UInt8> {
    /// Returns whether these bytes contain `needle`.
    func holds(_ needle: [UInt8]) -> Bool {
        guard let first = needle.first else { return true }
        var rest = self[...]
        while let start = rest.firstIndex(of: first) {
            rest = rest[start...]
            if rest.starts(with: needle) { return true }
            rest = rest.dropFirst()
        }
        return false
    }
}
