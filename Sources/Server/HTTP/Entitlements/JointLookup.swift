import Ledger
import Synchronization

/// A batcher of lookups. Those that arrive while another one is under way go into one query, which costs the database a
/// small part of as many single queries.
///
/// The first goes at once, so a quiet server adds no delay. Each query begins after its lookups arrived. A server has
/// no more lookups than connections, which bounds the queue.
final class JointLookup<Answer: Sendable>: Sendable {
    /// The most lookups in one query.
    static var questionsMax: Int { 256 }

    /// The outcome of waiting for a turn.
    private enum Turn {
        /// The lookup queries now, together with these.
        case ask([Waiting])
        /// Another lookup's query brought the answer.
        case answered(Answer)
        /// The joint query failed, perhaps because of another customer. The lookup queries alone.
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

    /// Creates a batcher of `ask`, which answers in the order of its customers.
    init(by ask: @escaping @Sendable ([CustomerName]) async throws -> [Answer]) {
        self.ask = ask
    }

    /// The number of lookups that wait for their turn.
    var waiting: Int { line.withLock { $0.waiting.count } }

    /// Returns the answer about a customer. Throws the error of its own query.
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

    /// Lets the lookup that has waited longest query for all that wait, up to `questionsMax`.
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
