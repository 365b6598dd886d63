import Foundation
import SeededRandom
import Testing

@testable import AppStore

/// The fast way for ordinary texts must come to exactly what the careful way comes to, for every text.
@Suite("The fast reading of Base64 equals the careful one") struct OrdinaryBase64Tests {
    static let receipts: [[UInt8]] = [
        ReceiptDataTests.bytes, Array(ReceiptDataTests.legacy), ReceiptDataTests.bytes + [1],
        ReceiptDataTests.bytes + [1, 2],
    ]

    private func outcome(_ read: () throws(ReceiptDataError) -> ReceiptData) -> Result<ReceiptData, ReceiptDataError> {
        Result { () throws(ReceiptDataError) in try read() }
    }

    private func expectSame(_ raw: String, _ seed: UInt64) {
        let quick = outcome { () throws(ReceiptDataError) in try ReceiptData(normalising: raw) }
        let careful = outcome { () throws(ReceiptDataError) in try ReceiptData(normalisingWithCare: raw) }
        #expect(quick == careful, "seed \(seed): \(raw)")
    }

    @Test("Damaged texts come to the same")
    func damagedTextsComeToTheSame() {
        let seed: UInt64 = 64_64
        print("seed \(seed)")
        var generator = Seeded(seed: seed)
        let alphabet = Array("AZaz09+/=-_ \n\"\\%!é".unicodeScalars)
        var unhurt = 0
        for round in 0..<6000 {
            var text = Array(Data(Self.receipts[round % Self.receipts.count]).base64EncodedString().unicodeScalars)
            for _ in 0..<Int.random(in: 0...2, using: &generator) {
                let place = Int.random(in: 0..<text.count, using: &generator)
                switch Int.random(in: 0...3, using: &generator) {
                case 0: text[place] = alphabet[Int.random(in: 0..<alphabet.count, using: &generator)]
                case 1: text.insert(alphabet[Int.random(in: 0..<alphabet.count, using: &generator)], at: place)
                case 2: text.remove(at: place)
                default: text.removeLast(Int.random(in: 1...6, using: &generator))
                }
            }
            let raw = String(String.UnicodeScalarView(text))
            if Data(base64Encoded: raw) != nil { unhurt += 1 }
            expectSame(raw, seed)
        }
        #expect(unhurt > 1000)
    }

    @Test("Every byte at every place of the last groups comes to the same")
    func everyByteAtEveryPlaceOfTheLastGroupsComesToTheSame() {
        for receipt in Self.receipts {
            let text = Array(Data(receipt).base64EncodedString().utf8)
            for place in (text.count - 8)..<text.count {
                for byte in UInt8.min...0x7F {
                    var changed = text
                    changed[place] = byte
                    expectSame(String(decoding: changed, as: UTF8.self), 0)
                }
            }
        }
    }

    @Test("Short texts come to the same")
    func shortTextsComeToTheSame() {
        for text in [
            "", "A", "AA", "AAA", "AAAA", "null", "none", "====", "A===", "AA==", "AAA=", "AAAA====", "MIAG", "=AAA",
        ] {
            expectSame(text, 0)
        }
    }

    @Test("The table decodes what Foundation encodes")
    func theTableDecodesWhatFoundationEncodes() {
        let seed: UInt64 = 4648
        print("seed \(seed)")
        var generator = Seeded(seed: seed)
        for count in 1..<400 {
            let bytes = (0..<count).map { _ in UInt8.random(in: 0...255, using: &generator) }
            let text = Array(Data(bytes).base64EncodedString().utf8)
            #expect(text.withUnsafeBufferPointer(StandardBase64.decoded) == bytes, "seed \(seed), \(count) bytes")
        }
    }

    @Test("Only a known form is ordinary")
    func onlyAKnownFormIsOrdinary() throws {
        // Base64 of Base64 is clean Base64 as well: the inside decides.
        let twice = Data(ReceiptDataTests.base64.utf8).base64EncodedString()
        #expect(try ReceiptData(normalising: twice).bytes == ReceiptDataTests.bytes)
    }
}
