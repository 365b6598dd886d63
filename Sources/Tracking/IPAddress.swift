import Foundation
import Subscriptions

/// An IPv4 or IPv6 address.
package struct IPAddress: Sendable, Hashable {
    /// 4 or 16 bytes in network order.
    package let bytes: [UInt8]

    /// Takes bytes in network order; any other number of them is no address.
    package init(bytes: some Sequence<UInt8>) { self.bytes = Array(bytes) }

    /// Reads an address in its usual form; nil for a name.
    package init?(_ text: String) {
        var four = [UInt8](repeating: 0, count: 4)
        var sixteen = [UInt8](repeating: 0, count: 16)
        if inet_pton(AF_INET, text, &four) == 1 {
            bytes = four
        } else if inet_pton(AF_INET6, text, &sixteen) == 1 {
            bytes = sixteen
        } else {
            return nil
        }
    }

    /// The address; that of IPv4 where it is one on an IPv6 socket (RFC 4291, section 2.5.5.2).
    package var unmapped: IPAddress { Self.mapped.contains(self) ? IPAddress(bytes: bytes.suffix(4)) : self }

    private static let mapped = IPNetwork(first: [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 0, 0, 0, 0], bits: 96)
}

/// The addresses that share their first bits.
package struct IPNetwork: Sendable, Hashable {
    fileprivate let first: [UInt8]
    package let bits: Int
}

extension IPNetwork {
    /// Reads an address or a range, such as `10.0.0.7`, `192.168.0.0/16` or `fd00::/8`; nil for anything else.
    package init?(_ text: String) {
        let parts = text.split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count <= 2, let first = IPAddress(String(parts[0]))?.unmapped.bytes else { return nil }
        let most = first.count * 8
        guard parts.count == 2 else {
            self.init(first: first, bits: most)
            return
        }
        guard parts[1].utf8.count <= 3, parts[1].utf8.allSatisfy(\.isDigit),
            let bits = Int(parts[1]), bits <= most
        else { return nil }
        self.init(first: first, bits: bits)
    }

    /// Whether an address is one of them.
    package func contains(_ address: IPAddress) -> Bool {
        guard address.bytes.count == first.count else { return false }
        let (whole, rest) = (bits / 8, bits % 8)
        guard address.bytes.prefix(whole).elementsEqual(first.prefix(whole)) else { return false }
        return rest == 0 || (address.bytes[whole] ^ first[whole]) >> (8 - rest) == 0
    }
}
