import Foundation
import SeededRandom
import Testing

@testable import AppStore

@Suite("Receipts are repaired as they arrive, or refused") struct ReceiptDataTests {
    /// A small PKCS#7-like receipt whose Base64 holds every special character: `+`, `/` and padding.
    static let bytes: [UInt8] = {
        let head: [UInt8] = [0x06, 0x09, 0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x07, 0x02]
        let content =
            head + (0..<160).map { UInt8(truncatingIfNeeded: $0 * 37) } + [0xFB, 0xEF, 0xBE, 0xFF, 0xFF, 0xFF, 0xFB]
        return [0x30, 0x82, 0x00, UInt8(content.count)] + content
    }()
    static let base64 = Data(bytes).base64EncodedString()
    static let legacy = Data(#"{ "signature" = "AA=="; "purchase-info" = "AAAA"; "pod" = "100"; }"#.utf8)

    @Test("The sample holds every special character")
    func theSampleHoldsEverySpecialCharacter() {
        #expect(Self.base64.contains("+") && Self.base64.contains("/") && Self.base64.hasSuffix("="))
    }

    static func wrapped(_ separator: String, every width: Int) -> String {
        stride(from: 0, to: base64.count, by: width).map { String(base64.dropFirst($0).prefix(width)) }
            .joined(separator: separator)
    }

    static let damaged: [(String, String)] = [
        ("as it should be", base64),
        ("surrounding white space", " \n\(base64)\r\n"),
        ("line breaks of 76", wrapped("\r\n", every: 76)),
        ("line breaks of 64 with indentation", wrapped("\n    ", every: 64)),
        ("line breaks turned into spaces", wrapped(" ", every: 76)),
        ("spaces for pluses", base64.replacing("+", with: " ")),
        ("spaces for pluses and line breaks", wrapped("\n", every: 76).replacing("+", with: " ")),
        ("URL-safe", base64.replacing("+", with: "-").replacing("/", with: "_")),
        (
            "URL-safe without padding",
            base64.replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
        ),
        ("no padding", base64.replacing("=", with: "")),
        ("too much padding", base64 + "=="),
        ("escaped slashes", base64.replacing("/", with: #"\/"#)),
        ("slashes escaped twice", base64.replacing("/", with: #"\\\/"#)),
        ("escaped line breaks", wrapped(#"\r\n"#, every: 76)),
        ("escaped pluses", base64.replacing("+", with: #"\u002b"#).replacing("=", with: #"\u003D"#)),
        ("quotes", "\"\(base64)\""),
        ("escaped quotes", #"\""# + base64 + #"\""#),
        ("single quotes", "'\(base64)'"),
        ("data URL", "data:application/octet-stream;base64,\(base64)"),
        (
            "percent encoding",
            base64.replacing("+", with: "%2B").replacing("/", with: "%2f").replacing("=", with: "%3D")
        ),
        ("percent encoding twice", base64.replacing("+", with: "%252B").replacing("=", with: "%253D")),
        ("percent-encoded quotes", "%22\(base64)%22"),
        ("PEM armour", "-----BEGIN PKCS7-----\n\(wrapped("\n", every: 64))\n-----END PKCS7-----\n"),
        ("byte order mark", "\u{FEFF}\(base64)\u{200B}"),
        ("no-break space", base64 + "\u{A0}"),
        ("Base64 in Base64", Data(base64.utf8).base64EncodedString()),
        ("Base64 in Base64 with line breaks", Data(wrapped("\n", every: 76).utf8).base64EncodedString()),
        ("Base64 three deep", Data(Data(base64.utf8).base64EncodedString().utf8).base64EncodedString()),
    ]

    @Test("Usual damage is repaired", arguments: damaged)
    func repairs(_ damage: String, _ raw: String) throws {
        let receipt = try ReceiptData(normalising: raw)
        #expect(receipt.base64 == Self.base64, "\(damage)")
        #expect(receipt.bytes == Self.bytes, "\(damage)")
        #expect(receipt.form == .unified, "\(damage)")
    }

    static let token = "eyJhbGciOiJFUzI1NiJ9.eyJidW5kbGVJZCI6ImNvbS5leGFtcGxlIn0.c2lnbmF0dXJl"
    static let foreign: [(String, ReceiptDataError)] = [
        ("", .empty), (" \n\t", .empty), ("\"\"", .empty), ("null", .empty), ("undefined", .empty), ("====", .empty),
        (String(repeating: "A", count: ReceiptData.charactersMax + 1), .tooLarge(characters: 8_388_609)),
        (token, .signedTransaction), ("\"\(token)\"", .signedTransaction),
        (Data(token.utf8).base64EncodedString(), .signedTransaction),
        (#"{"signedPayload":"\#(token)"}"#, .serverNotification),
        (Data(#"{ "signedPayload" : "\#(token)" }"#.utf8).base64EncodedString(), .serverNotification),
        (#"{"receipt-data":"AAAA"}"#, .json),
        (String(decoding: legacy, as: UTF8.self), .propertyList),
        ("<!DOCTYPE html><html></html>", .webPage), ("  <HTML>", .webPage),
        ("not a receipt!", .foreignCharacter("'!'", position: 14)),
        ("AAAA*AAA", .foreignCharacter("'*'", position: 5)),
        ("AAAAéAA", .foreignCharacter("'é'", position: 5)),
        ("AA=AAAAA", .foreignCharacter("'='", position: 3)),
        ("AAA%ZZAA", .foreignCharacter("'%'", position: 4)),
        ("AAAAA", .cutShort(characters: 5)),
    ]

    @Test("What is no receipt is refused with its reason", arguments: foreign)
    func refuses(_ raw: String, _ expected: ReceiptDataError) {
        #expect(throws: expected) { try ReceiptData(normalising: raw) }
        #expect(expected.description.hasSuffix("."))
    }

    @Test("An unknown form is Apple's to decide")
    func anUnknownFormIsAppleToDecide() throws {
        #expect(try ReceiptData(normalising: "U1lOVEhFVElD").form == .unknown)
        // Sixteen letters inside: Base64 again, but of nothing we know, so they stay as they are.
        let letters = try ReceiptData(normalising: Data("receiptNumber123".utf8).base64EncodedString())
        #expect(letters.bytes == Array("receiptNumber123".utf8))
        #expect(try ReceiptData(normalising: Self.legacy.base64EncodedString()).form == .legacy)
    }

    @Test("Unused bits do not make another receipt")
    func unusedBitsDoNotMakeAnotherReceipt() throws {
        #expect(try ReceiptData(normalising: "AAB=") == ReceiptData(normalising: "AAA="))
    }

    @Test("No bytes at all break it")
    func noBytesAtAllBreakIt() {
        let seed: UInt64 = 20_261_120
        print("seed \(seed)")
        var generator = Seeded(seed: seed)
        let alphabet = Array("AZaz09+/=-_ \n\r\t\\\"'%{}<>.,:unrdeyJ\u{E9}\u{200B}\u{0}".unicodeScalars)
        for _ in 0..<3000 {
            var text = String.UnicodeScalarView()
            for _ in 0..<Int.random(in: 0...40, using: &generator) {
                text.append(alphabet[Int.random(in: 0..<alphabet.count, using: &generator)])
            }
            guard let receipt = try? ReceiptData(normalising: String(text)) else { continue }
            #expect(Data(receipt.bytes).base64EncodedString() == receipt.base64)
            #expect((try? ReceiptData(normalising: receipt.base64))?.bytes.isEmpty == false, "\(receipt.base64)")
        }
    }
}

extension ReceiptData {
    /// The receipt in standard, padded Base64 without white space, as it is sent.
    var base64: String { Data(bytes).base64EncodedString() }
}
