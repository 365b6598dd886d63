import Testing

@testable import Subscriptions

@Suite("Evidence that is not whole merges in any order, and moves the clock no further than it speaks")
struct EvidenceCoverageTests {
    private static let id: OriginalTransactionID = "s1"
    private static let policy = Policy.standard(for: .production)

    private static func day(_ day: Double) -> Instant { Instant(milliseconds: Int64(day * 86_400_000)) }

    /// A period of seven days that begins on a day.
    private static func row(
        _ transaction: TransactionID, from start: Double, signedOn: Double, cancelledOn: Double? = nil,
        upgraded: Bool = false
    ) -> TransactionRow {
        TransactionRow(
            path: "notification.signedTransactionInfo", source: .signedText, asOf: day(signedOn),
            transactionID: transaction, originalTransactionID: id,
            webOrderLineItemID: WebOrderLineItemID("w\(transaction)"), productID: "weekly",
            purchasedAt: day(start), expiresAt: day(start + 7), cancelledAt: cancelledOn.map(day),
            isUpgraded: upgraded)
    }

    private static func renewal(ends: Double, signedOn: Double, renews: Bool) -> RenewalRow {
        RenewalRow(
            path: "notification.signedRenewalInfo", asOf: day(signedOn), originalTransactionID: id,
            renewal: Renewal(productID: "weekly", willRenew: renews), periodEndsAt: day(ends))
    }

    private static func slice(
        _ coverage: Coverage, on signed: Double, _ rows: [TransactionRow], _ renewals: [RenewalRow] = [],
        status: AppleStatus? = .active
    ) -> SubscriptionEvidence {
        SubscriptionEvidence(
            originalTransactionID: id, asOf: day(signed), transactions: rows, renewals: renewals, coverage: coverage,
            status: status)
    }

    private static let first = SubscriptionFacts(
        slice(
            .whole, on: 1, [row("1", from: 0, signedOn: 1)], [renewal(ends: 7, signedOn: 1, renews: true)]))

    private static let parts = [
        slice(.head, on: 3, [row("1", from: 0, signedOn: 3)], [renewal(ends: 7, signedOn: 3, renews: false)]),
        slice(.piece, on: 4, [row("1", from: 0, signedOn: 4, cancelledOn: 3.9)]),
        slice(.piece, on: 5, [row("1", from: 0, signedOn: 5)]),
        slice(.head, on: 7.1, [row("2", from: 7, signedOn: 7.1)], [renewal(ends: 14, signedOn: 7.1, renews: true)]),
    ]

    private static func permutations<Element>(_ elements: [Element]) -> [[Element]] {
        guard !elements.isEmpty else { return [[]] }
        return elements.indices.flatMap { index -> [[Element]] in
            var rest = elements
            let element = rest.remove(at: index)
            return permutations(rest).map { [element] + $0 }
        }
    }

    @Test("Every order, and every repetition, gives the same facts")
    func anyOrder() {
        let orders = Self.permutations(Self.parts)
        let expected = Self.parts.reduce(Self.first) { $0.adding($1) }
        #expect(orders.count == 24 && expected.periods.count == 2)
        for order in orders {
            let facts = order.reduce(Self.first) { $0.adding($1) }
            #expect(facts == expected)
            #expect(order.reduce(facts) { $0.adding($1) } == expected)
            // Facts of the parts alone, merged in two halves.
            let halves = [order[..<2], order[2...]].map { $0.reduce(Self.first) { $0.adding($1) } }
            #expect(halves[0].merging(halves[1]) == expected && halves[1].merging(halves[0]) == expected)
        }
    }

    @Test("A head moves the clock to its instant only with the status that follows from the facts")
    func head() {
        let running = Self.slice(.head, on: 3, [Self.row("1", from: 0, signedOn: 3)], status: .active)
        #expect(Self.first.adding(running).movingClock(by: running, policy: Self.policy).asOf == Self.day(3))
        var other = running
        other.asOf = Self.day(9)
        // At day 9 the known period is over: the head does not show whether another followed.
        let heard = Self.first.adding(other).movingClock(by: other, policy: Self.policy)
        #expect(heard.asOf < Self.day(9) && heard.asOf >= Self.first.asOf)
    }

    @Test("A piece moves the clock to just before the end of access at most")
    func piece() {
        let refund = Self.slice(.piece, on: 5, [Self.row("1", from: 0, signedOn: 5, cancelledOn: 4)], status: .revoked)
        let heard = Self.first.adding(refund).movingClock(by: refund, policy: Self.policy)
        #expect(heard.asOf == Self.day(4) - Delay(milliseconds: 1))
    }

    @Test("What does not follow the last known period does not join")
    func joins() {
        #expect(
            Self.first.joins(Self.slice(.head, on: 7.1, [Self.row("2", from: 7, signedOn: 7.1)]), policy: Self.policy))
        #expect(
            !Self.first.joins(Self.slice(.head, on: 15, [Self.row("3", from: 14, signedOn: 15)]), policy: Self.policy))
        let later = Self.slice(.head, on: 8, [], [Self.renewal(ends: 14, signedOn: 8, renews: true)])
        #expect(!Self.first.joins(later, policy: Self.policy))
    }

    @Test("An upgrade without a date erases no cancellation; a transaction without one says that there is none")
    func revocation() {
        let cancelled = Self.first.adding(
            Self.slice(.piece, on: 4, [Self.row("1", from: 0, signedOn: 4, cancelledOn: 3.9)]))
        let upgraded = cancelled.adding(
            Self.slice(.piece, on: 5, [Self.row("1", from: 0, signedOn: 5, upgraded: true)]))
        #expect(upgraded.periods[0].cancelledAt == Self.day(3.9) && upgraded.periods[0].isUpgraded)
        let reversed = cancelled.adding(Self.slice(.piece, on: 5, [Self.row("1", from: 0, signedOn: 5)]))
        #expect(reversed.periods[0].cancelledAt == nil)
    }
}
