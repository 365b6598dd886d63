import Foundation
import Subscriptions
import Testing
import Tracking

@testable import perennial

@Suite("A line of an import is read, or refused with its reason") struct ImportLineTests {
    static func submission(_ line: String) throws -> Submission {
        try Array(line.utf8).withUnsafeBytes { try ImportLine.submission(in: $0) }
    }

    @Test func `a line becomes a submission`() throws {
        let line =
            #"{"app":"a.b","customer":"c","receipt":"MII=","price":4.99,"currency":"USD","storefront":"USA","x":1}"#
        let submission = try Self.submission(line)
        #expect(submission.bundleID == "a.b")
        #expect(submission.customer == "c")
        #expect(submission.subject == .receipt("MII="))
        #expect(submission.priceMilliunits == 4_990)
        #expect(submission.imported)
        #expect(submission.provisional == nil && submission.expiresAt == nil)
        let text = #"{"app":"a.b","customer":"c","receipt":"MII=","price":"999999999999.999","currency":"USD"}"#
        #expect(try Self.submission(text).priceMilliunits == 999_999_999_999_999)
        #expect(try Self.submission(text.replacing("USD", with: "usd")).currency == "USD")
    }

    @Test func `a promise has a product and an end`() throws {
        let line = #"""
            {"app":"a","customer":"c","receipt":"MII=","product":"monthly","expires":"2026-11-20T12:00:00Z",
            """#
        let submission = try Self.submission(line + #" "provisional_until" : "2026-12-01" }"#)
        #expect(submission.expiresAt == Instant(iso8601: "2026-11-20T12:00:00Z"))
        #expect(submission.provisional?.productID == "monthly")
        #expect(submission.provisional?.until == Instant(iso8601: "2026-12-01T00:00:00Z"))
        #expect(try Self.submission(line + #""provisional_until":null}"#).provisional == nil)
    }

    @Test(arguments: [
        ("{", "this is JSON that ends in the middle, after 1 bytes"),
        ("[]", "this is no JSON object"), ("{}", "app is missing"),
        (#"{"app":"a","customer":1,"receipt":"x"}"#, "customer is not text"),
        (#"{"app":"a","customer":"c"}"#, "give exactly one of receipt, signed_transaction and transaction_id"),
        (#"{"app":"a","customer":null,"receipt":"x"}"#, "customer is not text"),
        (#"{"app":"","customer":"c","receipt":"x"}"#, "app is empty; give the app's bundle id"),
        (
            #"{"app":"a","customer":"c","receipt":"x","price":"1,5","currency":"EUR"}"#,
            "price: '1,5' is no price; write 4.99, with at most 3 decimals"
        ),
        (#"{"app":"a","customer":"c","receipt":"x","price":1}"#, "price and currency go together"),
        (
            #"{"app":"a","customer":"c","receipt":"x","price":4.99,"currency":"dollar"}"#,
            "currency is not an ISO 4217 code of three letters, like USD"
        ),
        (
            #"{"app":"a","customer":"c","receipt":"x","expires":"tomorrow"}"#,
            "expires: 'tomorrow' is no instant; write 2026-11-20T12:00:00Z"
        ),
        (#"{"app":"a","customer":"c","receipt":"x","expires":7}"#, "expires is not text"),
        (
            #"{"app":"a","customer":"c","receipt":"x","storefront":"U\u0000"}"#,
            "storefront has a NUL, which no text of PostgreSQL can hold"
        ),
        (
            #"{"app":"a","customer":"c","receipt":"x","provisional_until":"2026-12-01"}"#,
            "provisional_until needs product, which says what the customer has until then"
        ),
    ])
    func `a bad line has its reason`(line: String, reason: String) {
        do {
            _ = try Self.submission(line)
            Issue.record("\(line) was accepted.")
        } catch {
            #expect("\(error)" == reason)
        }
    }

    /// Changes to a good line after which other readers read it differently, or not at all.
    static let departures: [(name: String, change: @Sendable (String) -> String)] = [
        ("comma at the end", { $0.replacing("}", with: ",}") }), ("comma after it", { "\($0)," }),
        ("two commas", { $0.replacing(",", with: ",,", maxReplacements: 1) }), ("second value", { $0 + $0 }),
        ("text after it", { "\($0) x" }), ("comment", { $0.replacing("}", with: "/* c */}") }),
        ("line comment", { "\($0) // c" }), ("half", { String($0.dropLast()) }),
        ("key without quotes", { $0.replacing("\"app\"", with: "app") }),
        ("single quotes", { $0.replacing("\"", with: "'") }),
        ("key twice", { $0.replacing("}", with: ",\"customer\":\"d\"}") }),
        ("key twice, once escaped", { $0.replacing("}", with: ",\"\\u0063ustomer\":\"d\"}") }),
        ("ignored key twice", { $0.replacing("}", with: ",\"x\":1,\"x\":[2]}") }),
        ("number with plus", { $0.replacing("}", with: ",\"price\":+1,\"currency\":\"USD\"}") }),
        ("number with zeros", { $0.replacing("}", with: ",\"price\":007,\"currency\":\"USD\"}") }),
        ("no number", { $0.replacing("}", with: ",\"price\":NaN,\"currency\":\"USD\"}") }),
        ("tab in a text", { $0.replacing("a.b", with: "a\t.b") }), ("NUL", { $0.replacing("}", with: "\0}") }),
        ("half a pair", { $0.replacing("a.b", with: "\\ud800") }),
        ("unknown escape", { $0.replacing("a.b", with: "\\x41") }), ("list", { "[\($0)]" }),
    ]

    @Test func `a line that is not exactly JSON is refused, whatever readers would make of it`() throws {
        let line = #"{"app":"a.b","customer":"c","receipt":"MII="}"#
        _ = try Self.submission(line)
        for (name, change) in Self.departures {
            #expect(throws: Failure.self, "\(name)") { try Self.submission(change(line)) }
        }
        for encoding in [String.Encoding.utf16, .utf16LittleEndian, .utf16BigEndian, .utf32, .isoLatin1] {
            let bytes = try #require(line.replacing("a.b", with: "é").data(using: encoding))
            #expect(throws: Failure.self, "\(encoding)") {
                try bytes.withUnsafeBytes { try ImportLine.submission(in: $0) }
            }
        }
        #expect(try Self.submission("\u{FEFF}\(line)").customer == "c")
    }

    @Test func `a key that is there twice is named`() {
        let error = #expect(throws: Failure.self) {
            try Self.submission(#"{"app":"a","customer":"c","receipt":"x","customer":"c"}"#)
        }
        #expect(error?.description == "customer is there twice")
    }

    @Test(arguments: [
        #"{"app":"a.b","customer":"c","receipt":"MII="}"#,
        #"{"app":"a.b","customer":"c","receipt":"MII\/\/8="}"#,
        #" { "receipt" : "" , "customer":"c 1", "app":"a" , "currency":null, "extra":"x", "n": 12 } "#,
        "{\t\"app\":\"a\",\t\"customer\":\"c\",\"receipt\":\"r\"}\t",
        #"{"app":"a","customer":"c","receipt":"r","price":"4.99","currency":"USD","storefront":"USA"}"#,
        #"{"app":"a","customer":"c","receipt":"r","price":0.1,"currency":"USD","product":"p","expires":"2026-01-02"}"#,
    ])
    func `the ordinary line needs no care`(line: String) throws {
        let bytes = Array(line.utf8)
        let quick = try #require(bytes.withUnsafeBytes { QuickLine.read($0) })
        #expect(quick == (try bytes.withUnsafeBytes { try CarefulLine.read($0) }))
    }

    /// Whatever the quick reader reads, the careful one reads the same; what it does not read it leaves to it.
    @Test func `both readers agree on every line`() {
        let seed: UInt64 = 20_261_121
        print("lines of seed \(seed)")
        var random = LineGenerator(seed: seed)
        var read = 0
        for _ in 0..<20_000 {
            let bytes = random.line()
            guard let quick = bytes.withUnsafeBytes({ QuickLine.read($0) }) else { continue }
            read += 1
            let careful = try? bytes.withUnsafeBytes { try CarefulLine.read($0) }
            #expect(careful == quick, "\(String(decoding: bytes, as: UTF8.self))")
        }
        #expect(read > 4_000)
    }
}

/// Lines as exporters write them, damaged here and there.
struct LineGenerator {
    private var state: UInt64

    init(seed: UInt64) {
        state = seed
    }

    /// SplitMix64 (Steele, Lea and Flood 2014).
    private mutating func below(_ bound: Int) -> Int {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return Int((mixed ^ (mixed >> 31)) % UInt64(bound))
    }

    private mutating func one(of choices: [String]) -> String { choices[below(choices.count)] }

    mutating func line() -> [UInt8] {
        var fields = ["app", "customer", "receipt"].map { "\"\($0)\":\"\(value())\"" }
        for key in ["price", "currency", "storefront", "product", "expires", "provisional_until", "note"]
        where below(3) == 0 {
            fields.append("\"\(key)\"\(one(of: [":", " : "]))\(other(key))")
        }
        if below(20) == 0 { fields.append(fields[below(fields.count)]) }
        var bytes = Array("{\(fields.joined(separator: one(of: [",", ", ", ",\t"])))}".utf8)
        for _ in 0..<(below(4) == 0 ? 1 + below(2) : 0) {
            switch below(3) {
            case 0: bytes.remove(at: below(bytes.count))
            case 1: bytes.insert(UInt8(below(256)), at: below(bytes.count))
            default: bytes[below(bytes.count)] = Array("\"\\{}[]:,0.-eé \n".utf8)[below(15)]
            }
        }
        return bytes
    }

    private mutating func value() -> String {
        guard below(3) == 0 else { return one(of: ["a.b.c", "MIIT+/8=", "c 1"]) }
        return one(of: ["MII\\/x", "", "é", "\\u0041", "\\\"", "x\\n", "{}", "a\u{7F}b", "12"])
    }

    private mutating func other(_ key: String) -> String {
        guard below(3) == 0 else { return ["price": "4.99", "note": "[1]"][key] ?? "null" }
        return switch key {
        case "price":
            one(of: [
                "4.99", "\"4.99\"", "0", "007", "1e2", "-1", "1.2345", "1.5000", ".5", "5.", "0.10",
                "123456789012345678",
            ])
        case "expires", "provisional_until":
            one(of: ["\"2026-11-20T12:00:00Z\"", "\"2026-02-30\"", "null", "\"2026-01-01\"", "5", "true"])
        default: one(of: ["\"\(value())\"", "null", "1", "true", "[1]", "{\"a\":1}", "1.25"])
        }
    }
}
