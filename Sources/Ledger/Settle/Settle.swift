import Postgres
import SQL
import Subscriptions

extension LedgerSettlements {
    /// Settles the answers of one worker: facts, timelines, events, observations and schedules change together.
    ///
    /// An answer that equals the last one about its receipt, in its bytes or in what it says, only moves clocks, at a
    /// fraction of the cost. The others are settled in one transaction.
    package func settle(_ answers: [PendingAnswer]) async throws -> SettledBatch {
        var equal: [EqualAnswer] = []
        var interpreted: [Int64: Settlement] = [:]
        for answer in answers {
            if let repeated = EqualAnswer(answer) {
                equal.append(repeated)
            } else {
                let settlement = Settlement(interpreting: answer)
                interpreted[answer.claim.leaseToken] = settlement
                if let repeated = EqualAnswer(settlement) { equal.append(repeated) }
            }
        }
        let confirmed = try await confirm(equal)
        let news = answers.filter { !confirmed.contains($0.claim.receiptID) }
        var batch = try await settleInFull(
            news.map { interpreted[$0.claim.leaseToken] ?? Settlement(interpreting: $0) })
        batch.confirmed = confirmed
        return batch
    }

    /// Settles answers that were interpreted.
    ///
    /// A batch that collides with another one is tried again from memory, then in halves, so that one bad receipt never
    /// fails the others. After a commit whose outcome is unknown the same batch is sent again. That is a no-op when the
    /// first commit succeeded: equal evidence changes nothing and the lease is gone.
    func settleInFull(_ batch: [Settlement]) async throws -> SettledBatch {
        guard !batch.isEmpty else { return SettledBatch() }
        let readNotification = ledger.readNotification
        var attempt = 0
        while true {
            attempt += 1
            do {
                return SettledBatch(
                    settled: try await database.transaction { transaction in
                        var run = try SettlementRun(batch, reading: readNotification, in: transaction)
                        run.fold()
                        return try run.write(in: transaction)
                    })
            } catch is PollersChanged where attempt < pollersChangedMax {
                continue
            } catch let error as DatabaseError where error.isWorthRepeating && attempt < settlementAttemptsMax {
                continue
            } catch  where batch.count > 1 && !(error as? DatabaseError).isUnreachable {
                return try await settleInHalves(batch)
            }
        }
    }

    private func settleInHalves(_ batch: [Settlement]) async throws -> SettledBatch {
        let middle = batch.count / 2
        var both = SettledBatch()
        for half in [batch[..<middle], batch[middle...]] {
            do {
                let settled = try await settleInFull(Array(half))
                both.settled += settled.settled
                both.failures += settled.failures
            } catch {
                both.failures += half.map { SettledBatch.Failure(receiptID: $0.claim.receiptID, reason: "\(error)") }
            }
        }
        return both
    }
}

/// The result of settling a batch.
package struct SettledBatch: Sendable {
    /// A receipt whose answer could not be written; its lease runs out and it is asked about again.
    package struct Failure: Sendable {
        /// The receipt.
        package let receiptID: ReceiptID
        /// One sentence.
        package let reason: String
    }

    /// The receipts whose answers equal the last ones; only their clocks moved.
    package var confirmed: Set<ReceiptID> = []
    /// The committed settlements of the answers that were interpreted.
    package var settled: [Settled] = []
    /// The receipts whose answers could not be written.
    package var failures: [Failure] = []
}

/// Attempts at one settlement before it is halved.
private let settlementAttemptsMax = 3

/// Attempts at one settlement while other transactions change the pollers of its subscriptions.
private let pollersChangedMax = 10

extension DatabaseError {
    /// Whether the database cannot be reached now.
    var isUnreachable: Bool { Optional(self).isUnreachable }

    /// Whether the same transaction, sent again, can succeed without harm.
    fileprivate var isWorthRepeating: Bool {
        switch kind {
        case .commitUnknown, .connectionLost: true
        case .server: isSerializationFailure
        case .cannotConnect, .timedOut, .queueFull, .closed, .cancelled, .decoding: false
        }
    }
}

extension DatabaseError? {
    /// Whether the database itself is unreachable, so that smaller batches would not help.
    fileprivate var isUnreachable: Bool {
        switch self?.kind {
        case .cannotConnect, .connectionLost, .commitUnknown, .closed, .cancelled, .queueFull: true
        case .server, .timedOut, .decoding, nil: false
        }
    }
}
