import Foundation
import Testing

@testable import AppStore
@testable import JSON

/// Damaged answers and receipts by the thousand, or by the million where `PERENNIAL_FUZZ_INPUTS` says so; see
/// docs/fuzzing.md. A crash is the failure that is looked for; what is read must also keep its bounds.
@Suite("Damaged answers and receipts crash no reader", .serialized) struct FuzzTests {
    /// How many inputs, by which seed, from which number on.
    struct Run {
        private static let environment = ProcessInfo.processInfo.environment
        let inputs =
            environment["PERENNIAL_FUZZ_INPUTS"].flatMap { Int($0) }
            ?? (environment["PERENNIAL_TEST_ALL"] == nil ? 4000 : 200_000)
        let seed = environment["PERENNIAL_FUZZ_SEED"].flatMap { UInt64($0) } ?? 2026
        let first = environment["PERENNIAL_FUZZ_FIRST"].flatMap { Int($0) } ?? 0
    }

    private static let inputs = Run().inputs
    private static let seed = Run().seed
    private static let first = Run().first
    /// Of so many inputs one goes to a second, much slower parser as well.
    private static let secondOpinionEvery = 32

    /// Runs `check` over all inputs and says how it went; `check` tells whether the input could be read.
    private func run(_ name: String, samples: [[UInt8]], tokens: [[UInt8]], check: (Int, [UInt8]) -> Bool) {
        let mutator = Mutator(samples: samples, tokens: tokens, seed: Self.seed)
        print("\(name): seed \(Self.seed), \(samples.count) samples")
        var read = 0
        var bytes = 0
        let elapsed = ContinuousClock().measure {
            for number in Self.first..<(Self.first + Self.inputs) {
                let input = mutator.input(number)
                bytes += input.count
                if check(number, input) { read += 1 }
                if number % 1_000_000 == 999_999 { print("\(name): \(number + 1) inputs") }
            }
        }
        print("\(name): \(Self.inputs) inputs, \(bytes / 1_000_000) MB, \(read) readable, \(elapsed), \(Self.memory)")
        #expect(read > 0 && read < Self.inputs)
    }

    /// The most memory this process ever held, where the system tells.
    static var memory: String {
        let status = (try? String(contentsOfFile: "/proc/self/status", encoding: .utf8)) ?? ""
        return status.split(separator: "\n").first { $0.hasPrefix("VmHWM") }.map(String.init) ?? "memory unknown"
    }

    @Test("No damaged answer breaks the decoder")
    func noDamagedAnswerBreaksTheDecoder() {
        let own = [ResponseTests.unified, #"{"status":21002}"#, #"{"status":0,"exception":"\u00e9\ud83d\ude00"}"#]
        let captured = Fixtures.files(ending: [".json"]).map(\.body).filter { $0.count < 6000 }
        let tokens = [
            "{", "}", "[", "]", "\"", "\\", ":", ",", "null", "true", "0", "-", "1e9", ".5", #"\u00"#, #"\ud83d"#,
            #"\q"#,
            "\"status\":", "\"in_app\":[", "\"receipt\":{", "\"expires_date_ms\":\"", "99999999999999999999",
            String(repeating: "[", count: 70), "\u{0}", " ", "\u{B}",
        ]
        run("answers", samples: own.map { Array($0.utf8) } + captured, tokens: tokens.map { Array($0.utf8) }) {
            number, input in
            let response = try? VerifyReceiptResponse(parsing: input)
            if let response {
                let rows = response.inApp.count + response.latestReceiptInfo.count + response.renewals.count
                if rows > input.count / 20 || response.unreadableRows.count > RowReader.unreadableMax {
                    Issue.record("input \(number) of seed \(Self.seed) has \(rows) rows")
                }
            } else if number % Self.secondOpinionEvery == 0, isObjectToFoundation(input),
                depth(of: input) < JSONDocument.depthMax
            {
                Issue.record("input \(number) of seed \(Self.seed) is JSON, but not to us")
            }
            return response != nil
        }
    }

    /// Whether Foundation takes it for a JSON object. It guesses encodings we do not, all of them with zero bytes, and
    /// lets a comma stand before a closing bracket, which is no JSON.
    private func isObjectToFoundation(_ input: [UInt8]) -> Bool {
        guard !input.contains(0) else { return false }
        let marks = input.filter { !$0.isJSONSpace }
        let hasStrayComma = zip(marks, marks.dropFirst()).contains { mark, next in
            mark == UInt8(ascii: ",") && (next == UInt8(ascii: "}") || next == UInt8(ascii: "]"))
        }
        return !hasStrayComma && (try? JSONSerialization.jsonObject(with: Data(input)) as? [String: Any]) != nil
    }

    /// More than the depth of the JSON, never less.
    private func depth(of input: [UInt8]) -> Int { input.count { $0 == UInt8(ascii: "{") || $0 == UInt8(ascii: "[") } }

    @Test("No damaged receipt breaks the reader")
    func noDamagedReceiptBreaksTheReader() {
        let wrapped = LocalReceiptTests.wrapped.map(\.1)
        let own = wrapped + [BERWriter.ordinary, LegacyReceiptTests.list(LegacyReceiptTests.info)]
        let captured = LocalReceiptFixtureTests.receipts.map(\.bytes).filter { $0.count < 8000 }
        let tokens: [[UInt8]] = [
            [0x30, 0x80], [0x24, 0x80], [0xA0, 0x80], [0x00, 0x00], [0x31, 0x82, 0xFF, 0xFF],
            [0x84, 0x7F, 0xFF, 0xFF, 0xFF],
            [0x87, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF], [0x02, 0x01, 0x11], [0x02, 0x02, 0x06, 0xA7],
            [0x04, 0x00],
            [0x1F, 0xFF], [0x80], [0xFF], Array("\"purchase-info\" = \"".utf8), Array("\";".utf8), [0x5C],
            Array(repeatElement([0x30, 0x80], count: 20).joined()), BERWriter.purchase("11", original: "10"),
        ]
        run("receipts", samples: own + captured, tokens: tokens) { number, input in
            guard let receipt = LocalReading(of: input).receipt else {
                if number % Self.secondOpinionEvery == 0, let second = try? SecondOpinion(input), !second.isEmpty {
                    Issue.record("input \(number) of seed \(Self.seed) is a receipt, but not to us")
                }
                return false
            }
            let ids = receipt.transactionIDs + receipt.originalTransactionIDs
            if receipt.purchases.count > input.count / 8 || ids.contains(where: \.isEmpty) {
                Issue.record("input \(number) of seed \(Self.seed) has impossible purchases")
            }
            return true
        }
    }
}
