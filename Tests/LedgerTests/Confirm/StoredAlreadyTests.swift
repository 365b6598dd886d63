import Subscriptions
import Testing

@testable import Ledger

@Suite("A part of Apple's history is known if merging it would change nothing")
struct StoredAlreadyTests {
    private func history(_ answer: Answer, of transactions: Range<Int>) -> Evidence {
        var evidence = answer.evidence
        evidence.transactions = Array(answer.rows[transactions])
        evidence.renewals = []
        return evidence
    }

    @Test("A renewal is known once it is stored; a refund, another end and another subscription are news")
    func subscriptions() async throws {
        try await withLedger { test in
            let settlements = test.ledger.settlements
            let receipt = try await test.upload("a")
            let answer = Answer(from: test.at(-40), asOf: test.at(-20))
            try await test.check(receipt, answer)
            let renewed = answer.but { ($0.periods, $0.asOf) = (2, test.at(-5)) }
            #expect(try await settlements.isStored(history(renewed, of: 0..<1), of: test.app))
            #expect(try await settlements.isStored(history(renewed, of: 1..<2), of: test.app) == false)
            try await test.check(receipt, renewed)
            let later = renewed.but { $0.asOf = test.at(-1) }
            #expect(try await settlements.isStored(history(later, of: 1..<2), of: test.app))
            let before = try await test.text("SELECT as_of FROM ledger.subscription")
            let refunded = later.but { $0.refunded = (1, test.at(-2)) }
            #expect(try await settlements.isStored(history(refunded, of: 1..<2), of: test.app) == false)
            let extended = later.but { $0.from = test.at(-39) }
            #expect(try await settlements.isStored(history(extended, of: 1..<2), of: test.app) == false)
            let other = later.but { $0.subscription = "2000" }
            #expect(try await settlements.isStored(history(other, of: 0..<1), of: test.app) == false)
            #expect(try await test.text("SELECT as_of FROM ledger.subscription") == before, "nothing is written")
        }
    }

    @Test("A one-time purchase is known once it is stored; its refund and another purchase are news")
    func purchases() async throws {
        try await withLedger { test in
            let settlements = test.ledger.settlements
            let receipt = try await test.upload("a")
            try await test.check(receipt, purchase("77", at: test.at(-9), asOf: test.at(-8)))
            func isStored(_ finding: Finding) async throws -> Bool {
                guard case .verified(let evidence) = finding else { return false }
                return try await settlements.isStored(evidence, of: test.app)
            }
            #expect(try await isStored(purchase("77", at: test.at(-9), asOf: test.at(-1))))
            #expect(
                try await isStored(purchase("77", at: test.at(-9), asOf: test.at(-1), refundedAt: test.at(-2)))
                    == false)
            #expect(try await isStored(purchase("78", at: test.at(-9), asOf: test.at(-1))) == false)
        }
    }

    @Test("An equal answer moves the place where the history is read on, unless everything was to be read")
    func place() async throws {
        try await withLedger { test in
            let receipt = try await test.upload("a")
            let answer = Answer(from: test.at(-20), asOf: test.at(-9))
            func settlement(asOf: Double, _ revision: String) async throws -> PendingAnswer {
                let body = Array("\(asOf)".utf8)
                return Settlement(
                    claim: try await test.claim(receipt),
                    finding: .verified(answer.but { $0.asOf = test.at(asOf) }.evidence), body: body,
                    latestReceipt: nil,
                    fingerprint: Fingerprint(
                        of: body, lasting: [0..<body.count], app: test.app, environment: .production),
                    server: ServerRead(beginsAtStart: true, revision: revision, goesOn: false)
                ).pending
            }
            let settlements = test.ledger.settlements
            _ = try await settlements.settle([settlement(asOf: -9, "r1")])
            let claim = try await test.claim(receipt)
            let last = try #require(claim.fingerprint)
            let equal = try #require(
                EqualAnswer(to: claim, fingerprint: last, asOf: test.at(-8), revision: "r2"))
            let swept = "SELECT (swept_at = confirmed_at)::text FROM ledger.poll_schedule"
            #expect(try await test.text(swept) == "true")
            #expect(try await settlements.confirm([equal]) == [receipt])
            #expect(try await test.text("SELECT history_revision FROM ledger.receipt") == "r2")
            #expect(try await test.text(swept) == "true")
            let statuses = try #require(
                EqualAnswer(to: try await test.claim(receipt), fingerprint: last, asOf: test.at(-7.5), isSweep: false))
            #expect(try await settlements.confirm([statuses]) == [receipt])
            #expect(try await test.text(swept) == "false", "statuses do not speak for everything")
            #expect(try await settlements.settle([settlement(asOf: -7, "r3")]).confirmed == [receipt])
            #expect(try await test.text("SELECT history_revision FROM ledger.receipt") == "r3")
            try await test.run("UPDATE ledger.receipt SET reads_whole = true")
            #expect(try await settlements.settle([settlement(asOf: -6, "r4")]).confirmed.isEmpty)
            #expect(try await test.text("SELECT history_revision, reads_whole FROM ledger.receipt") == "r4 false")
        }
    }

    @Test("A history without news confirms a subscription and says nothing about its signed renewal")
    func renewal() async throws {
        try await withLedger { test in
            let receipt = try await test.upload("a")
            for (path, moves) in [("signedRenewalInfo", false), ("pending_renewal_info[0]", true)] {
                let asOf = moves ? -4.0 : -9.0
                var evidence = Answer(from: test.at(-20), asOf: test.at(asOf)).evidence
                evidence.renewals[0].path = path
                evidence.renewals[0].renewal.willRenew = moves
                let body = Array(path.utf8)
                let claim = try await test.claim(receipt)
                let settlement = Settlement(
                    claim: claim, finding: .verified(evidence), body: body, latestReceipt: nil,
                    fingerprint: Fingerprint(
                        of: body, lasting: [0..<body.count], app: test.app, environment: .production))
                #expect(try await test.ledger.settlements.settleInFull([settlement]).failures.isEmpty)
                let next = try await test.claim(receipt)
                let last = try #require(next.fingerprint)
                let equal = try #require(EqualAnswer(to: next, fingerprint: last, asOf: test.at(asOf + 2)))
                #expect(try await test.ledger.settlements.confirm([equal]) == [receipt])
                try await test.expectRows(
                    """
                    SELECT ledger.as_of(s, p) = $1::timestamptz, ledger.renewal_as_of(s, p) = $2::timestamptz
                    FROM ledger.subscription s JOIN ledger.poll_schedule p ON p.receipt_id = s.polled_by
                    """, with: [.instant(test.at(asOf + 2)), .instant(test.at(moves ? asOf + 2 : asOf))],
                    [[true, true]])
            }
        }
    }
}
