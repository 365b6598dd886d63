import Postgres
import SeededRandom
import Subscriptions

@testable import Tracking

/// Customers, their devices and two workers beside one ledger, walking at random.
///
/// The App Store's clock starts up to 400 days ago and reaches the database's at the end; the schedule is made due by hand.
struct CoverageWalk: Sendable {
    /// A device's receipt, and what Apple says of it.
    struct Device: Sendable {
        let word: String
        let account: Int
        /// Its `receipt_creation_date`; nil for none.
        let madeAt: Instant?
        /// Of another app: Apple never vouches for it.
        let isForeign: Bool
        /// Whether Apple refuses it from now on.
        var isRefused = false
        /// Whether answers leave the subscription out from now on.
        var omits = false
    }

    /// Apple's clock and ours of the newest answer about a subscription or purchase.
    private struct Clocks {
        let asOf: Instant
        let checkedAt: Instant
    }

    /// What a walk came upon, with all that repeats it.
    struct Broken: Error, CustomStringConvertible {
        let description: String
    }

    let test: TestLedger
    let workers: [WorkerID]
    var random: Seeded
    let accounts: [PretendAccount]
    var devices: [ReceiptID: Device] = [:]
    /// What workers had leased when they were killed or became slow.
    var late: [Claim] = []
    /// The App Store's clock.
    var clock: Instant
    /// Steps so far.
    var trail: [String] = []
    var hasErased = false
    /// The clocks of everything after the last step.
    private var clocks: [String: Clocks] = [:]
    let library = AnswerLibrary()

    private static let customers = ["ann", "bob", "cid", "dee"]

    init(_ test: TestLedger, seed: UInt64) async throws {
        self.test = test
        var random = Seeded(seed: seed)
        workers = [test.worker, try await test.ledger.claims.startWorker(host: "test", process: 2)]
        let days = ([400, 60, 10, 2] as [Double]).randomElement(using: &random) ?? 10
        clock = test.at(-days)
        var accounts: [PretendAccount] = []
        for number in 0..<Int.random(in: 1...3, using: &random) {
            accounts.append(PretendAccount(number, days: days, now: test.now, using: &random))
        }
        (self.accounts, self.random) = (accounts, random)
    }

    var customer: String { mutating get { Self.customers.randomElement(using: &random) ?? "ann" } }

    var receipt: ReceiptID? { mutating get { devices.keys.sorted().randomElement(using: &random) } }

    /// Lets the App Store's clock come nearer to the database's.
    mutating func passTime() {
        guard Int.random(in: 0..<3, using: &random) == 0 else { return }
        let left = test.now - clock
        clock = clock + Delay(milliseconds: Int64(Double(left.milliseconds) * .random(in: 0...0.4, using: &random)))
    }

    // MARK: What Apple says

    /// What Apple says of a receipt at a moment.
    func truth(of device: Device, at moment: Instant) -> Finding {
        if device.isForeign { return rejected(.otherBundle, status: 0) }
        if device.isRefused { return rejected() }
        return .verified(evidence(of: device, at: moment, omits: device.omits))
    }

    func evidence(of device: Device, at moment: Instant, omits: Bool) -> Evidence {
        var evidence = Evidence(
            environment: .production, bundleID: test.app.bundleID, asOf: moment, receiptCreatedAt: device.madeAt)
        accounts[device.account].tell(at: moment, omits: omits, in: &evidence)
        return evidence
    }

    /// The truth, or one of the ways in which Apple fails.
    mutating func answer(of receipt: ReceiptID) -> Finding {
        guard let device = devices[receipt] else { return outage }
        let isLagging = Int.random(in: 0..<6, using: &random) == 0
        let moment = isLagging ? clock.before(days: .random(in: 0...5, using: &random)) : clock
        switch Int.random(in: 0..<20, using: &random) {
        case 0...2: return outage
        case 3: return rejected()
        case 4: return rejected(.wrongSecret, status: 21004)
        case 5 where !device.isForeign && !device.isRefused && mayOmit(receipt):
            return .verified(evidence(of: device, at: moment, omits: true))
        case 6 where !device.isForeign && !device.isRefused && mayOmit(receipt):
            return .verified(
                Evidence(
                    environment: .production, bundleID: test.app.bundleID, asOf: moment,
                    receiptCreatedAt: device.madeAt))
        default: return truth(of: device, at: moment)
        }
    }

    /// Of an account's receipts only the first leaves things out: where all do, none takes over.
    func mayOmit(_ receipt: ReceiptID) -> Bool {
        guard let account = devices[receipt]?.account else { return false }
        return devices.filter { $0.value.account == account && !$0.value.isForeign }.keys.min() == receipt
    }

    // MARK: What a check comes to

    /// A claimed receipt's answer as a settlement.
    func settlement(_ claim: Claim, _ finding: Finding) -> Settlement {
        guard case .verified(let evidence) = finding, let device = devices[claim.receiptID] else {
            return test.settlement(claim, finding)
        }
        return Settlement(
            claim: claim, finding: finding, body: library.keep(evidence),
            latestReceipt: evidence.transactions.isEmpty || device.madeAt == nil
                ? nil : Array("latest of \(device.word)".utf8),
            fingerprint: fingerprint(evidence))
    }

    /// All that an answer says but its clocks.
    private func fingerprint(_ evidence: Evidence) -> Fingerprint {
        var lasting = evidence
        lasting.asOf = .distantPast
        for index in lasting.transactions.indices { lasting.transactions[index].asOf = .distantPast }
        for index in lasting.renewals.indices { lasting.renewals[index].asOf = .distantPast }
        let said = Array("\(lasting)".utf8)
        return Fingerprint(
            of: said, lasting: [0..<said.count], app: test.app, environment: .production)
    }

