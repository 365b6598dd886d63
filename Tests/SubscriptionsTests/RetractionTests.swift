import Testing

@testable import Subscriptions

@Suite("What Apple takes back of its own words counts on the second answer, ten minutes after they were last said")
struct RetractionTests {
    private static let minute = 1.0 / 1_440

    /// Rows that say something, and rows that take it back.
    private struct Words: Sendable, CustomStringConvertible {
        let description: String
        let said: [TransactionRow]
        let gone: [TransactionRow]
        let isGone: @Sendable (Period) -> Bool
    }

    private static let table = [
        Words(description: "a refund", said: [row("1", 0, 30, cancelled: 9)], gone: [row("1", 0, 30)]) {
            $0.cancelledAt == nil
        },
        Words(
            description: "an upgrade mark",
            said: [row("1", 0, 30, upgraded: true), row("2", 5, 370, product: "yearly")],
            gone: [row("1", 0, 30), row("2", 5, 370, product: "yearly")]
        ) { !$0.isUpgraded },
        Words(description: "an end", said: [row("1", 0, 37)], gone: [row("1", 0, 30)]) { $0.expiresAt == day(30) },
        Words(description: "a refund of seats", said: [group(revoked: 3)], gone: [group(revoked: 0)]) {
            $0.details.sale?.value.seats?.revoked == 0
        },
        Words(description: "a later refund of seats", said: [group(revoked: 3)], gone: [group(revoked: 2)]) {
            $0.details.sale?.value.seats?.revoked == 2
        },
        Words(description: "seats that cannot be read", said: [group(revoked: 3)], gone: [group(revoked: nil)]) {
            $0.details.sale?.value.seats == nil
        },
        Words(
            description: "the kind of a refund", said: [group(revoked: 8, kind: "REFUND_NEW", cancelled: 9)],
            gone: [group(revoked: 0)]
        ) { $0.details.sale?.value.revocationType == nil && $0.details.sale?.value.seats?.revoked == 0 },
    ]

    /// Eight seats.
    private static func group(revoked: Int?, kind: String? = nil, cancelled: Double? = nil) -> TransactionRow {
        var row = row("1", 0, 30, cancelled: cancelled)
        row.sale = Sale(
            plan: Sale.upfront, seats: revoked.map { Sale.Seats(count: 8, revoked: $0) }, revocationType: kind)
        return row
    }

    private static func isGone(_ words: Words, _ answers: [SubscriptionEvidence]) -> Bool? {
        settle(answers).state?.facts.periods.first { $0.transactionIDs.contains("t1") }.map(words.isGone)
    }

    @Test("A plan is shown where a text names it: a refund and seats name none")
    func plan() {
        for sale in [Sale(revocationType: "REFUND_FULL"), Sale(seats: Sale.Seats(count: 8)), Sale()] {
            var text = row("1", 0, 30, cancelled: sale.revocationType.map { _ in 9 })
            text.sale = sale
            #expect(settle([answer(10, [text], renewal())]).state?.sale.plan == nil)
            text.sale?.plan = Sale.upfront
            #expect(settle([answer(10, [text], renewal())]).state?.sale.plan == "upfront")
        }
    }

    @Test("One answer takes nothing back, nor does a second one within ten minutes of the newest statement")
    func waits() {
        for words in Self.table {
            let said = answer(10, words.said, renewal())
            func gone(_ minutes: Double) -> SubscriptionEvidence {
                answer(10 + minutes * Self.minute, words.gone, renewal())
            }
            #expect(Self.isGone(words, [said]) == false, "\(words)")
            #expect(Self.isGone(words, [said, gone(60)]) == false, "\(words): once")
            #expect(Self.isGone(words, [said, gone(60), gone(60)]) == false, "\(words): the same answer again")
            #expect(Self.isGone(words, [said, gone(1), gone(9.9)]) == false, "\(words): too soon")
            #expect(Self.isGone(words, [said, gone(1), gone(9.9), gone(10)]) == true, "\(words)")
            #expect(Self.isGone(words, [said, gone(60), gone(61)]) == true, "\(words): an old statement")
            let restated = answer(10 + 5 * Self.minute, words.said, renewal())
            #expect(Self.isGone(words, [said, gone(1), restated, gone(11)]) == false, "\(words): said again since")
            #expect(Self.isGone(words, [said, gone(1), restated, gone(11), gone(15)]) == true, "\(words)")
            let silent = answer(10 + 30 * Self.minute, [row("9", -30, 0)])
            #expect(Self.isGone(words, [said, gone(1), silent, gone(31)]) == true, "\(words): silence ends no doubt")
            let state = settle([said, gone(60)]).state
            #expect(state?.retractions.map(\.since) == [day(10 + 60 * Self.minute)], "\(words)")
            #expect(settle([said, gone(60), gone(61)]).state?.retractions == [], "\(words)")
        }
    }

    @Test("A row that cannot state an upgrade takes no mark of it back, and leaves no doubt")
    func legacyRows() {
        let marked = Self.table[1]
        let answers = [20.0, 40, 60].map { minutes in
            answer(
                10 + minutes * Self.minute,
                marked.gone.map { row in
                    var row = row
                    row.path = "latest_receipt_info"
                    return row
                }, renewal())
        }
        let settled = settle([answer(10, marked.said, renewal())] + answers).state
        #expect(settled?.facts.periods.first { $0.transactionIDs.contains("t1") }?.isUpgraded == true)
        #expect(settled?.retractions == [])
    }

