import Foundation

/// A receipt in the form Apple requires: standard Base64, padded, on one line. Two spellings of the same bytes are
/// equal.
///
/// Nearly every 21002 in practice comes from a damaged spelling, so the usual damage is repaired here. Decoding after
/// the repair is strict. Text that cannot be a receipt is rejected with an explanation.
package struct ReceiptData: Sendable, Hashable {
    /// The most characters accepted, before any repair: 8 MiB. Real receipts reach about 100 kB.
    package static let charactersMax = 8 * 1024 * 1024

    /// The decoded receipt: the bytes to store and to digest.
    package let bytes: [UInt8]
    /// The apparent form of the bytes.
    package let form: ReceiptForm

    /// The receipt in standard, padded Base64 without white space, ready to send. Encoded anew at every access.
    package var base64: String { Data(bytes).base64EncodedString() }

    /// Repairs the damage that devices, proxies and editors do to Base64, then decodes strictly.
    ///
    /// It repairs line breaks, spaces for pluses, the URL-safe alphabet, missing padding, JSON escapes, quotes, a
    /// `data:` prefix, PEM armour, percent encoding and Base64 in Base64.
    package init(normalising raw: String) throws(ReceiptDataError) {
        guard raw.utf8.count <= Self.charactersMax else { throw .tooLarge(characters: raw.utf8.count) }
        if let ordinary = Self.ordinary(raw) {
            self = ordinary
        } else {
            try self.init(normalisingWithCare: raw)
        }
    }

    /// Decodes any text by the full repair; for ordinary text it gives the same result as the short way.
    init(normalisingWithCare raw: String) throws(ReceiptDataError) {
        var decoded = try Self.decode(raw)
        if decoded.form == .unknown, let inner = try Self.recognisedInside(decoded.bytes, layersLeft: 3) {
            decoded = inner
        }
        self.init(decoded)
    }

    private init(_ decoded: DecodedReceipt) {
        bytes = decoded.bytes
        form = decoded.form
    }

    /// Returns a receipt that needs no repair: clean Base64 of a known form. Nil means only that the full repair is
    /// needed.
    private static func ordinary(_ raw: String) -> ReceiptData? {
        guard let bytes = raw.utf8.withContiguousStorageIfAvailable(StandardBase64.decoded) ?? nil else { return nil }
        let decoded = DecodedReceipt(bytes: bytes)
        switch decoded.form {
        case .unified, .legacy: return ReceiptData(decoded)
        case .unknown: return nil
        }
    }

    private static func decode(_ text: String) throws(ReceiptDataError) -> DecodedReceipt {
        try ReceiptSpelling(repairing: text).decoded()
    }

    /// Returns the receipt inside bytes that are themselves Base64 text; nil if they are not, or lead to no known form.
    ///
    /// A layer is removed only if its content is recognised, so that bytes that merely happen to be letters stay
    /// unchanged.
    private static func recognisedInside(
        _ bytes: [UInt8], layersLeft: Int
    ) throws(ReceiptDataError) -> DecodedReceipt? {
        let isText = bytes.allSatisfy { $0 < 0x7F && ($0 >= 0x20 || $0.isWhiteSpace) }
        guard layersLeft > 0, bytes.count >= 16, isText else { return nil }
        let inner: DecodedReceipt
        do {
            inner = try decode(String(decoding: bytes, as: UTF8.self))
        } catch {
            switch error {
            case .signedTransaction, .serverNotification: throw error
            case .empty, .tooLarge, .json, .propertyList, .webPage, .foreignCharacter, .cutShort: return nil
            }
        }
        guard inner.form == .unknown else { return inner }
        return try recognisedInside(inner.bytes, layersLeft: layersLeft - 1)
    }
}
