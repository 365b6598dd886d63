import SwiftASN1
import Testing

/// A receipt parsed as a whole tree, strictly.
struct SecondOpinion {
    private let app: [(type: Int64, value: [UInt8])]
    private let purchases: [[(type: Int64, value: [UInt8])]]

    init(_ receipt: [UInt8]) throws {
        var content = try Self.content(of: receipt)
        if content.first == 0x04 { content = try Self.octets(content) }
        let app = try Self.attributes(content)
        self.app = app
        purchases = try app.filter { $0.type == 17 }.map { try Self.attributes($0.value) }
    }

    var isEmpty: Bool { app.isEmpty }

    var bundleID: String? { app.first { $0.type == 2 }.flatMap { Self.text($0.value) } }

    var originals: [String] {
        purchases.compactMap { attributes in
            let found = [1705, 1703].lazy.compactMap { type in
                attributes.first { $0.type == type }.flatMap { Self.text($0.value) }
            }
            return found.first
        }
    }

    func texts(_ type: Int64) -> [String] { values(type).compactMap(Self.text) }
    func integers(_ type: Int64) -> [Int64] { values(type).compactMap { try? Int64(berEncoded: $0) } }

    private func values(_ type: Int64) -> [[UInt8]] { purchases.flatMap { $0.filter { $0.type == type }.map(\.value) } }

    private static func text(_ value: [UInt8]) -> String? {
        let text =
            (try? ASN1UTF8String(berEncoded: value)).map { String($0) }
            ?? (try? ASN1IA5String(berEncoded: value)).map { String($0) }
        return text.flatMap { $0.isEmpty ? nil : $0 }
    }

    private static func octets(_ bytes: [UInt8]) throws -> [UInt8] {
        Array(try ASN1OctetString(berEncoded: try BER.parse(bytes)).bytes)
    }

    private static func content(of receipt: [UInt8]) throws -> [UInt8] {
        try BER.sequence(try BER.parse(receipt), identifier: .sequence) { nodes in
            _ = try ASN1ObjectIdentifier(berEncoded: &nodes)
            return try BER.explicitlyTagged(&nodes, tagNumber: 0, tagClass: .contextSpecific) { signed in
                try BER.sequence(signed, identifier: .sequence) { parts in
                    _ = try Int(berEncoded: &parts)
                    _ = parts.next()
                    let info = parts.next()
                    while parts.next() != nil {}
                    return try content(in: try #require(info))
                }
            }
        }
    }

    private static func content(in info: ASN1Node) throws -> [UInt8] {
        try BER.sequence(info, identifier: .sequence) { nodes in
            _ = try ASN1ObjectIdentifier(berEncoded: &nodes)
            return try BER.explicitlyTagged(&nodes, tagNumber: 0, tagClass: .contextSpecific) {
                Array(try ASN1OctetString(berEncoded: $0).bytes)
            }
        }
    }

    private static func attributes(_ bytes: [UInt8]) throws -> [(type: Int64, value: [UInt8])] {
        try BER.set(try BER.parse(bytes), identifier: .set) { nodes in
            var attributes: [(Int64, [UInt8])] = []
            while let node = nodes.next() {
                try BER.sequence(node, identifier: .sequence) { parts in
                    let type = try Int64(berEncoded: &parts)
                    _ = try Int64(berEncoded: &parts)
                    attributes.append((type, Array(try ASN1OctetString(berEncoded: &parts).bytes)))
                }
            }
            return attributes
        }
    }
}
