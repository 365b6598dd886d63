import Foundation
import Hummingbird
import NIOCore
import Subscriptions
import Tracking

/// The source of a connection: an IPv4 address, or the /64 network of an IPv6 address, which belongs to one subscriber.
struct SourceAddress: Sendable, Hashable, CustomStringConvertible {
    /// Four bytes for IPv4, eight for IPv6, none without an address.
    private let bytes: [UInt8]
    let isLoopback: Bool
}

extension SourceAddress {
    /// Creates the source of an address of 4 or 16 bytes; without an address of any other number.
    init(ip bytes: [UInt8]) {
        switch bytes.count {
        case 4: self.init(bytes: bytes, isLoopback: bytes.first == 127)
        case 16:
            let isLoopback = bytes.dropLast().allSatisfy { $0 == 0 } && bytes.last == 1
            self.init(bytes: Array(bytes.prefix(8)), isLoopback: isLoopback)
        default: self.init(bytes: [], isLoopback: false)
        }
    }

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

/// The reverse proxies whose `X-Forwarded-For` counts: those on this machine and of `PERENNIAL_TRUSTED_PROXIES`.
package struct TrustedProxies: Sendable {
    /// The most addresses and ranges.
    package static let rangesMax = 1_000

    /// A part of the setting that is neither an address nor a range.
    package struct UnknownRange: Error {
        package let text: String
    }

    private let ranges: [IPNetwork]

    /// Trusts the proxies on this machine alone.
    package init() { ranges = [] }

    /// Trusts also a list of addresses and ranges, such as `10.0.0.7, 192.168.0.0/16, fd00::/8`.
    package init(_ list: String) throws(UnknownRange) {
        var ranges: [IPNetwork] = []
        for part in list.split(separator: ",", omittingEmptySubsequences: false) {
            let text = String(part.filter { $0 != " " && $0 != "\t" })
            guard ranges.count < Self.rangesMax, let range = IPNetwork(text) else { throw UnknownRange(text: text) }
            ranges.append(range)
        }
        self.ranges = ranges
    }

    /// Whether a range holds all addresses of IPv4 or IPv6, so that any caller may name any address as its own.
    package var trustsEverybody: Bool { ranges.contains { $0.bits == 0 } }

    /// Returns the source of a request from `peer`: the last address in its headers `X-Forwarded-For` that is no trusted
    /// proxy's, as every proxy adds the address that it saw. The caller could have written all before.
    func source(of peer: SocketAddress?, forwarded headers: [String]) -> SourceAddress {
        var nearest = peer?.ipAddress.flatMap { IPAddress($0) }?.unmapped.bytes ?? []
        for entry in headers.reversed().lazy.flatMap({ $0.split(separator: ",").reversed() }) {
            guard trusts(nearest), let address = IPAddress(Self.withoutPort(entry)) else { break }
            nearest = address.unmapped.bytes
        }
        return SourceAddress(ip: nearest)
    }

    private func trusts(_ address: [UInt8]) -> Bool {
        SourceAddress(ip: address).isLoopback || ranges.contains { $0.contains(IPAddress(bytes: address)) }
    }

    /// Removes the port that some proxies add: `192.0.2.1:443`, `[2001:db8::1]:443`.
    private static func withoutPort(_ entry: Substring) -> String {
        let text = entry.filter { $0 != " " && $0 != "\t" }
        if text.hasPrefix("["), let end = text.firstIndex(of: "]") { return String(text[..<end].dropFirst()) }
        let parts = text.split(separator: ":", omittingEmptySubsequences: false)
        return parts.count == 2 ? String(parts[0]) : text
    }
}

/// The limit of this process's open files, which include sockets, and its division among their uses.
package struct OpenFiles: Sendable, Hashable {
    /// Enough for every connection that the server accepts, for Apple and for PostgreSQL.
    package static let wanted = 8_192
    /// Files reserved for PostgreSQL, for other files and for connections that are about to close.
    private static let othersMax = 64
    /// Files that the event loop of each processor needs.
    private static let filesOfAnEventLoop = 4

    package let count: Int
    var processors = System.coreCount

    /// Raises the limit of this process as far as the system allows, at most to `wanted`; never lowers it.
    package static func raised() -> OpenFiles {
        var limit = rlimit()
        guard getrlimit(resource, &limit) == 0 else { return OpenFiles(count: 1_024) }
        let wanted = min(rlim_t(wanted), limit.rlim_max)
        if limit.rlim_cur < wanted {
            var raised = limit
            raised.rlim_cur = wanted
            if setrlimit(resource, &raised) == 0 { limit = raised }
        }
        return OpenFiles(count: Int(clamping: limit.rlim_cur))
    }

    #if canImport(Glibc)
        private static let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
    #else
        private static let resource = RLIMIT_NOFILE
    #endif

    /// The most calls to Apple at the same time.
    package var callsMax: Int { min(Worker.callsMax, count / 2) }

    var connectionsMax: Int {
        let others = Self.othersMax + processors * Self.filesOfAnEventLoop
        return min(ServerLimits.connectionsWanted, max(16, count - callsMax - others))
    }
}
