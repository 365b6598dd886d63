import Foundation
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

    func encode(_ identity: ReceiptIdentity, payload: (inout DERWriter) -> Void) -> [UInt8] {
        var der = DERWriter(reserving: 4096)
        der.element(DERWriter.sequenceTag) { der in
            der.element(DERWriter.explicitTag) { der in
                der.element(DERWriter.sequenceTag) { signedData(identity, payload, to: &$0) }
            }
            der.pkcs7(2)
        }
        var bytes = der.bytes
        bytes.replaceSubrange((bytes.count - 8)..., with: bigEndian(checksum(bytes.dropLast(8))))
        return bytes
    }

    private func signedData(
        _ identity: ReceiptIdentity, _ payload: (inout DERWriter) -> Void, to der: inout DERWriter
    ) {
        der.element(DERWriter.setTag) { $0.octets(trailer(of: identity)) }
        der.element(DERWriter.sequenceTag) { der in
            der.element(DERWriter.explicitTag) { $0.octets(payload) }
            der.pkcs7(1)
        }
        der.element(DERWriter.setTag) { _ in }
        der.integer(1)
    }

    func read(base64 text: String) -> Reading {
        guard let data = Data(base64Encoded: text) else { return .malformed }
        let bytes = Array(data)
        return bytes.first == UInt8(ascii: "{") ? read(propertyList: bytes) : read(bytes)
    }

    func read(_ bytes: [UInt8]) -> Reading {
        guard bytes.count > Self.trailerSize * 2, bytes[0] == DERWriter.sequenceTag,
            DERWriter.declaredSize(of: bytes) == bytes.count
        else { return .malformed }
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

    func trailer(of identity: ReceiptIdentity) -> [UInt8] {
        let environment: UInt8 =
            switch identity.environment {
            case .production: 0
            case .sandbox: 1
            }
        return bigEndian(UInt64(identity.customer)) + bigEndian(UInt64(max(0, identity.creation.milliseconds)))
            + [environment, UInt8(clamping: identity.restore), identity.isDisguised ? 2 : identity.isForeign ? 1 : 0]
            + [UInt8](repeating: 0, count: 13)
    }

    /// Returns an FNV-1a hash, keyed with the seed. It guards against honest mistakes, not attackers: this store is
    /// simulated.
    func checksum(_ bytes: some Sequence<UInt8>) -> UInt64 {
        var hash = 0xCBF2_9CE4_8422_2325 ^ SeededGenerator.mixed(seed &+ 1)
        for byte in bytes { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
        return SeededGenerator.mixed(hash)
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

    /// Writes the payload. As always with ``DERWriter``, the last element comes first.
    func write(to der: inout DERWriter) {
        der.element(DERWriter.setTag) { der in
            let bought = account.purchases.purchases.filter { account.holds($0, in: identity) }
            for purchase in bought.suffix(Self.rowsMax).reversed() { row(of: purchase, to: &der) }
            for life in account.begun.reversed() {
                let booked = life.periods.filter { $0.bookedAt <= identity.creation }
                for period in booked.suffix(Self.rowsMax).reversed() { row(of: period, life, to: &der) }
            }
            attribute(12, to: &der) { $0.ia5(AppleDates.internet(identity.creation)) }
            attribute(3, to: &der) { $0.utf8("42") }
            if identity.isDisguised { attribute(2, to: &der) { $0.utf8("\(bundleID).other") } }
            attribute(2, to: &der) { $0.utf8(bundleID) }
            attribute(0, to: &der) { $0.utf8(kind) }
        }
    }

    private var kind: String {
        switch account.environment {
        case .production: "Production"
        case .sandbox: "ProductionSandbox"
        }
    }

    private func row(of purchase: OneTimePurchase, to der: inout DERWriter) {
        let restoredAt = account.restored(purchase, in: identity)
        let id = account.ids.purchase(purchase.ordinal, restore: restoredAt == nil ? 0 : identity.restore)
        row(to: &der) { der in
            if restoredAt != nil { attribute(1706, to: &der) { $0.ia5(AppleDates.internet(purchase.at)) } }
            attribute(1705, to: &der) { $0.utf8(account.ids.purchase(purchase.ordinal)) }
            attribute(1704, to: &der) { $0.ia5(AppleDates.internet(restoredAt?.wholeSecond ?? purchase.at)) }
            attribute(1703, to: &der) { $0.utf8(id) }
            attribute(1702, to: &der) { $0.utf8(purchase.product.identifier(in: bundleID)) }
            attribute(1701, to: &der) { $0.integer(Int64(purchase.order.quantity.count)) }
        }
    }

    private func row(of period: Period, _ life: Life, to der: inout DERWriter) {
        let ids = life.ids
        row(to: &der) { der in
            if !life.script.isMember {
                attribute(1711, to: &der) { $0.integer(Int64(ids.webOrderLineItemNumber(of: period.ordinal))) }
            }
            attribute(1708, to: &der) { $0.ia5(AppleDates.internet(period.expires(asOf: identity.creation))) }
            attribute(1705, to: &der) { $0.utf8(ids.originalTransactionID) }
            attribute(1704, to: &der) { $0.ia5(AppleDates.internet(period.purchase)) }
            attribute(1703, to: &der) { $0.utf8(ids.transactionID(of: period.ordinal, restore: identity.restore)) }
            attribute(1702, to: &der) { $0.utf8(period.product.identifier(in: bundleID)) }
            attribute(1701, to: &der) { $0.integer(1) }
        }
    }

    private func row(to der: inout DERWriter, _ attributes: (inout DERWriter) -> Void) {
        attribute(17, to: &der) { $0.element(DERWriter.setTag, attributes) }
    }

    private func attribute(_ type: Int64, to der: inout DERWriter, _ value: (inout DERWriter) -> Void) {
        der.element(DERWriter.sequenceTag) { der in
            der.octets(value)
            der.integer(1)
            der.integer(type)
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
    fileprivate func value(of key: String) -> String? {
        guard let start = range(of: "\"\(key)\" = \"")?.upperBound,
            let end = self[start...].firstIndex(of: "\"")
        else { return nil }
        return String(self[start..<end])
    }
}

/// A writer of the few parts of DER in a receipt. It writes from the end, because a length stands before its content:
/// every length is then known when its turn comes. Callers therefore write the last element first.
struct DERWriter {
    static let sequenceTag: UInt8 = 0x30
    static let setTag: UInt8 = 0x31
    static let explicitTag: UInt8 = 0xA0
    private static let octetsTag: UInt8 = 0x04

    private var backward: [UInt8] = []

    init(reserving count: Int) {
        backward.reserveCapacity(count)
    }

    /// All bytes, in the final order.
    var bytes: [UInt8] { backward.reversed() }

    mutating func element(_ tag: UInt8, _ content: (inout DERWriter) -> Void) {
        let end = backward.count
        content(&self)
        header(tag, length: backward.count - end)
    }

    /// Writes an octet string that contains other elements.
    mutating func octets(_ content: (inout DERWriter) -> Void) { element(Self.octetsTag, content) }

    mutating func octets(_ bytes: [UInt8]) { octets { $0.backward.append(contentsOf: bytes.reversed()) } }

    mutating func integer(_ value: Int64) {
        let end = backward.count
        var rest = value
        // The shortest two's complement form: it ends when the rest is only the sign of the byte before.
        repeat {
            backward.append(UInt8(truncatingIfNeeded: rest))
            rest >>= 8
        } while rest != (backward[backward.count - 1] >= 0x80 ? -1 : 0)
        header(0x02, length: backward.count - end)
    }

    mutating func utf8(_ text: String) { string(0x0C, text) }

    mutating func ia5(_ text: String) { string(0x16, text) }

    /// Writes 1.2.840.113549.1.7.n: 1 is data, 2 is signed data.
    mutating func pkcs7(_ last: UInt8) {
        backward.append(last)
        for byte: UInt8 in [0x07, 0x01, 0x0D, 0xF7, 0x86, 0x48, 0x86, 0x2A] { backward.append(byte) }
        header(0x06, length: 9)
    }

    /// Returns the size an element declares, header included; nil when the header is broken.
    static func declaredSize(of bytes: some RandomAccessCollection<UInt8>) -> Int? {
        let head = Array(bytes.prefix(6))
        guard head.count >= 2 else { return nil }
        guard head[1] >= 0x80 else { return 2 + Int(head[1]) }
        let count = Int(head[1] & 0x7F)
        guard (1...4).contains(count), head.count >= 2 + count else { return nil }
        return 2 + count + head[2..<(2 + count)].reduce(0) { $0 << 8 | Int($1) }
    }

    private mutating func string(_ tag: UInt8, _ text: String) {
        backward.append(contentsOf: text.utf8.reversed())
        header(tag, length: text.utf8.count)
    }

    private mutating func header(_ tag: UInt8, length: Int) {
        if length < 0x80 {
            backward.append(UInt8(length))
        } else {
            var rest = length
            var count: UInt8 = 0
            while rest > 0 {
                backward.append(UInt8(truncatingIfNeeded: rest))
                rest >>= 8
                count += 1
            }
            backward.append(0x80 | count)
        }
        backward.append(tag)
    }
}

/// The receipts read before, by digest, so that form and signature of each are checked once.
final class KnownReceipts: Sendable {
    /// Above this many, all entries are dropped; reading a receipt again is cheap enough.
    private static let entriesMax = 1 << 20

    private let codec: ReceiptCodec
    private let known = Mutex<[UInt64: ReceiptIdentity]>([:])

    init(codec: ReceiptCodec) {
        self.codec = codec
    }

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

    /// Returns a digest, eight bytes at a time. It guards against honest mistakes, not attackers: this store is
    /// simulated.
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
