import Ledger
import Synchronization

/// Lookups that come while another one is under way are asked together: that costs the database a small part of what they
/// cost one by one.
///
/// The first goes at once, so a quiet server adds no delay. What is asked is asked after the question was there. A server
/// has no more questions than connections, which bounds the line.
final class JointLookup<Answer: Sendable>: Sendable {
    /// Questions that go together, at most.
    static var questionsMax: Int { 256 }

    /// What becomes of a question.
    private enum Turn {
        /// It goes now, and these with it.
        case ask([Waiting])
        /// It went with another one.
        case answered(Answer)
        /// What it went with failed, which may be no fault of its own: it goes by itself.
        case alone
    }

    private struct Waiting {
        let customer: CustomerName
        let turn: CheckedContinuation<Turn, Never>
    }

    private struct Line {
        var isAsking = false
        var waiting: [Waiting] = []
    }

    private let ask: @Sendable ([CustomerName]) async throws -> [Answer]
    private let line = Mutex(Line())

    /// Lookups by `ask`, which answers in the order of the question.
    init(by ask: @escaping @Sendable ([CustomerName]) async throws -> [Answer]) {
        self.ask = ask
    }

    /// How many wait for their turn.
    var waiting: Int { line.withLock { $0.waiting.count } }

    /// The answer about a customer.
    func answer(about customer: CustomerName) async throws -> Answer {
        switch await turn(of: customer) {
        case .ask(let others): return try await answer(customer, and: others)
        case .answered(let answer): return answer
        case .alone: return try await answer(customer)
        }
    }

    private func turn(of customer: CustomerName) async -> Turn {
        await withCheckedContinuation { turn in
            let goesNow = line.withLock { line in
                guard line.isAsking else {
                    line.isAsking = true
                    return true
                }
                line.waiting.append(Waiting(customer: customer, turn: turn))
                return false
            }
            if goesNow { turn.resume(returning: .ask([])) }
        }
    }

    private func answer(_ customer: CustomerName, and others: [Waiting]) async throws -> Answer {
        do {
            let answers = try await ask([customer] + others.map(\.customer))
            sendNext()
            for (other, answer) in zip(others, answers.dropFirst()) { other.turn.resume(returning: .answered(answer)) }
            return answers[0]
        } catch {
            sendNext()
            guard !others.isEmpty else { throw error }
            for other in others { other.turn.resume(returning: .alone) }
            return try await answer(customer)
        }
    }

    private func answer(_ customer: CustomerName) async throws -> Answer { try await ask([customer])[0] }

    /// The one who has waited longest asks for all who wait.
    private func sendNext() {
        let next = line.withLock { line in
            let next = line.waiting.prefix(Self.questionsMax)
            line.waiting.removeFirst(next.count)
            line.isAsking = !next.isEmpty
            return next
        }
        next.first?.turn.resume(returning: .ask(Array(next.dropFirst())))
    }
}
