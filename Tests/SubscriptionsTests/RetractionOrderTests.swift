import SeededRandom
import Testing

@testable import Subscriptions

@Suite("What one answer takes back waits for a second one, in whatever order the answers arrive within ten minutes")
struct RetractionOrderTests {
    /// What answers state, or take back.
    private enum Statement: CaseIterable {
        case purchase, refund, mark, end, seats
    }

    /// What an answer says at a minute.
    private struct Word: CustomStringConvertible {
        let what: Statement
        let minute: Int
        let source: EvidenceSource
        /// The number of the refund; anything else is stated or not. nil: taken back.
        let stated: Int?
        var share: Int?

        var description: String { "(\(minute) \(source) \(stated ?? -1) \(share ?? -1))" }

        private var instant: Instant { day(10 + Double(minute) / 1_440) }
        private var isStated: Bool { stated != nil }

        private func spoken(_ row: TransactionRow) -> TransactionRow {
            var row = row
            (row.source, row.asOf) = (source, instant)
            if source == .signedText { row.path = "7/history[0].signedTransactions[0]" }
            if source == .statuses { row.path = "7/statuses.data[0].lastTransactions[0]" }
            return row
        }

        private var refundRow: TransactionRow {
            var refund = row("1", 0, 30, cancelled: stated.map { 5 + Double($0) })
            refund.revocationPercentage = share
            if source != .latestReceiptInfo {
                refund.sale = Sale(plan: Sale.upfront, revocationType: isStated ? "REFUND_PRORATED" : nil)
            }
            return refund
        }

        var purchase: PurchaseEvidence {
            var bought = spoken(refundRow)
            bought.expiresAt = nil
            let key = PurchaseKey(originalTransactionID: subscriptionID, productID: bought.productID)
            return PurchaseEvidence(key: key, asOf: instant, transactions: [bought])
        }

        var subscription: SubscriptionEvidence {
            let rows: [TransactionRow]
            switch what {
            case .purchase, .refund: rows = [refundRow]
            case .mark: rows = [row("1", 0, 30, upgraded: isStated), row("2", 5, 370, product: "yearly")]
            case .end: rows = [row("1", 0, isStated ? 37 : 30)]
            case .seats:
                var group = row("1", 0, 30)
                group.sale = Sale(plan: Sale.upfront, seats: Sale.Seats(count: 8, revoked: isStated ? 3 : 0))
                rows = [group]
            }
            return SubscriptionEvidence(
                originalTransactionID: subscriptionID, asOf: instant, transactions: rows.map(spoken), renewals: [])
        }
    }

    /// What counts after some answers.
    private struct Meaning: Equatable {
        var revocation: Revocation?
        var share: Int?
        var kind: String?
        var isMarked: Bool?
        var end: Instant?
        var seats: Int?
        /// Since when something waits for a second answer.
        var waits: [Instant] = []
        var events: [EventKind] = []

        init(_ words: [Word]) {
            if words.first?.what == .purchase {
                var state: PurchaseState?
                for word in words {
                    let result = reconcilePurchase(state, with: word.purchase)
                    (state, events) = (result?.state, events + (result?.events.map(\.kind) ?? []))
                }
                (revocation, share) = (state?.facts.revocation.value, state?.facts.revocationPercentage?.value)
                waits = [state?.refundRetractedAt].compactMap(\.self)
            } else {
                let settled = settle(words.map(\.subscription))
                let period = settled.state?.facts.periods.first
                (revocation, share) = (period?.revocation.value, period?.details.revocationPercentage?.value)
                // A kind of verifyReceipt's refund is that of an earlier one.
                if revocation?.cancelledAt != nil, Set(words.compactMap(\.stated)).count == 1 {
                    kind = period?.details.sale?.value.revocationType
                }
                (isMarked, end) = (period?.isUpgraded, period?.expiresAt)
                seats = period?.details.sale?.value.seats?.revoked
                waits = settled.state?.retractions.map(\.since) ?? []
                events = settled.events.joined().map(\.kind)
            }
        }

        var refunds: Int { events.filter { $0 == .purchaseRefunded || $0 == .refundGranted }.count }

        /// What must not depend on the order.
        func timeless(waiting: Bool = true) -> Meaning {
            var rest = self
            rest.events = []
            if !waiting { rest.waits = [] }
            return rest
        }
    }

    private static func words(
        about what: Statement, from sources: [EvidenceSource], steps: [Int], count: Int, _ random: inout Seeded
    ) -> [Word] {
        var (minute, refund) = (0, 0)
        return (0..<count).map { _ in
            let step = steps.randomElement(using: &random) ?? 1
            minute += step
            if step > 0, what == .purchase || what == .refund, Int.random(in: 0..<6, using: &random) == 0 {
                refund += 1
            }
            let source = sources.randomElement(using: &random) ?? .latestReceiptInfo
            let isStated = Bool.random(using: &random)
            var word = Word(what: what, minute: minute, source: source, stated: isStated ? refund : nil)
            if isStated, source != .latestReceiptInfo, what == .purchase || what == .refund {
                word.share = [20_000, 50_000, 100_000].randomElement(using: &random) ?? 0
            }
            return word
        }
    }