    /// Settles answers as a worker does: those that are equal to the last ones cheaply, the others in full.
    func settle(_ batch: [Settlement]) async throws {
        let settled = try await test.ledger.settlements.settle(batch)
        if let failure = settled.failures.first { throw Broken(description: "\(self): \(failure.reason)") }
    }

    /// Leases a receipt; nil while another worker has it.
    func claim(_ receipt: ReceiptID, by worker: WorkerID) async throws -> Claim? {
        do {
            return try await test.ledger.claims.claim(receipt, for: worker, leaseSeconds: 60)
        } catch let error as LedgerError where error.kind == .busy || error.kind == .notFound {
            return nil
        }
    }

    /// No clock falls, whichever transaction moved it from a schedule row to what the receipt polls.
    mutating func expectNoClockFell() async throws {
        let rows = try await test.database.query(.test(Self.clocksNow), [])
        for row in rows {
            let now = Clocks(asOf: try row.instant("as_of"), checkedAt: try row.instant("checked_at"))
            let thing = try row.text("thing")
            if let before = clocks[thing], now.asOf < before.asOf || now.checkedAt < before.checkedAt {
                throw Broken(description: "\(self): the clocks of \(thing) fell from \(before) to \(now)")
            }
            clocks[thing] = now
        }
    }

    private static let clocksNow = ["subscription", "purchase"].map { table in
        """
        SELECT '\(table) ' || t.\(table)_id AS thing, ledger.as_of(t, poller) AS as_of,
               ledger.checked_at(t, poller) AS checked_at
        FROM ledger.\(table) t LEFT JOIN ledger.poll_schedule poller ON poller.receipt_id = t.polled_by
        WHERE t.version > 0
        """
    }.joined(separator: " UNION ALL ")

    /// Every promise holds now.
    func check() async throws {
        let violations = try await test.violations()
        guard violations.isEmpty else { throw Broken(description: "\(self): \(violations.map(\.sentence))") }
        try await test.expectSound()
    }
}

extension CoverageWalk: CustomStringConvertible {
    var description: String { "\(random), \(trail.joined(separator: ", "))" }
}

extension CoverageWalk {
    /// Rounds of questions until no receipt takes over any more, at most: each receipt may take over and fail.
    private static let roundsMax = 12

    /// Subscriptions whose truth was compared.
    struct Compared {
        var running = 0
        var ended = 0
    }

    /// Apple answers truthfully until every receipt that is asked was asked; then what is known is the truth.
    mutating func end() async throws -> Compared {
        trail.append("end")
        try await test.run("UPDATE ledger.poll_schedule SET due_at = now() WHERE leased_by IS NOT NULL")
        var before: [String] = []
        for round in 0..<Self.roundsMax {
            let pollers = try await pollers()
            if round > 1, pollers == before { break }
            before = pollers
            try await askEverything()
        }
        try await check()
        var compared = Compared()
        for account in accounts {
            switch try await isKnownToRun(account) {
            case true: compared.running += 1
            case false: compared.ended += 1
            case nil: break
            }
        }
        return compared
    }

    private func pollers() async throws -> [String] {
        try await test.rows(
            """
            SELECT 'subscription', subscription_id, polled_by FROM ledger.subscription
            UNION ALL SELECT 'purchase', purchase_id, polled_by FROM ledger.purchase ORDER BY 1, 2
            """)
    }

    private mutating func askEverything() async throws {
        let asked = try await test.rows(
            """
            SELECT polled_by FROM ledger.subscription WHERE polled_by IS NOT NULL
            UNION SELECT polled_by FROM ledger.purchase WHERE polled_by IS NOT NULL
            UNION SELECT receipt_id FROM ledger.poll_schedule ORDER BY 1
            """)
        for id in asked.compactMap({ Int64($0).map { ReceiptID($0) } }) {
            guard let device = devices[id], let claim = try await claim(id, by: test.worker) else { continue }
            let now = try await test.ledger.now()
            try await settle([settlement(claim, truth(of: device, at: now))])
            try await expectNoClockFell()
        }
    }

    /// Whether an account's subscription runs, which is known; nil where no receipt can tell it.
    private func isKnownToRun(_ account: PretendAccount) async throws -> Bool? {
        let holders = try await test.rows(
            """
            SELECT r.receipt_id FROM ledger.receipt r JOIN ledger.receipt_subscription USING (receipt_id)
            JOIN ledger.subscription s USING (subscription_id)
            WHERE s.original_transaction_id = $1::text AND r.verified_at IS NOT NULL AND r.erased_at IS NULL
            """, [.text(account.id.text)])
        let telling = holders.compactMap { Int64($0).map { ReceiptID($0) } }.filter { id in
            devices[id].map { !$0.isForeign && !$0.isRefused && !$0.omits } ?? false
        }
        guard !telling.isEmpty else { return nil }
        let isRunning = account.isRunning(at: try await test.ledger.now())
        let known = try await test.row(
            """
            SELECT n.entitled,
                   COALESCE(ledger.can_poll(r, p), false) AS can_poll,
                   COALESCE(p.due_at <= ledger.next_check_at(s, p), false) AS in_time
            FROM perennial.subscription_now n
            JOIN ledger.subscription s USING (original_transaction_id)
            LEFT JOIN ledger.receipt r ON r.receipt_id = s.polled_by
            LEFT JOIN ledger.poll_schedule p ON p.receipt_id = s.polled_by
            WHERE s.original_transaction_id = $1::text
            """, [.text(account.id.text)])
        let isRight = isRunning ? known == [true, true, true] : known[0] == false
        guard isRight else {
            throw Broken(
                description:
                    "\(self): \(account.id) runs: \(isRunning); entitled, can be asked, asked in time: \(known)")
        }
        return isRunning
    }
}
