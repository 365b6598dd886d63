import AppStore
import Foundation
import Subscriptions
import TestSupport
import Testing

@testable import Tracking

@Suite("Apple's clock is believed only near the database's")
struct AnswerClockTests {
    private static let now = Instant(milliseconds: 1_800_000_000_000)

    private func finding(ahead: Delay, limit: ClockLimit, createdAhead: Delay = .zero) -> Finding {
        let requested = (Self.now + ahead).milliseconds
        let created = (Self.now + createdAhead).milliseconds
        let row = """
            {"product_id":"monthly","transaction_id":"1","original_transaction_id":"1",\
            "purchase_date_ms":"\(Self.now.milliseconds)","expires_date_ms":"\(Self.now.milliseconds + 1)"}
            """
        let body = """
            {"status":0,"receipt":{"bundle_id":"com.example.app","request_date_ms":"\(requested)",\
            "receipt_creation_date_ms":"\(created)","in_app":[\(row)]},"latest_receipt_info":[\(row)]}
            """
        let answer = AppStoreAnswer(body: Array(body.utf8), from: .production)
        return Finding(in: answer, for: "com.example.app", clock: Self.now, limit: limit)
    }

    @Test("A clock five minutes ahead is believed, an hour ahead it is clamped and marked, beyond it is no answer")
    func limits() {
        let table: [(ahead: Delay, asOf: Delay?, marked: Bool)] = [
            (.days(-400), .days(-400), false), (.minutes(5), .minutes(5), false),
            (Delay(milliseconds: 300_001), .zero, true), (.hours(1), .zero, true),
            (Delay(milliseconds: 3_600_001), nil, false), (.days(400), nil, false),
        ]
        for (ahead, asOf, marked) in table {
            let found = finding(ahead: ahead, limit: .database(Self.now))
            #expect(found.evidence?.asOf == asOf.map { Self.now + $0 }, "\(ahead)")
            #expect((found.evidence?.remark != nil) == marked, "\(ahead)")
            #expect(found.evidence?.slice(of: "1").transactions.first?.asOf == asOf.map { Self.now + $0 }, "\(ahead)")
            #expect(found.failure == (asOf == nil ? .clockAhead(by: ahead, status: 0) : nil), "\(ahead)")
        }
        #expect(finding(ahead: .days(400), limit: .none).evidence?.asOf == Self.now + .days(400))
        #expect(finding(ahead: .days(400), limit: .settled(Self.now)).evidence?.asOf == Self.now)
    }

    @Test("No receipt is made after it is asked about: a device's snapshot from the future speaks for the answer")
    func creation() {
        let found = finding(ahead: .zero, limit: .database(Self.now), createdAhead: .days(400)).evidence
        #expect(found?.receiptCreatedAt == Self.now)
        #expect(found?.transactions.allSatisfy { $0.asOf == Self.now } == true)
    }

    @Test("A store three hours or 400 days ahead ends no access and hides no later fact", .timeLimit(.minutes(1)))
    func unbelievable() async throws {
        try await ScriptedLine.with { line in
            try await line.answer(Sample.verified())
            #expect(try await line.check().outcome == .verified)
            for ahead in [Delay.hours(3), .days(400)] {
                try await line.answer(Sample.verified(), ahead: ahead)
                let settled = try await line.check()
                #expect(settled.outcome == .indeterminate)
                #expect(settled.reason?.contains("ahead of the database's") == true)
                #expect(settled.nextCheckAt != nil)
            }
            #expect(try await line.rows("SELECT kind FROM ledger.incident") == ["clock"])
            #expect(try await line.rows("SELECT refused FROM ledger.incident WHERE closed_at IS NULL") == ["2"])
            #expect(try await line.rows("SELECT as_of <= now() FROM ledger.subscription") == ["true"])
            #expect(line.journal.lines.count { $0.contains("Apple's clock is ahead") } == 1)
            try await line.answer(
                Sample.verified().replacing(
                    "\"is_trial_period\"",
                    with: "\"cancellation_date_ms\":\"\(Int64(Date.now.timeIntervalSince1970) * 1000 - 1000)\","
                        + "\"is_trial_period\""))
            #expect(try await line.check().subscriptions.first?.verdict.state == .revoked)
        }
    }

    @Test("A store twelve minutes ahead counts from the database's clock, says so, and is rebuilt so")
    func clamped() async throws {
        try await ScriptedLine.with { line in
            try await line.answer(Sample.verified(), ahead: .minutes(12))
            let settled = try await line.check()
            #expect(settled.outcome == .verified)
            #expect(settled.reason?.contains("12 minutes ahead") == true)
            #expect(try await line.rows("SELECT as_of <= now() FROM ledger.subscription") == ["true"])
            #expect(try await line.rows("SELECT count(*) FROM ledger.incident") == ["0"])
            #expect(
                try await line.rows("SELECT count(*) FROM ledger.observation WHERE reason LIKE '%12 minutes ahead%'")
                    == ["1"])
            #expect(line.journal.lines.contains { $0.contains("Apple's clock is ahead") })
            let rebuilt = try await line.tracker.ledger.operations.rebuild(
                from: .start, RebuildScope(), correcting: false, reading: .present)
            #expect(rebuilt.differences == [] && rebuilt.examined == 1)
        }
    }
}

extension Finding {
    fileprivate var failure: CheckFailure? {
        guard case .indeterminate(let failure) = self else { return nil }
        return failure
    }
}
