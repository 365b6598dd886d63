import Foundation
import SwiftASN1
import Synchronization

/// An encoder of receipts that recognises them without storing any: the last bytes, in the place of Apple's signature,
/// contain the account, the creation date, and a checksum over everything with the store's seed.
struct ReceiptCodec: Sendable {
    enum Reading: Equatable, Sendable {
        case genuine(ReceiptIdentity)
        /// Not Base64, or not a receipt (21002).
        case malformed
        /// The form of a receipt, but another signature (21003).
        case forged
    }

    private static let trailerSize = 32

    let seed: UInt64

    /// Returns the bytes of a receipt with a payload.
    func encode(_ identity: ReceiptIdentity, payload: (inout DER.Serializer) -> Void) -> [UInt8] {
        var der = DER.Serializer()
        der.appendConstructedNode(identifier: .sequence) { der in
            der.pkcs7(2)
            der.appendConstructedNode(identifier: .explicit) { der in
                der.appendConstructedNode(identifier: .sequence) { signedData(identity, payload, to: &$0) }
            }
        }
        var bytes = der.serializedBytes
        bytes.replaceSubrange((bytes.count - 8)..., with: bigEndian(checksum(bytes.dropLast(8))))
        return bytes
    }

    /// Writes the payload, and the trailer in the place of the signature.
    private func signedData(
        _ identity: ReceiptIdentity, _ payload: (inout DER.Serializer) -> Void, to der: inout DER.Serializer
    ) {
        der.integer(1)
        der.appendConstructedNode(identifier: .set) { _ in }
        der.appendConstructedNode(identifier: .sequence) { der in
            der.pkcs7(1)
            der.appendConstructedNode(identifier: .explicit) { $0.octets(payload) }
        }
        der.appendConstructedNode(identifier: .set) { $0.octets(trailer(of: identity)) }
    }

    /// Reads a receipt of either form.
    func read(base64 text: String) -> Reading {
        guard let data = Data(base64Encoded: text) else { return .malformed }
        let bytes = Array(data)
        return bytes.first == UInt8(ascii: "{") ? read(propertyList: bytes) : read(bytes)
    }

    /// Reads a unified receipt.
    func read(_ bytes: [UInt8]) -> Reading {
        guard bytes.count > Self.trailerSize * 2, bytes[0] == 0x30, Self.declaredSize(of: bytes) == bytes.count else {
            return .malformed
        }
        return read(trailer: Array(bytes.suffix(Self.trailerSize)), form: .unified, signed: bytes.dropLast(8))
    }

    /// Reads a trailer. Its last part is the checksum over the signed bytes.
    func read(trailer: [UInt8], form: ReceiptIdentity.Form, signed: some Sequence<UInt8>) -> Reading {
        guard trailer.count == Self.trailerSize, Array(trailer.suffix(8)) == bigEndian(checksum(signed)) else {
            return .forged
        }
        guard let customer = Int(exactly: number(trailer[0..<8])),
            let milliseconds = Int64(exactly: number(trailer[8..<16]))
        else { return .forged }
        return .genuine(
            ReceiptIdentity(
                customer: customer, creation: StoreTime(milliseconds: milliseconds),
                environment: trailer[16] == 0 ? .production : .sandbox, restore: Int(trailer[17]), form: form,
                isForeign: trailer[18] == 1, isDisguised: trailer[18] == 2))
    }

    /// Returns the bytes that name the receipt, with which it is recognised.
    func trailer(of identity: ReceiptIdentity) -> [UInt8] {
        bigEndian(UInt64(identity.customer)) + bigEndian(UInt64(max(0, identity.creation.milliseconds)))
            + [identity.environment == .production ? 0 : 1, UInt8(clamping: identity.restore)]
            + [identity.isDisguised ? 2 : identity.isForeign ? 1 : 0]
            + [UInt8](repeating: 0, count: 13)
    }

    /// Returns a keyed FNV-1a hash. It guards against honest mistakes, not attackers: this store is simulated.
    func checksum(_ bytes: some Sequence<UInt8>) -> UInt64 {
        var hash = 0xCBF2_9CE4_8422_2325 ^ SeededGenerator.mixed(seed &+ 1)
        for byte in bytes { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
        return SeededGenerator.mixed(hash)
    }

    /// Returns the size an element of DER declares, header included; nil when the header is broken.
    private static func declaredSize(of bytes: [UInt8]) -> Int? {
        let head = Array(bytes.prefix(6))
        guard head.count >= 2 else { return nil }
        guard head[1] >= 0x80 else { return 2 + Int(head[1]) }
        let count = Int(head[1] & 0x7F)
        guard (1...4).contains(count), head.count >= 2 + count else { return nil }
        return 2 + count + head[2..<(2 + count)].reduce(0) { $0 << 8 | Int($1) }
    }

    func bigEndian(_ value: UInt64) -> [UInt8] { withUnsafeBytes(of: value.bigEndian) { Array($0) } }

    private func number(_ bytes: ArraySlice<UInt8>) -> UInt64 { bytes.reduce(0) { $0 << 8 | UInt64($1) } }
}

/// The store's data about a receipt it once made.
struct ReceiptIdentity: Sendable, Hashable {
    enum Form: Sendable {
        case unified
        /// The transaction receipt of iOS 6.
        case legacy
    }

