import Foundation
import Postgres
import SQL
package import Subscriptions

/// The queue in which a receipt waits for its check, in order of urgency. The raw values are those of `ledger.lane`.
package enum Lane: String, Sendable, CaseIterable, CustomStringConvertible {
    /// Never verified.
    case new
    /// A customer's access may change at or soon after the answer.
    case expiring
    /// Apple tries to charge the customer, or a notification states something.
    case retry
    /// Never verified, but imported: no customer is waiting.
    case imported = "import"
    /// Everything else: refunds, changes of mind, long-expired customers.
    case sweep
    /// Workers crashed while checking it: it is checked alone, so that no other receipt suffers.
    case quarantine

    package var description: String { rawValue }
}

/// A leased job: until the lease ends, only the worker that holds it asks Apple about this receipt.
package struct Claim: Sendable {
    package let receiptID: ReceiptID
    package let app: App
    package let receipt: [UInt8]
    /// Whether these bytes are the newest receipt that Apple returned, not the uploaded one.
    package let asksLatest: Bool
    /// The environment in which this receipt was verified before, if any.
    package let environment: StoreEnvironment?
    package let form: SubmittedForm
    package let isVouched: Bool
    /// A transaction id by which the Server API can be asked, if one is stored.
    package let transactionID: TransactionID?
    /// Where the Server API's history is read on; nil: from its start.
    package let historyRevision: String?
    package let lane: Lane
    /// The number of claims since the last answer that counts, including this one.
    package let attempts: Int
    /// The time of the claim, by the database's clock.
    package let claimedAt: Instant
    /// The time of the claim, by this process's monotonic clock.
    package let heldSince: ContinuousClock.Instant
    package let scheduledFor: Instant
    /// Its due time in its lane when it was claimed.
    package let dueAt: Instant
    package internal(set) var worker: WorkerID
    /// The token that distinguishes this lease from earlier and later ones.
    package let leaseToken: Int64
    /// The fingerprint of the last verified answer; nil when the next answer must be read in full.
    package private(set) var fingerprint: Fingerprint?
    /// The fingerprint of what that answer means; nil without a fingerprint.
    let meaning: Fingerprint?
    /// What the receipt polls, as of that answer; nil without a fingerprint.
    let polled: PolledContents?

    /// The database's clock: its clock at the claim and the time that passed here since.
    package var databaseNow: Instant {
        claimedAt + Delay(milliseconds: Int64((ContinuousClock.now - heldSince) / .milliseconds(1)))
    }

    /// The seed of the receipt's own jitter.
    var seed: UInt64 { UInt64(bitPattern: receiptID.number) }

    /// The same claim, whose answer is read in full even where it equals the last one.
    package var inFull: Claim {
        var claim = self
        claim.fingerprint = nil
        return claim
    }
}

/// What a device sent; the raw values are the words of `ledger.receipt_form`.
package enum SubmittedForm: String, Sendable, CaseIterable {
    case receipt
    /// A signed transaction of StoreKit 2.
    case signedTransaction = "signed_transaction"
    /// The id of a transaction alone.
    case transactionID = "transaction_id"
}

/// The key of a running worker.
package struct WorkerID: Hashable, Sendable {
    package let number: Int32
}

/// The number of receipts of one app and lane to claim.
package struct Quota: Sendable, Hashable {
    package let app: App
    package let lane: Lane
    package let receipts: Int
    /// The earliest due time to claim; nil for no limit.
    package let dueFrom: Instant?

    package init(app: App, lane: Lane, receipts: Int, dueFrom: Instant? = nil) {
        (self.app, self.lane, self.receipts, self.dueFrom) = (app, lane, receipts, dueFrom)
    }
}

/// The number of due receipts of one app and lane.
package struct DueReceipts: Sendable, Hashable {
    package let appID: Int32
    package let lane: Lane
    /// The number of receipts, counted up to the requested limit.
    package let receipts: Int
}

/// The due time from which to look for due receipts of one app and lane.
package struct DueMark: Sendable, Hashable {
    package let appID: Int32
    package let lane: Lane
    /// Receipts due before this time are already claimed.
    package let dueAt: Instant
}

extension LedgerClaims {
    /// The time after which a worker without heartbeat is forgotten, in days; and the most workers forgotten at once.
    static let workerDays: Int32 = 30
    static let workersForgottenMax: Int32 = 1_000

