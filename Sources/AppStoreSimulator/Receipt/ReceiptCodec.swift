import Foundation

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