    /// The index of the account.
    let customer: Int
    let creation: StoreTime
    let environment: StoreEnvironment
    /// The number of the restore that wrote it, from 1; 0 means none.
    var restore = 0
    var form = Form.unified
    /// Whether another app of the same store wrote it.
    var isForeign = false
    /// Whether it is the receipt of an app with another secret, which names this app too.
    var isDisguised = false
}

/// The readable part of a receipt: the attributes Apple documents for local validation.
struct ReceiptPayload: Sendable {
    /// The most rows of a kind in a receipt; the newest are kept.
    static let rowsMax = 30

    let bundleID: String
    let account: Account
    let identity: ReceiptIdentity

    /// Writes the attributes of the receipt and a set for each row.
    func write(to der: inout DER.Serializer) {
        der.appendConstructedNode(identifier: .set) { der in
            attribute(0, to: &der) { $0.utf8(account.environment.receiptType) }
            attribute(2, to: &der) { $0.utf8(bundleID) }
            if identity.isDisguised { attribute(2, to: &der) { $0.utf8("\(bundleID).other") } }
            attribute(3, to: &der) { $0.utf8("42") }
            attribute(12, to: &der) { $0.ia5(AppleDates.internet(identity.creation)) }
            for life in account.begun {
                let booked = life.periods.filter { $0.bookedAt <= identity.creation }
                for period in booked.suffix(Self.rowsMax) { row(of: period, life, to: &der) }
            }
            let bought = account.purchases.purchases.filter { account.holds($0, in: identity) }
            for purchase in bought.suffix(Self.rowsMax) { row(of: purchase, to: &der) }
        }
    }

    private func row(of purchase: OneTimePurchase, to der: inout DER.Serializer) {
        let restoredAt = account.restored(purchase, in: identity)
        let id = account.ids.purchase(purchase.ordinal, restore: restoredAt == nil ? 0 : identity.restore)
        row(to: &der) { der in
            attribute(1701, to: &der) { $0.integer(Int64(purchase.order.quantity.count)) }
            attribute(1702, to: &der) { $0.utf8(purchase.product.identifier(in: bundleID)) }
            attribute(1703, to: &der) { $0.utf8(id) }
            attribute(1704, to: &der) { $0.ia5(AppleDates.internet(restoredAt?.wholeSecond ?? purchase.at)) }
            attribute(1705, to: &der) { $0.utf8(account.ids.purchase(purchase.ordinal)) }
            if restoredAt != nil { attribute(1706, to: &der) { $0.ia5(AppleDates.internet(purchase.at)) } }
        }
    }

    private func row(of period: Period, _ life: Life, to der: inout DER.Serializer) {
        let ids = life.ids
        row(to: &der) { der in
            attribute(1701, to: &der) { $0.integer(1) }
            attribute(1702, to: &der) { $0.utf8(period.product.identifier(in: bundleID)) }
            attribute(1703, to: &der) { $0.utf8(ids.transactionID(of: period.ordinal, restore: identity.restore)) }
            attribute(1704, to: &der) { $0.ia5(AppleDates.internet(period.purchase)) }
            attribute(1705, to: &der) { $0.utf8(ids.originalTransactionID) }
            attribute(1708, to: &der) { $0.ia5(AppleDates.internet(period.expires(asOf: identity.creation))) }
            guard !life.script.isMember else { return }
            attribute(1711, to: &der) { $0.integer(Int64(ids.webOrderLineItemNumber(of: period.ordinal))) }
        }
    }

    private func row(to der: inout DER.Serializer, _ attributes: (inout DER.Serializer) -> Void) {
        attribute(17, to: &der) { $0.appendConstructedNode(identifier: .set, attributes) }
    }

    private func attribute(_ type: Int64, to der: inout DER.Serializer, _ value: (inout DER.Serializer) -> Void) {
        der.appendConstructedNode(identifier: .sequence) { der in
            der.integer(type)
            der.integer(1)
            der.octets(value)
        }
    }
}

/// The transaction receipt of iOS 6: an old property list with the store's trailer as its signature.
extension ReceiptCodec {
    /// Returns the text of a receipt for one period of the subscription.
    func encodeLegacy(_ identity: ReceiptIdentity, period: Period, life: Life, bundleID: String) -> [UInt8] {
        let info = """
            {
            \t"original-transaction-id" = "\(life.ids.originalTransactionID)";
            \t"transaction-id" = "\(life.ids.transactionID(of: period.ordinal))";
            \t"web-order-line-item-id" = "\(life.ids.webOrderLineItemID(of: period.ordinal))";
            \t"product-id" = "\(period.product.identifier(in: bundleID))";
            \t"bid" = "\(bundleID)";
            \t"purchase-date-ms" = "\(period.purchase.milliseconds)";
            \t"expires-date" = "\(period.expires(asOf: identity.creation).milliseconds)";
            }
            """
        let purchaseInfo = Data(info.utf8).base64EncodedString()
        let identified = Array(trailer(of: identity).dropLast(8))
        let signature = identified + bigEndian(checksum(Array(purchaseInfo.utf8) + identified))
        let environment = identity.environment == .sandbox ? "\n\t\"environment\" = \"Sandbox\";" : ""
        return Array(
            """
            {
            \t"signature" = "\(Data(signature).base64EncodedString())";
            \t"purchase-info" = "\(purchaseInfo)";\(environment)
            \t"pod" = "100";
            \t"signing-status" = "0";
            }
            """.utf8)
    }

