import SeededRandom
import Subscriptions

@testable import Tracking

extension CoverageWalk {
    /// What may happen next; the weight says how often.
    private enum Step: String, CaseIterable {
        case newDevice, upload, check, batch, killed, leaseEnds, late, crash, erase, merge, twoAtOnce, allowanceEnds
        case rebuild, refusedFinally, turns

        var weight: Int {
            switch self {
            case .check, .batch: 6
            case .newDevice: 4
            case .upload, .killed, .late, .twoAtOnce: 2
            case .leaseEnds, .crash, .erase, .merge, .allowanceEnds, .rebuild, .refusedFinally, .turns: 1
            }
        }
    }

    private static let wheel = Step.allCases.flatMap { Array(repeating: $0, count: $0.weight) }

    /// Takes one step.
    mutating func step() async throws {
        passTime()
        let step = devices.isEmpty ? .newDevice : Self.wheel.randomElement(using: &random) ?? .check
        trail.append(step.rawValue)
        switch step {
        case .newDevice: try await addDevice()
        case .upload: try await uploadAgain()
        case .check: try await checkOne()
        case .batch: try await checkBatch()
        case .killed: try await leaveLease()
        case .leaseEnds: try await endLeases()
        case .late: try await settleLate()
        case .crash: try await crash()
        case .erase: try await erase()
        case .merge: try await merge()
        case .twoAtOnce: try await settleTwoAtOnce()
        case .allowanceEnds: try await endAllowances(test.ledger)
        case .rebuild: try await rebuild()
        case .refusedFinally: try await refuseFinally()
        case .turns: turn()
        }
    }

    private mutating func worker() -> WorkerID { workers.randomElement(using: &random) ?? test.worker }

    // MARK: Devices

    /// Another device of an account, or the same one restored, sends a receipt that is older, equal, newer or undated.
    private mutating func addDevice() async throws {
        let account = Int.random(in: 0..<accounts.count, using: &random)
        let dated = devices.values.filter { $0.account == account }.compactMap(\.madeAt).sorted()
        let madeAt: Instant? =
            switch Int.random(in: 0..<4, using: &random) {
            case 0: nil
            case 1: dated.randomElement(using: &random) ?? clock
            case 2: (dated.first ?? clock).before(days: .random(in: 0...300, using: &random))
            default: clock
            }
        let word = "receipt \(trail.count)"
        let device = Device(
            word: word, account: account, madeAt: madeAt, isForeign: Int.random(in: 0..<10, using: &random) == 0)
        let id = try await test.upload(word, by: customer, imported: Int.random(in: 0..<6, using: &random) == 0)
        devices[id] = device
        trail[trail.count - 1] +=
            " \(id) of \(account) made \(madeAt?.iso8601 ?? "-")\(device.isForeign ? " foreign" : "")"
        // A device that uploads has Apple asked right away, mostly.
        if Int.random(in: 0..<3, using: &random) > 0 { try await check(id) }
    }

    /// A receipt comes again, perhaps from another customer.
    private mutating func uploadAgain() async throws {
        guard let receipt, let device = devices[receipt] else { return }
        let id = try await test.upload(device.word, by: customer)
        devices[id] = device
        trail[trail.count - 1] += " \(id)"
    }

    /// Apple refuses a receipt from now on, or leaves things out of it.
    private mutating func turn() {
        guard let receipt else { return }
        if Bool.random(using: &random) {
            devices[receipt]?.isRefused = true
        } else if mayOmit(receipt) {
            devices[receipt]?.omits = true
        }
        trail[trail.count - 1] += " \(receipt)"
    }

    // MARK: Checks

    private mutating func checkOne() async throws {
        if let receipt { try await check(receipt) }
    }

    private mutating func check(_ receipt: ReceiptID) async throws {
        let worker = worker()
        guard let claim = try await claim(receipt, by: worker) else { return }
        let finding = answer(of: receipt)
        trail[trail.count - 1] += " \(receipt) \(finding.word)"
        try await settle([settlement(claim, finding)])
    }

    /// Some receipts become due and are asked about in one batch; some answers come late.
    private mutating func checkBatch() async throws {
        let due = devices.keys.sorted().filter { _ in Bool.random(using: &random) }
        try await makeDue(due)
        let claims = try await claimDue(by: worker())
        var batch: [Settlement] = []
        for claim in claims {
            guard Int.random(in: 0..<6, using: &random) > 0 else {
                late.append(claim)
                trail[trail.count - 1] += " \(claim.receiptID) left"
                continue
            }
            let finding = answer(of: claim.receiptID)
            trail[trail.count - 1] += " \(claim.receiptID) \(finding.word)"
            batch.append(settlement(claim, finding))
        }
        try await settle(batch.shuffled(using: &random))
    }

    private func claimDue(by worker: WorkerID) async throws -> [Claim] {
        try await test.ledger.claims.claim(
            for: worker, Lane.allCases.map { Quota(app: test.app, lane: $0, receipts: 10) }, leaseSeconds: 60)
    }