    /// Registers a worker process with its lease and speed-up; throws `mismatch` where that fails. One with `singly`
    /// checks single receipts on request and does not count as a worker.
    package func startWorker(
        host: String, process: Int32, singly: Bool = false, leaseSeconds: Double? = nil
    ) async throws -> WorkerID {
        let rows = try await write(
            Queries.startWorker, .text(host), .int4(process), .bool(singly), .float8(leaseSeconds),
            .int4(leaseSeconds.map { _ in Int32(clamping: ledger.speedup) }))
        guard let row = rows.first else { throw LedgerError(.mismatch, "The worker was not registered.") }
        return WorkerID(number: try row.int4("worker_id"))
    }

    /// Records a heartbeat, or that a worker stopped. Throws `mismatch` when only later programs fit the schema now.
    package func heartbeat(_ worker: WorkerID, stopped: Bool = false) async throws {
        let rows = try await write(Queries.storeHeartbeat, .int4(worker.number), .bool(stopped))
        guard !stopped, let row = rows.first else { return }
        try LedgerOperations.refuseEarlierPrograms(than: row.int4IfPresent("program_min") ?? .max)
    }

    /// The most leases of processes that are gone that one call ends, of each app and lane.
    static let leasesFreedMax: Int32 = 1_000

    /// Makes due what processes had leased that stopped, or that sent no heartbeat for 20 seconds; returns how many.
    @discardableResult
    package func freeLeases() async throws -> Int {
        let rows = try await write(Queries.freeLeases, .int4(Self.leasesFreedMax))
        return Int(try rows.first?.int8("freed") ?? 0)
    }

    /// Forgets workers without a recent heartbeat, a bounded number at a time.
    package func forgetWorkers() async throws {
        _ = try await write(Queries.forgetWorkers, .int4(Self.workerDays), .int4(Self.workersForgottenMax))
    }

    /// Counts the due receipts of each app and lane from `marks` on, up to `limit`; what is paused is left out.
    package func due(limit: Int, by dueBy: Instant? = nil, from marks: [DueMark] = []) async throws -> [DueReceipts] {
        try await scan(limit: limit, by: dueBy, from: marks).due
    }

    /// Returns the same counts, with the seconds that the search kept the database busy, by its own clock.
    func scan(
        limit: Int, by dueBy: Instant?, from marks: [DueMark]
    ) async throws -> (due: [DueReceipts], busySeconds: Double) {
        let rows = try await query(
            Queries.countDue, .int4(Int32(clamping: limit)), .instant(dueBy), .int4s(marks.map(\.appID)),
            .texts(marks.map(\.lane.rawValue)), .instants(marks.map(\.dueAt)))
        let due = try rows.compactMap { row -> DueReceipts? in
            guard let app = try row.int4IfPresent("app_id") else { return nil }
            return DueReceipts(appID: app, lane: try row.word("lane"), receipts: Int(try row.int8("receipts")))
        }
        return (due, try rows.last?.float8("busy_seconds") ?? 0)
    }

    /// Returns how many receipts that were due by `instant` are still to be checked, and one sentence for each app.
    package func overdue(by instant: Instant, leaseSeconds: Double) async throws -> (receipts: Int, why: [String]) {
        let rows = try await query(Queries.overdue, .instant(instant), .float8(leaseSeconds))
        let sentences = try rows.map { row in
            let (bundle, count) = (try row.text("bundle_id"), try row.int8("receipts"))
            let leased = try row.int8("leased")
            let why =
                try row.textIfPresent("paused_because")
                ?? (leased > 0 ? "\(leased) held by another worker" : "the budget of calls or the time ran out")
            return "\(bundle): \(count) left: \(why)"
        }
        return (try rows.reduce(0) { $0 + Int(try $1.int8("receipts")) }, sentences)
    }

    /// Leases due receipts within the quotas; receipts of a crashed worker are due again when its lease ends. With
    /// `dueBy`, only receipts due by then are claimed. `now` replaces the database's clock in tests only.
    package func claim(
        for worker: WorkerID, _ quotas: [Quota], leaseSeconds: Double, dueBy: Instant? = nil, now: Instant? = nil
    ) async throws -> [Claim] {
        let apps = Dictionary(quotas.map { ($0.app.id, $0.app) }) { first, _ in first }
        let rows = try await ledger.changingPollers { transaction in
            let rows = try transaction.query(
                Queries.claim, .int4(worker.number), .float8(leaseSeconds), .int4s(quotas.map(\.app.id)),
                .texts(quotas.map(\.lane.rawValue)), .int4s(quotas.map { Int32(clamping: $0.receipts) }), .instant(now),
                .instant(dueBy), .instants(quotas.map(\.dueFrom)), .texts(quotas.map(\.app.onlyEnvironment?.rawValue)))
            let quarantined = try rows.filter { try $0.bool("quarantined") }
            try ledger.handOver(from: quarantined.map { ReceiptID(try $0.int8("receipt_id")) }, in: transaction)
            return rows
        }
        return try rows.compactMap { row in
            guard let app = apps[try row.int4("app_id")], try row.bool("quarantined") == false else { return nil }
            return try Claim(row: row, app: app, worker: worker)
        }
    }

