import Foundation
import Testing

@testable import Server

@Suite("JSON is written as JSONEncoder writes it")
struct JSONTextTests {
    private func encoded(_ value: JSONValue) throws -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
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
        }
    }
}