    /// Reads a transaction receipt of iOS 6.
    func read(propertyList bytes: [UInt8]) -> Reading {
        let text = String(decoding: bytes, as: UTF8.self)
        guard let signature = text.value(of: "signature").flatMap({ Data(base64Encoded: $0) }),
            let purchaseInfo = text.value(of: "purchase-info")
        else { return .malformed }
        let trailer = Array(signature)
        return read(trailer: trailer, form: .legacy, signed: Array(purchaseInfo.utf8) + trailer.dropLast(8))
    }
}

extension String {
    /// Returns the value of a key in the property list of a transaction receipt of iOS 6.
    fileprivate func value(of key: String) -> String? {
        guard let start = range(of: "\"\(key)\" = \"")?.upperBound,
            let end = self[start...].firstIndex(of: "\"")
        else { return nil }
        return String(self[start..<end])
    }
}

/// The few parts of DER in a receipt.
extension DER.Serializer {
    /// Writes an octet string that contains other elements.
    fileprivate mutating func octets(_ content: (inout DER.Serializer) -> Void) {
        var inner = DER.Serializer()
        content(&inner)
        octets(inner.serializedBytes)
    }

    fileprivate mutating func octets(_ bytes: [UInt8]) {
        appendPrimitiveNode(identifier: .octetString) { $0 += bytes }
    }

    /// Writes a number that is not negative, in the fewest bytes that leave a bit for the sign.
    fileprivate mutating func integer(_ value: Int64) {
        let size = (64 - value.leadingZeroBitCount) / 8 + 1
        appendPrimitiveNode(identifier: .integer) { bytes in
            for place in (0..<size).reversed() { bytes.append(UInt8(truncatingIfNeeded: value >> (place * 8))) }
        }
    }

    mutating func utf8(_ text: String) {
        appendPrimitiveNode(identifier: .utf8String) { $0 += text.utf8 }
    }

    fileprivate mutating func ia5(_ text: String) { appendPrimitiveNode(identifier: .ia5String) { $0 += text.utf8 } }

    /// Writes 1.2.840.113549.1.7.n: 1 is data, 2 is signed data.
    fileprivate mutating func pkcs7(_ last: UInt8) {
        appendPrimitiveNode(identifier: .objectIdentifier) {
            $0 += [0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x07, last]
        }
    }
}

extension ASN1Identifier {
    fileprivate static let explicit = ASN1Identifier(tagWithNumber: 0, tagClass: .contextSpecific)
}

/// The receipts read before, by digest, so that form and signature of each are checked once.
final class KnownReceipts: Sendable {
    /// Above this many, all entries are dropped; reading a receipt again is cheap enough.
    private static let entriesMax = 1 << 20

    private let codec: ReceiptCodec
    private let known = Mutex<[UInt64: ReceiptIdentity]>([:])

    init(codec: ReceiptCodec) { self.codec = codec }

    /// Reads a receipt in Base64, or finds that it was read before.
    func read(_ text: [UInt8]) -> ReceiptCodec.Reading {
        let digest = Self.digest(text)
        if let identity = known.withLock({ $0[digest] }) { return .genuine(identity) }
        let reading = codec.read(base64: String(decoding: text, as: UTF8.self))
        switch reading {
        case .malformed, .forged: break
        case .genuine(let identity):
            known.withLock { known in
                if known.count >= Self.entriesMax { known.removeAll(keepingCapacity: true) }
                known[digest] = identity
            }
        }
        return reading
    }

    /// Returns a digest, eight bytes at a time. It guards against honest mistakes only.
    private static func digest(_ text: [UInt8]) -> UInt64 {
        text.withUnsafeBytes { bytes in
            var hash = UInt64(bytes.count) &* 0x9E37_79B9_7F4A_7C15
            var position = 0
            while position + 8 <= bytes.count {
                let word = bytes.loadUnaligned(fromByteOffset: position, as: UInt64.self)
                hash = (hash ^ word) &* 0xBF58_476D_1CE4_E5B9
                hash ^= hash >> 29
                position += 8
            }
            for byte in bytes[position...] { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
            return SeededGenerator.mixed(hash)
        }
    }
}
