import Foundation
import Subscriptions
import TestSupport
import Testing

@testable import Tracking

@Suite("Receipts that are sent for orders are limited, and go with their customer")
struct ProofReceiptTests {
    @Test("Each order frees one new receipt of its customer's hourly limit, by a device or a service")
    func freed() async throws {
        try await withLedger { test in
            try await test.sellDeliverables()
            for index in 0..<10 {
                _ = try await test.ledger.intake.store([test.launch("\(index)")], newReceiptsMax: 10)
            }
            await #expect(throws: LedgerError.self) {
                try await test.ledger.intake.store([test.launch("10")], newReceiptsMax: 10)
            }
            for index in 0..<3 {
                let order = try await test.place()
                _ = try await test.send("pack \(index)", for: order, by: "ann")
                await #expect(throws: LedgerError.self) {
                    try await test.send("one more \(index)", for: order, by: "ann")
                }
            }
        }
    }

    @Test("One new receipt of an order is outside the hourly limit of its customer")
    func flood() async throws {
        try await withLedger { test in
            try await test.sellDeliverables()
            let order = try await test.place()
            for index in 0..<11 { _ = try await test.send("receipt \(index)", for: order) }
            let error = await #expect(throws: LedgerError.self) { try await test.send("one more", for: order) }
            guard case .exhausted(let seconds) = error?.kind else {
                Issue.record("\(String(describing: error))")
                return
            }
            #expect((3_500...3_600).contains(seconds))
            _ = try await test.send("receipt 3", for: order)
            #expect(try await test.text("SELECT count(*) FROM ledger.order_receipt") == "11")
            #expect(try await test.text("SELECT count(*) FROM ledger.upload") == "0")
        }
    }

    @Test("An erasure covers the receipts that devices sent for the customer's orders")
    func erased() async throws {
        try await withLedger { test in
            try await test.sellDeliverables()
            let (order, other) = (try await test.place(), try await test.place(by: "bob"))
            try await test.check(try await test.send("device", for: order), test.bought([("p", "coins")]))
            let shared = try await test.send("of two", for: order)
            _ = try await test.send("of two", for: other)
            let erasure = try await test.ledger.customers.erase(
                "ann", of: test.app.bundleID, deciding: ManualDecision(by: "kim", because: "asked for it"))
            #expect(erasure.receipts == 1 && erasure.sharedReceipts == 1)
            #expect(
                try await test.text("SELECT string_agg(receipt_id::text, ' ') FROM ledger.order_receipt")
                    == "\(shared.number)")
            #expect(try await test.text("SELECT count(*) FROM ledger.receipt WHERE data = ''") == "1")
            let error = await #expect(throws: LedgerError.self) { try await test.send("late", for: order) }
            #expect(error?.kind == .busy)
            #expect(try await test.violations() == [])
        }
    }
}

extension TestLedger {
    /// A receipt that ann's service uploads for no order.
    fileprivate func launch(_ receipt: String) -> Upload {
        Upload(appID: app.id, customer: "ann", receipt: Array(receipt.utf8), imported: false)
    }
}