    private func makeDue(_ receipts: [ReceiptID], _ change: String = "") async throws {
        guard !receipts.isEmpty else { return }
        try await test.run(
            """
            UPDATE ledger.poll_schedule
            SET due_at = LEAST(due_at, now()), scheduled_for = LEAST(scheduled_for, now()) \(change)
            WHERE leased_by IS NULL AND receipt_id IN (\(receipts.map(\.description).joined(separator: ", ")))
            """)
    }

    private mutating func leaveLease() async throws {
        let worker = worker()
        guard let receipt, let claim = try await claim(receipt, by: worker) else { return }
        late.append(claim)
        trail[trail.count - 1] += " \(receipt)"
    }

    private func endLeases() async throws {
        try await test.run("UPDATE ledger.poll_schedule SET due_at = now() WHERE leased_by IS NOT NULL")
    }

    /// An answer comes after all, perhaps after its lease was lost; or the receipt is handed back unasked.
    private mutating func settleLate() async throws {
        guard !late.isEmpty else { return }
        let claim = late.remove(at: Int.random(in: 0..<late.count, using: &random))
        guard Int.random(in: 0..<4, using: &random) > 0 else {
            return try await test.ledger.claims.release([claim])
        }
        let finding = answer(of: claim.receiptID)
        trail[trail.count - 1] += " \(claim.receiptID) \(finding.word)"
        try await settle([settlement(claim, finding)])
    }

    /// Workers crash three times over a receipt.
    private mutating func crash() async throws {
        guard let receipt else { return }
        trail[trail.count - 1] += " \(receipt)"
        try await makeDue([receipt], ", crashes = 3")
        late += try await claimDue(by: worker())
    }

    private mutating func settleTwoAtOnce() async throws {
        var answers: [Settlement] = []
        for worker in workers {
            guard let receipt, !answers.contains(where: { $0.claim.receiptID == receipt }),
                let claim = try await claim(receipt, by: worker)
            else { continue }
            let finding = answer(of: receipt)
            trail[trail.count - 1] += " \(receipt) \(finding.word)"
            answers.append(settlement(claim, finding))
        }
        let walk = self
        try await withThrowingTaskGroup(of: Void.self) { group in
            for settlement in answers {
                group.addTask { try await walk.settle([settlement]) }
            }
            try await group.waitForAll()
        }
    }

    // MARK: People and time

    private mutating func erase() async throws {
        let name = customer
        trail[trail.count - 1] += " \(name)"
        do {
            _ = try await test.ledger.customers.erase(
                name, of: test.app.bundleID, deciding: ManualDecision(by: "test", because: "asked for it"))
            hasErased = true
        } catch let error as LedgerError where error.kind == .busy || error.kind == .notFound {
            trail[trail.count - 1] += " not"
        }
        let gone = try await test.rows("SELECT receipt_id FROM ledger.receipt WHERE erased_at IS NOT NULL")
        for id in gone { devices[ReceiptID(Int64(id) ?? 0)] = nil }
    }

    private mutating func merge() async throws {
        let (from, into) = (customer, customer)
        trail[trail.count - 1] += " \(from) into \(into)"
        do {
            _ = try await test.ledger.customers.merge(
                from, into: into, of: test.app.bundleID, deciding: ManualDecision(by: "test", because: "logged in"))
        } catch let error as LedgerError {
            trail[trail.count - 1] += " not (\(error.kind))"
        }
    }

    /// Days pass, and what Apple refuses for ever is refused once more.
    private mutating func refuseFinally() async throws {
        let refused = devices.filter(\.value.isRefused).keys.sorted()
        guard !refused.isEmpty else { return }
        let ids = refused.map(\.description).joined(separator: ", ")
        try await test.run(
            """
            UPDATE ledger.receipt SET rejected_since = now() - interval '73 hours'
            WHERE receipt_id IN (\(ids)) AND rejections > 0
            """)
        let worker = worker()
        for receipt in refused {
            for _ in 0..<2 {
                guard let claim = try await claim(receipt, by: worker) else { break }
                try await settle([settlement(claim, rejected())])
            }
        }
        trail[trail.count - 1] += " \(ids)"
    }

    private func rebuild() async throws {
        var place: RebuildPlace? = .start
        while let here = place {
            let batch = try await test.ledger.operations.rebuild(
                from: here, RebuildScope(), correcting: true, reading: library.reading)
            if !hasErased, !batch.differences.isEmpty {
                throw Broken(description: "\(self): a rebuild differs: \(batch.differences)")
            }
            place = batch.next
        }
    }
}

extension Finding {
    /// What a trail calls it.
    fileprivate var word: String {
        switch self {
        case .verified(let evidence): "verified \(evidence.asOf.iso8601) \(evidence.transactions.count)"
        case .rejected(let refusal): "\(refusal.kind)"
        case .indeterminate: "outage"
        }
    }
}
