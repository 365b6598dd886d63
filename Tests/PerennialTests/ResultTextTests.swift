import JSON
import Server
import Subscriptions
import Testing

@testable import Tracking
@testable import perennial

@Suite("Commands report their result in one or two lines") struct ResultTextTests {
    private func report(asked: Int, left: Int = 0, why: [String] = [], unanswered: [String] = []) -> OnceReport {
        OnceReport(
            asked: asked, left: left, why: why, unanswered: unanswered.count, unansweredBecause: unanswered)
    }

    @Test("A run that asked about everything succeeds, and names the receipts without a usable answer")
    func unanswered() {
        let malformed = report(asked: 2, unanswered: ["receipt 1: Apple says 21002"])
        #expect(
            malformed.text == """
                Asked Apple about 2 receipts; none is left.
                No usable answer about 1 receipt, to be asked about again:
                  receipt 1: Apple says 21002
                """)
        #expect(malformed.failure == nil)
        #expect(report(asked: 1).text == "Asked Apple about 1 receipt; none is left.")
    }

    @Test("A run that left something due fails with the reasons")
    func left() {
        let late = report(asked: 1, left: 1, why: ["the app is paused"])
        #expect(late.text == "Asked Apple about 1 receipt; 1 is left.")
        #expect(late.failure?.description == "Apple was not asked about 1 due receipt: the app is paused")
        #expect(
            report(asked: 1, left: 2).failure?.description == "Apple was not asked about 2 due receipts: see the log")
    }

    @Test("A verification counts one row and one violation in the singular")
    func verified() {
        var sum = VerifySum(invariants: [.feed])
        sum.add(VerifyStep(invariants: [.feed], keys: 1, violations: []))
        #expect(sum.note == "1 row looked at, 0 violations")
        #expect(sum.sentence == "No violation of 1 invariant.")
    }

    @Test("A rebuild counts subscriptions, purchases and customers, and beside them the facts in which they differ")
    func rebuilt() {
        func difference(_ subject: String, _ fact: String) -> RebuildDifference {
            RebuildDifference(subject: subject, fact: fact, stored: "1", rebuilt: nil)
        }
        var sum = RebuildSum(total: 9)
        sum.add(RebuildBatch(examined: 3, gaps: [RebuildGap(subject: "s 3", reason: "No answer about it is kept.")]))
        let looked = "Subscriptions, purchases and customers looked at: "
        let left = "left as they are, because they cannot be rebuilt in full: 1."
        #expect(sum.sentence(verifying: false) == "\(looked)3; none differs; \(left)")
        sum.add(RebuildBatch(examined: 2, corrected: 1, differences: [difference("s 1", "a"), difference("s 1", "b")]))
        sum.add(RebuildBatch(examined: 4, corrected: 1, differences: [difference("c 1", "entitlement pro")]))
        #expect(sum.note == "9 of 9 looked at, 2 different")
        #expect(sum.sentence(verifying: false) == "\(looked)9; different: 2, in 3 facts; corrected: 2; \(left)")
        #expect(sum.sentence(verifying: true) == "\(looked)9; different: 2, in 3 facts; \(left)")
    }

    @Test("A verification says why paid orders have no delivery yet, and that is no violation")
    func awaiting() {
        var sum = VerifySum(invariants: [.orders])
        sum.awaiting = [
            OrdersAwaitingRelease(bundleID: "com.example.app", productID: "coins", orders: 1),
            OrdersAwaitingRelease(bundleID: "com.example.app", productID: "gems", orders: 1_000),
        ]
        #expect(
            sum.awaiting.map(\.sentence) == [
                "com.example.app: workers go through what the catalog released of coins; "
                    + "without a delivery until then: 1 paid order.",
                "com.example.app: workers go through what the catalog released of gems; "
                    + "without a delivery until then: 1000 paid orders or more.",
            ])
        #expect(sum.left == 0)
        let line = sum.json.rendered(pretty: false)
        #expect(line.contains(#""awaiting_release":[{"bundle_id":"com.example.app","orders":1,"product_id":"coins"}"#))
    }
}
