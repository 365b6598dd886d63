import Postgres
import Subscriptions

@testable import Ledger

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
