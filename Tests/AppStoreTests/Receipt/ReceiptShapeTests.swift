import Foundation
import Testing

@testable import AppStore

@Suite("What cannot be a receipt by its shape")
struct ReceiptShapeTests {
    private func outcome(_ bytes: [UInt8]) throws -> ReceiptDataError? {
        let receipt = try ReceiptData(normalising: Data(bytes).base64EncodedString())
        do {
            try receipt.requireShape()
            return nil
        } catch {
            return error
        }
    }

    @Test(
        "Short words that happen to be Base64 are refused",
        arguments: ["kim", "NaN", "test", "null0000", "U1lOVEhFVElD"])
    func words(_ word: String) throws {
        let receipt = try ReceiptData(normalising: word)
        #expect(throws: ReceiptDataError.tooShort(bytes: receipt.bytes.count)) { try receipt.requireShape() }
    }

    @Test("Long texts and pictures are refused; what begins like DER is Apple's to judge")
    func forms() throws {
        let rest = [UInt8](repeating: 7, count: ReceiptData.bytesMin)
        #expect(try outcome(Array("a long letter about nothing in particular. ".utf8) + rest) == .unlikeAnyReceipt)
        #expect(try outcome([0x89, 0x50, 0x4E, 0x47] + rest) == .unlikeAnyReceipt)
        #expect(try outcome([0x30, 0x82] + rest) == nil)
        #expect(try outcome([0x30, 0x80] + rest.dropLast(3)) == .tooShort(bytes: 127))
        #expect(try outcome(Array("bplist00 purchase-info ".utf8) + rest) == nil, "an old receipt encoded otherwise")
    }

    @Test("Receipts as Apple, Xcode and the simulator of others make them pass")
    func receipts() throws {
        #expect(try outcome(BERWriter.ordinary) == nil)
        #expect(try outcome(Array(ReceiptDataTests.legacy)) == nil)
    }
}