    private static func byClock(_ words: [Word]) -> [Word] { words.sorted { $0.minute < $1.minute } }

    @Test("Answers of ten minutes, in any order", arguments: 0..<600 as Range<UInt64>)
    func anyOrder(seed: UInt64) {
        var random = Seeded(seed: 47_100 + seed)
        for what in Statement.allCases {
            let all: [EvidenceSource] =
                switch what {
                // What statuses say of an end or of seats hides what a history said before.
                case .seats: [.signedText]
                case .end: [.latestReceiptInfo, .signedText]
                case .purchase, .refund, .mark: [.latestReceiptInfo, .signedText, .statuses]
                }
            let sources = Bool.random(using: &random) ? all : [.signedText]
            let words = Self.words(
                about: what, from: sources, steps: [0, 1, 2], count: .random(in: 2...5, using: &random), &random)
            let arrived = words.shuffled(using: &random)
            // A refund that waits does not say which channel took it back.
            let waiting = what != .purchase || sources.count == 1
            let (known, expected) = (Meaning(arrived), Meaning(words))
            #expect(
                known.timeless(waiting: waiting) == expected.timeless(waiting: waiting),
                "\(random) \(what): \(arrived)")
            if arrived[0].stated == nil, what == .purchase || what == .refund {
                #expect(
                    known.refunds == (words.contains { $0.stated != nil } ? 1 : 0), "\(random) \(what): \(arrived)")
            }
            guard waiting else { continue }
            for later in [nil, words.last?.stated ?? 9] as [Int?] {
                let last = Word(what: what, minute: 600, source: .signedText, stated: later)
                #expect(
                    Meaning(arrived + [last]).timeless() == Meaning(words + [last]).timeless(),
                    "\(random) \(what): \(arrived) \(last)")
            }
        }
    }

    @Test(
        "A life of any length, whose answers arrive less than ten minutes out of order, after each of them",
        arguments: 0..<600 as Range<UInt64>)
    func lives(seed: UInt64) {
        var random = Seeded(seed: 47_800 + seed)
        for what in Statement.allCases {
            let source: EvidenceSource =
                what == .seats || Bool.random(using: &random) ? .signedText : .latestReceiptInfo
            let isMixed = (what == .mark || what == .end) && Bool.random(using: &random)
            let words = Self.words(
                about: what, from: isMixed ? [.signedText, .latestReceiptInfo] : [source], steps: [0, 1, 4, 9, 11, 30],
                count: 9, &random)
            let delays = words.map { _ in Double.random(in: 0..<9.9, using: &random) }
            let arrivals = zip(words, delays).sorted {
                Double($0.0.minute) + $0.1 < Double($1.0.minute) + $1.1
            }.map(\.0)
            for count in 1...arrivals.count {
                let arrived = Array(arrivals.prefix(count))
                let (known, expected) = (Meaning(arrived), Meaning(Self.byClock(arrived)))
                #expect(known.timeless() == expected.timeless(), "\(random) \(what): \(arrived)")
                if known.revocation?.cancelledAt == nil { #expect(known.share == nil, "a share goes with its refund") }
                guard known.timeless() == expected.timeless() else { return }
            }
        }
    }

    @Test("A denial of ten minutes later stands, and of the late refund nothing stays")
    func tooLate() {
        for what in [Statement.purchase, .refund] {
            for (minutes, isRefunded) in [(9, true), (10, false)] {
                let refund = Word(what: what, minute: 0, source: .signedText, stated: 1, share: 50_000)
                let denial = Word(what: what, minute: minutes, source: .signedText, stated: nil)
                let known = Meaning([denial, refund])
                #expect((known.revocation?.cancelledAt != nil) == isRefunded && known.waits.isEmpty != isRefunded)
                #expect(known.share == (isRefunded ? 50_000 : nil) && known.refunds == (isRefunded ? 1 : 0))
                #expect(Meaning([denial, refund, refund, denial]) == known, "the same again changes nothing")
            }
        }
    }

    @Test("A row that cannot state an upgrade takes no late mark back either")
    func lateMark() {
        var silent = Word(what: .mark, minute: 60, source: .latestReceiptInfo, stated: nil).subscription
        silent.transactions[0].path = "latest_receipt_info"
        let marked = Word(what: .mark, minute: 0, source: .latestReceiptInfo, stated: 1).subscription
        let state = settle([silent, marked]).state
        #expect(state?.facts.periods.first?.isUpgraded == true && state?.retractions == [])
    }
}
