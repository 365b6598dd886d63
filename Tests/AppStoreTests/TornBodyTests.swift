import JSON
import SeededRandom
import Testing

@testable import AppStore

@Suite("A truncated answer is recognised and crashes nothing") struct TornBodyTests {
    @Test("Every truncation is said to be one")
    func everyTruncationIsStatedToBeOne() {
        let body = Array(ResponseTests.unified.utf8)
        for length in 0..<body.count {
            do throws(NotJSON) {
                _ = try VerifyReceiptResponse(parsing: Array(body[..<length]))
                Issue.record("read \(length) of \(body.count) bytes as a whole answer")
            } catch {
                #expect(length == 0 ? error.reason == "an empty body" : error.reason.contains("ends in the middle"))
            }
        }
    }

    @Test("No damaged byte breaks it")
    func noDamagedByteBreaksIt() throws {
        let seed: UInt64 = 4711
        print("seed \(seed)")
        var generator = Seeded(seed: seed)
        let body = Array(ResponseTests.unified.utf8)
        var read = 0
        for _ in 0..<4000 {
            var damaged = body
            for _ in 0...Int.random(in: 0...3, using: &generator) {
                damaged[Int.random(in: 0..<body.count, using: &generator)] = UInt8.random(
                    in: 0...255, using: &generator)
            }
            guard let response = try? VerifyReceiptResponse(parsing: damaged) else { continue }
            read += 1
            #expect(response.latestReceiptInfo.count <= 1 && response.inApp.count <= 1)
        }
        // Most damage lands inside strings, where it must not cost the answer.
        #expect(read > 1500)
    }

    @Test("An answer of many odd rows remembers only some")
    func anAnswerOfManyOddRowsRemembersOnlySome() throws {
        let rows = Array(repeating: "{}", count: 5000).joined(separator: ",")
        #expect(try parse("{\"latest_receipt_info\":[\(rows)]}").unreadableRows.count == RowReader.unreadableMax)
    }
}