    /// Leases one receipt immediately, due or not, whose app may be known already. Throws `busy` while another process
    /// checks it, `notFound` when the receipt or its app does not exist.
    package func claim(
        _ receipt: ReceiptID, of known: App? = nil, for worker: WorkerID, leaseSeconds: Double
    ) async throws -> Claim {
        let rows = try await write(Queries.claimOne, .int4(worker.number), .float8(leaseSeconds), .int8(receipt.number))
        guard let row = rows.first else {
            let key: [Parameter] = [.text(nil), .text(nil), .int8(receipt.number), .int4(1)]
            throw try await query(Queries.findReceipts, key).isEmpty
                ? LedgerError(.notFound, "There is no receipt \(receipt); see `perennial receipt list`.")
                : LedgerError(.busy, "Receipt \(receipt) is being checked by another process; try again in a minute.")
        }
        let appID = try row.int4("app_id")
        let app = try await known?.id == appID ? known : ledger.apps.all().first { $0.id == appID }
        guard let app else { throw LedgerError(.notFound, "The app of receipt \(receipt) is gone.") }
        return try Claim(row: row, app: app, worker: worker)
    }

    /// Hands claimed receipts back unchecked. Earlier attempts of dead workers count, so another receipt may take over.
    package func release(_ claims: [Claim]) async throws {
        guard let worker = claims.first?.worker else { return }
        try await ledger.changingPollers { transaction in
            let rows = try transaction.query(
                Queries.release, .int4(worker.number), .int8s(claims.map(\.receiptID.number)),
                .int8s(claims.map(\.leaseToken)), .int4(Int32(SettlementRun.fruitlessAttemptsMax)))
            let fruitless = try rows.compactMap { try $0.int8IfPresent("fruitless") }
            try ledger.handOver(from: fruitless.map { ReceiptID($0) }, in: transaction)
        }
    }
}

extension Claim {
    init(row: Row, app: App, worker: WorkerID) throws {
        self.init(
            receiptID: ReceiptID(try row.int8("receipt_id")), app: app, receipt: try row.bytea("data"),
            asksLatest: try row.bool("asks_latest"), environment: try row.wordIfPresent("environment"),
            form: try row.word("form"), isVouched: try row.bool("vouched"),
            transactionID: try row.idIfPresent("transaction_id"),
            historyRevision: try row.textIfPresent("history_revision"),
            lane: try row.word("lane"), attempts: Int(try row.int2("attempts")),
            claimedAt: try row.instant("claimed_at"), heldSince: .now, scheduledFor: try row.instant("scheduled_for"),
            dueAt: try row.instant("due_at"), worker: worker, leaseToken: try row.int8("lease_token"),
            fingerprint: try row.byteaIfPresent("fingerprint").map(Fingerprint.init(stored:)),
            meaning: try row.byteaIfPresent("meaning").map(Fingerprint.init(stored:)),
            polled: try row.textIfPresent("polled").flatMap(PolledContents.init(text:)))
    }
}

/// The registration under which a process checks single receipts, made when it is first needed.
actor CheckerIdentity {
    /// The registration; nil before the first check.
    private(set) var known: WorkerID?
    /// Whether this process sends heartbeats; one-off commands do not.
    private var sendsHeartbeats = false

    func beginHeartbeats() { sendsHeartbeats = true }

    func worker(of tracker: Tracker) async throws -> WorkerID {
        if let known { return known }
        let worker = try await tracker.startWorker(singly: true)
        known = worker
        // Without one, a process that is killed within seconds would not count as gone.
        if sendsHeartbeats { try await tracker.ledger.claims.heartbeat(worker) }
        return worker
    }
}

extension LedgerClaims {
    /// Returns the seconds for which a process without a sign of life, or a secret that Apple refuses, keeps a receipt
    /// from being asked about; nil for none. With `backingOff` its own back-off counts too, an hour of it at most.
    package func secondsHeld(_ receipt: ReceiptID, backingOff: Bool = false) async throws -> Int? {
        try await query(Queries.readLease, .int8(receipt.number), .bool(backingOff)).first.map {
            Int(try $0.int8("seconds"))
        }
    }
}

extension Tracker {
    /// Registers this process in the ledger, with its lease and speed-up.
    func startWorker(singly: Bool = false) async throws -> WorkerID {
        let process = ProcessInfo.processInfo
        return try await ledger.claims.startWorker(
            host: process.hostName, process: process.processIdentifier, singly: singly,
            leaseSeconds: options.leaseSeconds)
    }
}
