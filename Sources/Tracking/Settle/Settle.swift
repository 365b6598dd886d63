import Postgres
import SQL
import Subscriptions

extension LedgerSettlements {
    /// Settles the answers of one worker in one transaction. An answer that equals the last one about its receipt, in
    /// its bytes or in what it says, only moves clocks, at a fraction of the cost; one with equal bytes is not even read.
    /// `chains` are the numbers of the headers of signed texts.
    func settle(_ answers: [Checked], chains: [String: Int32]) async throws -> SettledBatch {
        var equal: [EqualAnswer] = []
        var read: [Int64: Settlement] = [:]
        for answer in answers {
            if let repeated = EqualAnswer(answer) {
                equal.append(repeated)
            } else {
                let settlement = Settlement(reading: answer, chains: chains)
                read[answer.claim.leaseToken] = settlement
                if let repeated = EqualAnswer(settlement) { equal.append(repeated) }
            }
        }
        let confirmed = try await confirm(equal)
        let news = answers.filter { !confirmed.contains($0.claim.receiptID) }
        var batch = try await settleInFull(
            news.map { read[$0.claim.leaseToken] ?? Settlement(reading: $0, chains: chains) })
        batch.confirmed = confirmed
        return batch
    }

    /// Settles answers that the caller has read; equal ones only move clocks here too.
    package func settle(_ read: [Settlement]) async throws -> SettledBatch {
        let confirmed = try await confirm(read.compactMap(EqualAnswer.init))
        var batch = try await settleInFull(read.filter { !confirmed.contains($0.claim.receiptID) })
        batch.confirmed = confirmed
        return batch
    }

    /// Settles answers in full, equal or not. A batch that collides with another one is tried again from memory, then in
    /// halves, so that one bad receipt never fails the others. After a commit whose outcome is unknown the same batch is sent
    /// again: a no-op when that commit succeeded, because equal evidence changes nothing and the lease is gone.
    func settleInFull(_ batch: [Settlement]) async throws -> SettledBatch {
        guard !batch.isEmpty else { return SettledBatch() }
        let readNotification = ledger.readNotification
        do {
            let settled = try await repeating(while: mayRepeatSettlement) {
                try await database.transaction { transaction in
                    var run = try SettlementRun(batch, reading: readNotification, in: transaction)
                    run.fold()
                    return try run.write(in: transaction)
                }
            }
            return SettledBatch(settled: settled)
        } catch  where batch.count > 1 && !(error as? DatabaseError).isUnreachable {
            return try await settleInHalves(batch)
        } catch is PollersChanged {
            throw PollersChanged.lasting
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

private let settlementAttemptsMax = 3

/// Attempts at one settlement while other transactions change the pollers of its subscriptions.
private let pollersChangedMax = 10

/// Whether the same settlement, sent again, can succeed without harm.
private func mayRepeatSettlement(after error: any Error, tries: Int) -> Bool {
    if error is PollersChanged { return tries < pollersChangedMax }
    return (error as? DatabaseError)?.isWorthRepeating == true && tries < settlementAttemptsMax
}

extension DatabaseError {
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
