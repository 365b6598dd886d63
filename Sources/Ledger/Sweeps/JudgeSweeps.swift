import Postgres
import SQL
import Subscriptions

/// The limits of the work that judges notifications.
enum SweepJudging {
    /// The notifications whose mean gap is the usual one.
    static let gapNotifications: Int32 = 100
    /// A refund is counted this long after it was recorded, at the least: its commit may come after its clock.
    static let countedAfterShortest = Delay.seconds(5)
    /// The most scheduled receipts whose sweeps one transaction moves forward.
    static let recalledAtOnceMax: Int32 = 2_000
}

extension LedgerOperations {
    /// Judges the notifications of every app with `--sweep auto`, and moves planned sweeps forward where the factor fell.
    ///
    /// Call it every few seconds; one caller works at a time, another does nothing.
    package func judgeSweeps() async throws {
        let speedup = ledger.speedup
        let recalled = try await database.transaction { transaction -> [Int32] in
            guard try transaction.query(Queries.lockSweeps).first?.bool("locked") == true else { return [] }
            try transaction.query(Queries.beginSweepTrust)
            let rows = try transaction.query(Queries.readSweepTrust, [.int4(SweepJudging.gapNotifications)])
            return try rows.compactMap { row in
                let judged = try JudgedApp(row, speedup: speedup)
                let isRecalled = try judged.judge(in: transaction)
                return isRecalled ? judged.id : nil
            }
        }
        for app in recalled {
            while try await recallSweeps(of: app) == Int(SweepJudging.recalledAtOnceMax) {}
        }
    }

    /// Moves the planned sweeps of a slice of an app's receipts forward; returns how many receipts were looked at.
    private func recallSweeps(of app: Int32) async throws -> Int {
        let rows = try await write(Queries.recallSweeps, [.int4(app), .int4(SweepJudging.recalledAtOnceMax)])
        return Int(try rows.first?.int8("receipts") ?? 0)
    }
}

/// One app whose notifications are judged.
private struct JudgedApp {
    let id: Int32
    private let factor: Int
    private let since: Instant
    private let allSweptSince: Instant?
    private let countedUntil: Int64
    private let isRecalling: Bool
    private let now: Instant
    private let lastNotificationAt: Instant?
    private let usualGap: Delay?
    private let speedup: Int

    init(_ row: Row, speedup: Int) throws {
        self.speedup = speedup
        id = try row.int4("app_id")
        factor = Int(try row.int2("factor"))
        since = try row.instant("since")
        allSweptSince = try row.instantIfPresent("all_swept_since")
        countedUntil = try row.timestamptz("counted_until")
        isRecalling = try row.int8IfPresent("recalled_to") != nil
        now = try row.instant("now")
        lastNotificationAt = try row.instantIfPresent("last_at")
        usualGap = try row.int8IfPresent("gap_ms").map(Delay.init(milliseconds:))
    }

    /// Counts what became known, judges, and stores the judgement; returns whether planned sweeps have to be moved.
    func judge(in transaction: Transaction) throws -> Bool {
        let until = try countRefunds(in: transaction)
        let mature = now - SweepTrust.matureAfter.divided(by: speedup)
        let oldest = mature - SweepTrust.window.divided(by: speedup)
        let sums = try transaction.query(Queries.sumSweepProofs, [.int4(id), .instant(mature), .instant(oldest)])
        let evidence = SweepEvidence(
            reported: try sums.first?.int8("reported") ?? 0, missed: try sums.first?.int8("missed") ?? 0,
            lastNotificationAt: lastNotificationAt, usualGap: usualGap)
        let trust = SweepTrust(evidence, at: now, speedup: speedup)
        try transaction.query(
            Queries.writeSweepTrust,
            [
                .int4(id), .int2(Int16(trust.factor)), .int8(evidence.reported), .int8(evidence.missed),
                .float8(trust.lowerBound), .instant(lastNotificationAt),
                .int8(trust.silenceLongest.milliseconds), .bool(trust.isSilent), .timestamptz(microseconds: until),
            ])
        return isRecalling || trust.factor < factor
    }

    /// Adds the refunds that can be decided by now to their days; returns until when they are counted, in microseconds.
    private func countRefunds(in transaction: Transaction) throws -> Int64 {
        let within = SweepTrust.reportedWithin.divided(by: speedup)
        let decided = now - max(within, SweepJudging.countedAfterShortest)
        let until = max(countedUntil, decided.milliseconds * 1_000)
        let rows = try transaction.query(
            Queries.readRefunds,
            [
                .int4(id), .timestamptz(microseconds: countedUntil), .timestamptz(microseconds: until),
                .int8(within.milliseconds),
            ])
        var days: [Int64: (reported: Int64, missed: Int64)] = [:]
        for row in rows {
            let at = try row.instant("occurred_at")
            guard counts(at, of: UInt64(bitPattern: try row.int8("receipt_id"))) else { continue }
            if try row.bool("is_reported") {
                days[day(of: at), default: (0, 0)].reported += 1
            } else {
                days[day(of: at), default: (0, 0)].missed += 1
            }
        }
        let sorted = days.sorted { $0.key < $1.key }
        guard !sorted.isEmpty else { return until }
        try transaction.query(
            Queries.addSweepProofs,
            [
                .int4(id), .timestamptzs(sorted.map { $0.key * 1_000 }), .int8s(sorted.map(\.value.reported)),
                .int8s(sorted.map(\.value.missed)),
            ])
        return until
    }

    /// Whether a refund counts: its receipt is swept as before, or every one was when Apple gave it.
    private func counts(_ refundedAt: Instant, of receipt: UInt64) -> Bool {
        guard refundedAt >= since else { return false }
        return SweepTrust.isControl(receipt) || allSweptSince.map { refundedAt >= $0 } ?? false
    }

    /// The milliseconds at which the day of an instant begins; under a speed-up days are as much shorter.
    private func day(of instant: Instant) -> Int64 {
        let length = max(Delay.days(1).divided(by: speedup).milliseconds, 1)
        return instant.milliseconds / length * length
    }
}
