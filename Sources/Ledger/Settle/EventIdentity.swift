import Crypto
import Foundation

/// The public id of an event: the UUIDv5 (RFC 9562) of its stream, version and ordinal. The id is the same however
/// often the event is derived.
struct EventIdentity {
    /// 16 bytes.
    let bytes: [UInt8]

    private static let namespace: [UInt8] = [
        0x0B, 0x5C, 0x3E, 0x9A, 0x61, 0x7D, 0x4E, 0x58, 0x9B, 0x21, 0x7F, 0x40, 0xD2, 0x8C, 0x35, 0xE6,
    ]

    init(stream: String, version: Int64, ordinal: Int16) {
        let name = "\(stream)/\(version)/\(ordinal)"
        var digest = Array(Insecure.SHA1.hash(data: Data(Self.namespace + Array(name.utf8))).prefix(16))
        digest[6] = digest[6] & 0x0F | 0x50
        digest[8] = digest[8] & 0x3F | 0x80
        bytes = digest
    }
}
