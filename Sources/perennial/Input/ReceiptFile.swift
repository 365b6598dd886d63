import Foundation

/// A file with one receipt: base64 as an app sends it, or a device's receipt file unchanged.
struct ReceiptFile {
    /// The most bytes of a receipt's file.
    static let bytesMax = 12 << 20

    let file: InputFile

    /// Returns the receipt as text. Bytes that are not text are the receipt itself, and are encoded.
    func receipt() throws -> String {
        Self.receipt(in: try file.contents(bytesMax: Self.bytesMax))
    }

    static func receipt(in bytes: [UInt8]) -> String {
        String(validating: bytes, as: UTF8.self) ?? Data(bytes).base64EncodedString()
    }
}
