import Foundation
import Subscriptions
import TestSupport
import Testing

@testable import Tracking

/// How an account token becomes known after another customer got the purchase.
private enum TokenPath: CaseIterable {
    case upload, uploadByOther, uploadForOrder, proof, scheduledCheck, signedText, signedTextByOther, pointerByThird
}

@Suite("An account token that is learnt late means the same whatever brings it")
struct LateTokenTests {
    /// A purchase that bob got, and whose token names ann or her order.
    private struct Story {
        let path: TokenPath
        let namesOrder: Bool
        /// Whether bob ordered it, too.
        let isOrdered: Bool
        let number: Int

        var id: String { "p\(number)" }
        var bob: String { "bob \(number)" }
        var ann: String { String(format: "00000000-0000-4000-8000-%012d", number) }

        static let all = TokenPath.allCases.flatMap { path in
            [true, false].flatMap { names in [true, false].map { (path, names, $0) } }
        }.enumerated().map { Story(path: $1.0, namesOrder: $1.1, isOrdered: $1.2, number: $0) }
    }

    @Test(
        "What another customer was given pays nothing, and the answer is failed; what is still due is the named one's",
        arguments: [true, false])
    func paths(isGiven: Bool) async throws {
        try await withLedger { test in
            try await test.sellDeliverables()
            for story in Story.all {
                let theirs = story.isOrdered ? try await test.place(by: story.bob) : nil
                let order = try await test.place(by: story.ann)
                try await test.buys(story.id, by: story.bob)
                if isGiven { try await test.acknowledgeAll() }
                try await learn(story, order, in: test)
                // Only a check that nobody asked for takes nothing from an owner.
                let state: OrderState = isGiven || story.path == .scheduledCheck ? .created : .paid
                #expect(
                    try await test.ledger.orders.read(order.id, of: test.app.bundleID)?.state == state, "\(story)")
                // Then ann's device asks about her order.
                let receipt = try await test.send("receipt of \(story.id)", for: order)
                try await test.check(receipt, answer(story, order, asOf: -0.8, in: test))
                let read = try #require(try await test.ledger.orders.read(order.id, of: test.app.bundleID))
                let contents = try await test.ledger.intake.purchases(in: receipt, for: story.ann)
                if isGiven {
                    #expect(try await test.log(of: order) == "created placed", "\(story)")
                    #expect(contents.fit(for: read) == .refused, "\(story)")
                    #expect(contents.item(story.id)?.isLost(to: read) == true, "\(story)")
                } else {
                    #expect(read.state == .paid && read.deliveryIDs.count == 1, "\(story) \(read)")
                    #expect(read.cause == "token" || !story.namesOrder, "\(story) \(read)")
                }
                if let theirs {
                    let ends = isGiven ? ", delivered acknowledged" : ", created moved"
                    #expect(try await test.log(of: theirs) == "created placed, paid product\(ends)", "\(story)")
                }
                let lines = try await test.deliveries()
                #expect(
                    lines.last
                        == (isGiven ? "1 purchase acknowledged \(story.bob) 100" : "3 purchase due \(story.ann) 100"),
                    "\(story)")
                #expect(try await test.violations() == [], "\(story)")
            }
        }
    }

    private func answer(_ story: Story, _ order: PlacedOrder, asOf: Double, in test: TestLedger) -> Finding {
        test.bought([(story.id, "coins")], asOf: asOf).carrying(story.namesOrder ? order.appAccountToken : story.ann)
    }

    /// Apple shows the token.
    private func learn(_ story: Story, _ order: PlacedOrder, in test: TestLedger) async throws {
        let (known, answer) = ("receipt of \(story.id)", self.answer(story, order, asOf: -0.9, in: test))
        switch story.path {
        case .upload: try await test.check(try await test.upload("of ann \(story.id)", by: story.ann), answer)
        case .uploadByOther: try await test.check(try await test.upload(known, by: story.bob), answer)
        case .uploadForOrder:
            try await test.check(try await test.send("of ann \(story.id)", for: order, by: story.ann), answer)
        case .proof: try await test.check(try await test.send("of ann \(story.id)", for: order), answer)
        case .scheduledCheck:
            let id = try await test.text("SELECT max(receipt_id)::text FROM ledger.receipt")
            try await test.check(ReceiptID(try #require(Int64(id))), answer)
        case .signedText: try await test.show(.signedTransaction, story.id, by: story.ann, answer)
        case .signedTextByOther: try await test.show(.signedTransaction, story.id, by: story.bob, answer)
        case .pointerByThird: try await test.show(.transactionID, story.id, by: "eve", answer)
        }
    }
}
