import Logging
import Subscriptions
import Testing

@testable import Tracking

@Suite("A failure has one line when it begins and one when it is over")
struct ConditionLogTests {
    private let start = ContinuousClock.now

    private func at(_ seconds: Double) -> ContinuousClock.Instant { start + .seconds(seconds) }

    @Test("However often it is seen, it has one line, with the first reason")
    func began() {
        var book = ConditionLog()
        let lines = (0..<1_000).compactMap { book.raise(.database, by: "reason \($0)", at: at(Double($0))) }
        #expect(lines == [.began(.database, reason: "reason 0")])
        #expect(book.stands(.database) && !book.stands(.standby(.away)))
        #expect(book.clear(.database, at: at(2_000)) == .ended(.database, after: .seconds(2_000)))
        #expect(book.isEmpty)
    }

    @Test("That all is well is no news while nothing was the matter")
    func alwaysWell() {
        var book = ConditionLog()
        #expect(book.clear(.database, at: start) == nil)
        #expect(book.endings(at: at(100)) == [])
        #expect(book.isEmpty)
    }

    @Test(
        "What comes and goes is one failure until it has been well for a minute; it lasted until then",
        arguments: [Condition.pause("com.example.app"), .standby(.behind)])
    func flapping(condition: Condition) {
        var book = ConditionLog()
        var lines: [ConditionLine?] = []
        for round in 0..<10 {
            let begin = Double(round) * 50
            lines.append(book.raise(condition, by: "too many calls", at: at(begin)))
            lines.append(book.clear(condition, at: at(begin + 5)))
            lines.append(contentsOf: book.endings(at: at(begin + 40)).map(Optional.some))
        }
        #expect(lines.compactMap(\.self) == [.began(condition, reason: "too many calls")])
        #expect(book.endings(at: at(514.9)) == [])
        #expect(book.clear(condition, at: at(514.9)) == nil)
        #expect(book.endings(at: at(515)) == [.ended(condition, after: .seconds(455))])
        #expect(book.endings(at: at(1_000)) == [])
    }

    @Test("A failure that is not seen again is not over by that")
    func unseen() {
        var book = ConditionLog()
        _ = book.raise(.appStore, by: "no answer", at: start)
        #expect(book.endings(at: at(100_000)) == [])
        #expect(book.stands(.appStore))
    }

    @Test("Troubles of one kind begin and end for each app by itself")
    func several() {
        let (one, other) = (
            Condition.wrongSecret("com.example.one", nil), Condition.wrongSecret("com.example.other", nil)
        )
        var book = ConditionLog()
        #expect(book.raise(one, by: "21004", at: start) != nil)
        #expect(book.raise(other, by: "21004", at: at(1)) != nil)
        #expect(book.clear(one, at: at(9)) == .ended(one, after: .seconds(9)))
        #expect(book.raise(other, by: "21004", at: at(10)) == nil)
        #expect(book.raise(one, by: "again", at: at(11)) == .began(one, reason: "again"))
    }

    @Test("No more problems are remembered than the limit says; what is left out has no end either")
    func limit() {
        var book = ConditionLog()
        let conditions = (0...ConditionLog.conditionsMax).map { Condition.work("do \($0)") }
        let reported = conditions.compactMap { book.raise($0, by: "r", at: start) }
        #expect(reported.count == ConditionLog.conditionsMax)
        #expect(book.clear(conditions[ConditionLog.conditionsMax], at: at(1)) == nil)
    }

    @Test("A line says what to do, names the app, and how long it lasted")
    func words() {
        let secret = Condition.wrongSecret("com.example.app", .production)
        let began = ConditionLine.began(secret, reason: "receipt 17")
        #expect(began.level == .error)
        #expect(
            began.message.contains("`perennial app rotate-secret com.example.app --shared-secret-file - < FILE`"),
            "\(began.message)")
        #expect(began.metadata == ["condition": "wrong_secret", "app": "com.example.app", "reason": "receipt 17"])
        let ended = ConditionLine.ended(secret, after: .seconds(61.9))
        #expect(ended.level == .info && ended.message == "Apple accepts the shared secret again in Production")
        #expect(ended.metadata == ["condition": "wrong_secret", "app": "com.example.app", "seconds": "61"])
    }
}
