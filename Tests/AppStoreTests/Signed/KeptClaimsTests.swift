import Foundation
import SeededRandom
import Testing

@testable import AppStore

@Suite("Of an old signed text every claim stays but those that must go")
struct KeptClaimsTests {
    private static let gone: Set<String> = [
        "deviceVerification", "deviceVerificationNonce", "nonce", "x5c", "receipt", "receiptData", "receipt-data",
        "latest_receipt", "latestReceipt", "unified_receipt", "transactionReceipt", "signedAppTransactionInfo",
    ]

    private func kept(_ payload: String) throws -> String {
        String(decoding: try #require(KeptClaims.kept(of: Array(payload.utf8))), as: UTF8.self)
    }

    @Test("Claims that no code knows stay as they came, with what is nested in them")
    func unknown() throws {
        let payload =
            #"{"transactionId":"1","commitmentInfo":{"billingPeriodNumber":3,"commitmentPrice":131880},"#
            + #""multiSeatInfo":{"priceTiers":[{"price":4990,"quantity":2},[],{}]},"none":null,"ratio":1.50e3,"#
            + #""revokedSeatQuantity":0,"name":"a\"\\\u00e9.b.c","is":true,"twice":1,"twice":2}"#
        #expect(try kept(payload) == payload)
        #expect(try kept(#" { "a" : [ 1 , { } ] } "#) == #"{"a":[1,{}]}"#)
    }

    @Test("What must go is gone at every depth, also under an escaped name", arguments: gone)
    func dropped(_ name: String) throws {
        let escaped = name.unicodeScalars.map { "\\u00" + String($0.value, radix: 16) }.joined()
        let payload = #"{"\#(name)":{"a":1},"data":[{"\#(name)":"secret","stays":1},{"\#(escaped)":[2]}]}"#
        #expect(try kept(payload) == #"{"data":[{"stays":1},{}]}"#)
    }

    @Test("A signed text within a payload keeps its claims alone, to every depth")
    func nested() throws {
        func text(_ payload: String) -> String { "eyJ4NWMiOltdfQ.\(Base64URL.encoded(Array(payload.utf8))).c2ln" }
        func claims(_ payload: String) -> String { "~.\(Base64URL.encoded(Array(payload.utf8)))." }
        let inner = text(#"{"a":1,"nonce":2}"#)
        let payload = #"{"signed":"\#(text(#"{"deeper":"\#(inner)"}"#))","bundleId":"com.example.app"}"#
        let expected = claims(#"{"deeper":"\#(claims(#"{"a":1}"#))"}"#)
        #expect(try kept(payload) == #"{"signed":"\#(expected)","bundleId":"com.example.app"}"#)
    }

    @Test("Only an object has claims", arguments: ["", "[]", "1", "{", "\"a\""])
    func others(_ payload: String) { #expect(KeptClaims.kept(of: Array(payload.utf8)) == nil) }

    @Test("What is kept is the payload without the listed names, and keeping it again changes nothing")
    func property() throws {
        for seed in UInt64(1)...400 {
            var random = Seeded(seed: seed)
            let payload = object(depth: 0, &random)
            let bytes = Array(try JSONSerialization.data(withJSONObject: payload))
            let once = try #require(KeptClaims.kept(of: bytes))
            let read = try #require(try JSONSerialization.jsonObject(with: Data(once)) as? [String: Any])
            let expected = try #require(without(payload) as? [String: Any])
            #expect(NSDictionary(dictionary: read) == NSDictionary(dictionary: expected), "seed \(seed)")
            #expect(KeptClaims.kept(of: once) == once, "seed \(seed)")
        }
    }

    private func without(_ value: Any) -> Any {
        if let list = value as? [Any] { return list.map(without) }
        guard let object = value as? [String: Any] else { return value }
        return object.filter { !Self.gone.contains($0.key) }.mapValues(without)
    }

    private func object(depth: Int, _ random: inout Seeded) -> [String: Any] {
        let names = Self.gone.sorted() + ["transactionId", "commitmentInfo", "ünknown", "a\"b", "price"]
        return (0..<Int.random(in: 0...5, using: &random)).reduce(into: [:]) { object, _ in
            object[names.randomElement(using: &random) ?? ""] = value(depth: depth + 1, &random)
        }
    }

    private func value(depth: Int, _ random: inout Seeded) -> Any {
        switch Int.random(in: 0..<(depth < 5 ? 6 : 4), using: &random) {
        case 0: return Int.random(in: -5...5_000_000_000, using: &random)
        case 1: return ["", "com.example.pro", "a\\\"\n", "é"].randomElement(using: &random) ?? ""
        case 2: return Bool.random(using: &random)
        case 3: return NSNull()
        case 4: return (0..<Int.random(in: 0...3, using: &random)).map { _ in value(depth: depth + 1, &random) }
        default: return object(depth: depth + 1, &random)
        }
    }
}
