import Foundation

/// A file with one receipt: base64 as an app sends it, or the receipt file of a device as it is.
struct ReceiptFile {
    /// The most bytes of a receipt's file.
    static let bytesMax = 12 << 20

    let file: InputFile

    /// The receipt as text; bytes that are no text are taken for the receipt itself and encoded.
    func receipt() throws -> String {
        Self.receipt(in: try file.contents(bytesMax: Self.bytesMax))
    }

    static func receipt(in bytes: [UInt8]) -> String {
        String(validating: bytes, as: UTF8.self) ?? Data(bytes).base64EncodedString()
    }
}