    @Test("A transaction inside statuses takes nothing back, however often; a history does")
    func statuses() {
        for words in Self.table {
            func texts(_ minutes: Double, _ source: EvidenceSource) -> SubscriptionEvidence {
                let instant = 10 + minutes * Self.minute
                return answer(
                    instant,
                    words.gone.map { row in
                        var row = row
                        (row.source, row.asOf) = (source, day(instant))
                        return row
                    }, renewal())
            }
            let said = answer(10, words.said, renewal())
            let lagging = [20.0, 40, 60].map { texts($0, .statuses) }
            #expect(Self.isGone(words, [said] + lagging) == false, "\(words)")
            #expect(settle([said] + lagging).state?.retractions == [], "\(words)")
            #expect(Self.isGone(words, [said, texts(20, .signedText), texts(40, .signedText)]) == true, "\(words)")
        }
    }

    @Test("More refunded seats count at once, and so does a date; verifyReceipt states no seats")
    func moreSeats() {
        let said = answer(10, [Self.group(revoked: 3)], renewal())
        func standing(_ next: TransactionRow) -> (sale: Sale?, isHeld: Bool) {
            let state = settle([said, answer(11, [next], renewal())]).state
            return (state?.facts.periods.first?.details.sale?.value, state?.retractions.isEmpty == false)
        }
        let more = standing(Self.group(revoked: 5))
        #expect(more.sale?.seats?.revoked == 5 && !more.isHeld)
        let dated = standing(Self.group(revoked: 2, kind: "REFUND_FULL", cancelled: 10.5))
        #expect(dated.sale?.revocationType == "REFUND_FULL" && !dated.isHeld)
        let bare = standing(row("1", 0, 30))
        #expect(bare.sale?.seats?.revoked == 3 && !bare.isHeld)
        // The kind of a refund stands as long as its date.
        let refund = answer(10, [Self.group(revoked: 8, kind: "FAMILY_REVOKE", cancelled: 9)], renewal())
        var silent = Self.group(revoked: 8, cancelled: 9)
        (silent.source, silent.asOf) = (.statuses, day(11))
        let state = settle([refund, answer(11, [silent], renewal())]).state
        #expect(state?.facts.periods.first?.details.sale?.value.revocationType == "FAMILY_REVOKE")
    }

    @Test("Either channel takes back what the other one stated of a subscription, because both list every period")
    func channels() {
        for words in Self.table {
            func said(_ minutes: Double, _ rows: [TransactionRow], byServer: Bool) -> SubscriptionEvidence {
                let instant = 10 + minutes * Self.minute
                return answer(
                    instant,
                    rows.map { row in
                        var row = row
                        if byServer { (row.source, row.path) = (.signedText, "history[0].signedTransactions[0]") }
                        row.asOf = day(instant)
                        return row
                    }, renewal())
            }
            for isServer in [false, true] {
                let answers = [
                    said(0, words.said, byServer: isServer), said(20, words.gone, byServer: !isServer),
                    said(40, words.gone, byServer: !isServer),
                ]
                #expect(Self.isGone(words, Array(answers.prefix(2))) == false, "\(words)")
                #expect(Self.isGone(words, answers) == true, "\(words)")
            }
        }
    }

    @Test("The refund of a purchase likewise; a speed-up divides the ten minutes")
    func purchases() {
        func said(_ minutes: Double, refunded: Bool) -> PurchaseEvidence {
            let instant = day(10 + minutes * Self.minute)
            let key = PurchaseKey(originalTransactionID: "p", productID: "coins")
            let row = TransactionRow(
                path: "latest_receipt_info[0]", source: .latestReceiptInfo, asOf: instant, transactionID: "p",
                originalTransactionID: "p", productID: "coins", purchasedAt: day(9),
                cancelledAt: refunded ? day(9.5) : nil)
            return PurchaseEvidence(key: key, asOf: instant, transactions: [row])
        }
        func isRefunded(_ said: [PurchaseEvidence], speedup: Int = 1) -> Bool? {
            let policy = Policy.standard(for: .production, speedup: speedup)
            return said.reduce(nil as PurchaseState?) { reconcilePurchase($0, with: $1, policy: policy)?.state }
                .map { $0.revokedAt != nil }
        }
        let refund = said(0, refunded: true)
        #expect(isRefunded([refund, said(60, refunded: false)]) == true)
        #expect(isRefunded([refund, said(1, refunded: false), said(9, refunded: false)]) == true)
        #expect(isRefunded([refund, said(1, refunded: false), said(9, refunded: false)], speedup: 10) == false)
        #expect(isRefunded([refund, said(1, refunded: false), said(10, refunded: false)]) == false)
        let restated = [refund, said(1, refunded: false), said(5, refunded: true), said(11, refunded: false)]
        #expect(isRefunded(restated) == true)
    }

    @Test("A form that cannot state grace ends none")
    func grace() {
        let entered = answer(31, [row("1", 0, 30)], renewal(intent: "2", retry: true, grace: 46))
        func gaveUp(_ path: String) -> SubscriptionEvidence {
            var later = answer(35, [row("1", 0, 30)], renewal(intent: "2", retry: false))
            later.renewals[0].path = path
            return later
        }
        func state(_ path: String) -> State? {
            settle([entered, gaveUp(path)], policy: strictPolicy).state?.timeline.span(at: day(36))?.state
        }
        #expect(state("pending_renewal_info[0]") == .expired)
        #expect(state("") == .gracePeriod && state("17/") == .gracePeriod)
    }
}
