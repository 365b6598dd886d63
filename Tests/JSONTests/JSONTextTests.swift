import Foundation
import Testing

@testable import JSON

@Suite("JSON is written as JSONEncoder writes it")
struct JSONTextTests {
    private func encoded(_ value: JSONValue, _ extra: JSONEncoder.OutputFormatting = []) throws -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes, extra]
        return String(decoding: try encoder.encode(value), as: UTF8.self)
    }

    @Test("Every character below 0x3000, and some beyond, is written as JSONEncoder writes it")
    func characters() throws {
        let scalars = (0..<0x3000).compactMap { UnicodeScalar($0) } + ["\u{FEFF}", "\u{FFFF}", "😀", "\u{10FFFF}"]
        for scalar in scalars {
            let value = JSONValue.string("a\(Character(scalar))/b")
            #expect(value.rendered() == (try encoded(value)), "U+\(String(scalar.value, radix: 16))")
        }
    }

    @Test("Random values are written as JSONEncoder writes them", arguments: [1, 2, 3] as [UInt64])
    func random(seed: UInt64) throws {
        var state = seed
        func next(_ bound: UInt64) -> UInt64 {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return (state >> 33) % bound
        }
        func text() -> String { String((0..<next(6)).map { _ in Array("ab_\"\\\n\u{1}é😀/ ")[Int(next(11))] }) }
        func value(_ depth: Int) -> JSONValue {
            switch next(depth > 0 ? 6 : 4) {
            case 0: .null
            case 1: .bool(next(2) == 0)
            case 2: .integer([.min, .max, 0, -1, Int64(next(1_000_000))][Int(next(5))])
            case 3: .string(text())
            case 4: .array((0..<next(4)).map { _ in value(depth - 1) })
            default: .object(Dictionary((0..<next(5)).map { _ in ("k\(next(100))_", value(depth - 1)) }) { $1 })
            }
        }
        for _ in 0..<500 {
            let value = value(4)
            #expect(value.rendered() == (try encoded(value)), "seed \(seed)")
            #expect(value.rendered(pretty: true) == (try encoded(value, .prettyPrinted)), "seed \(seed)")
            #expect(try JSONValue(parsing: value.rendered()) == value, "seed \(seed)")
            #expect(try JSONValue(parsing: value.rendered(pretty: true)) == value, "seed \(seed)")
        }
    }

    @Test("A value is read exactly: spaces, long numbers and fractions stay; of equal names the last counts")
    func exact() throws {
        let text = #"{"a":" x ","b":1.50,"c":123456789012345678901234567890,"d":[-0,1e3,null],"a":"\u00e9\n"}"#
        let value = try JSONValue(parsing: text)
        #expect(
            value == [
                "a": "é\n", "b": .number("1.50"), "c": .number("123456789012345678901234567890"),
                "d": [0, .number("1e3"), nil],
            ])
        #expect(try JSONValue(parsing: value.rendered()) == value)
        for wrong in ["", "{", "{}}", "[01]", "nul", #"{"a"}"#, #""\x""#] {
            #expect(throws: NotJSON.self, "\(wrong)") { try JSONValue(parsing: wrong) }
        }
    }

    @Test("A member that is missing or of another form is named; null is a missing one")
    func members() throws {
        let value: JSONValue = ["text": "a", "number": 7, "flag": true, "null": nil, "list": [1]]
        #expect(try value.text("text") == "a" && value.integer("number") == 7)
        #expect(try value.flagIfPresent("flag") == true && value.member("list").elements == [1])
        #expect(try value.textIfPresent("null") == nil && value.integerIfPresent("absent") == nil)
        let refused: [(String, () throws -> Void)] = [
            ("an object without null", { _ = try value.text("null") }),
            ("an object without absent", { _ = try value.member("absent") }),
            ("an object whose number is no text", { _ = try value.textIfPresent("number") }),
            ("an object whose text is no whole number", { _ = try value.integer("text") }),
            ("an object whose text is neither true nor false", { _ = try value.flagIfPresent("text") }),
            ("an object without text", { _ = try JSONValue.null.text("text") }),
        ]
        for (reason, read) in refused { #expect(throws: NotJSON(reason)) { try read() } }
    }
}

extension JSONValue: Encodable {
    /// Writes the value by the means of Foundation.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        switch self {
        case .null: try container.encodeNil()
        case .bool(let value): try container.encode(value)
        case .integer(let value): try container.encode(value)
        case .number(let digits): try container.encode(Decimal(string: digits))
        case .string(let value): try container.encode(value)
        case .array(let values): try container.encode(values)
        case .object(let values): try container.encode(values)
        }
    }
}
