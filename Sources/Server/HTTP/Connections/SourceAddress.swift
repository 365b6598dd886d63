import NIOCore

/// The source of a connection: an IPv4 address, or the /64 network of an IPv6 address, which belongs to one subscriber.
struct SourceAddress: Sendable, Hashable, CustomStringConvertible {
    /// Four bytes for IPv4, eight for IPv6, none without an address.
    private let bytes: [UInt8]
    /// Whether the source is this machine.
    let isLoopback: Bool

    /// Creates the source of a socket's address.
    init(_ address: SocketAddress?) {
        let bytes = address?.ipBytes ?? []
        switch bytes.count {
        case 4: self.init(v4: bytes)
        case 16: self.init(v6: bytes)
        default: self.init(bytes: [], isLoopback: false)
        }
    }

    /// Reads an address from text. Returns nil when the text is not an address.
    init?(_ text: String) {
        guard let address = try? SocketAddress(ipAddress: text, port: 0) else { return nil }
        self.init(address)
    }

    private init(bytes: [UInt8], isLoopback: Bool) {
        self.bytes = bytes
        self.isLoopback = isLoopback
    }

    private init(v4 bytes: [UInt8]) { self.init(bytes: bytes, isLoopback: bytes.first == 127) }

    /// Creates the source of an IPv6 address. An IPv4 address on an IPv6 socket has ten zero bytes and two of ones
    /// before it (RFC 4291, section 2.5.5.2).
    private init(v6 bytes: [UInt8]) {
        if bytes.prefix(12).elementsEqual([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF]) {
            self.init(v4: Array(bytes.suffix(4)))
        } else {
            let isLoopback = bytes.dropLast().allSatisfy { $0 == 0 } && bytes.last == 1
            self.init(bytes: Array(bytes.prefix(8)), isLoopback: isLoopback)
        }
    }

    /// The address in its usual notation.
    var description: String {
        switch bytes.count {
        case 4: return bytes.map(String.init).joined(separator: ".")
        case 8 where isLoopback: return "::1"
        case 8:
            let groups = stride(from: 0, to: 8, by: 2).map {
                String(Int(bytes[$0]) << 8 | Int(bytes[$0 + 1]), radix: 16)
            }
            return groups.joined(separator: ":") + "::/64"
        default: return "unknown"
        }
    }
}

extension SocketAddress {
    /// The address without family, port and flow label, which precede it (RFC 3493, section 3.3).
    fileprivate var ipBytes: [UInt8] {
        withSockAddr { address, size in
            let bytes = UnsafeRawBufferPointer(start: address, count: size)
            return switch self {
            case .v4: Array(bytes[4..<8])
            case .v6: Array(bytes[8..<24])
            case .unixDomainSocket: []
            }
        }
    }
}
