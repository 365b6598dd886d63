import Subscriptions
import Testing

@testable import Ledger

@Suite("The id of a transaction alone takes nothing from an owner")
struct PointerTests {
    private func pointer(_ test: TestLedger, by customer: String) async throws -> ReceiptID {
        let upload = Upload(
            appID: test.app.id, customer: customer, receipt: Array("1000".utf8), imported: false,
            form: .transactionID, transactionID: "1000")
        return try #require(try await test.ledger.intake.store([upload]).first).receiptID
    }

    private func settle(_ test: TestLedger, _ receipt: ReceiptID, _ answer: Answer) async throws -> Settled {
        let settlement = Settlement(
            claim: try await test.claim(receipt), finding: .verified(answer.evidence), body: Array("{}".utf8),
            latestReceipt: nil, server: ServerRead(beginsAtStart: true, revision: "r", goesOn: false))
        return try #require(try await test.ledger.settlements.settleInFull([settlement]).settled.first)
    }

    @Test("It gets what has no owner; live or over, what has one stays")
    func owned() async throws {
        for days in [-9.0, -90] {
            try await withLedger { test in
                let answer = Answer(from: test.at(days), asOf: test.at(-1))
                let first = try await settle(test, try await pointer(test, by: "eve"), answer)
                #expect(first.vouching == .pointer)
                #expect(first.subscriptions.first?.ownership[AppCustomerID("eve")] == .assigned)
                let later = try await test.check(try await test.upload("receipt", by: "ann"), answer)
                #expect(later.vouching == .vouched)
                #expect(later.subscriptions.first?.ownership[AppCustomerID("ann")] == .transferred)
                let again = try await settle(test, try await pointer(test, by: "bob"), answer)
                #expect(
                    again.subscriptions.first?.ownership[AppCustomerID("bob")]
                        == .refused("The id of a transaction alone takes nothing from an owner."))
            }
        }
    }

    @Test("A read of the history is remembered, and a check reads on from there")
    func history() async throws {
        try await withLedger { test in
            let receipt = try await pointer(test, by: "ann")
            let before = try await test.claim(receipt)
            #expect(before.form == .transactionID && before.transactionID == "1000" && before.historyRevision == nil)
            try await test.ledger.claims.release([before])
            _ = try await settle(test, receipt, Answer(from: test.at(-9), asOf: test.at(-1)))
            let after = try await test.claim(receipt)
            #expect(after.historyRevision == "r" && !after.isVouched)
            try await test.ledger.claims.release([after])
            let receipts = try await test.upload("other")
            try await test.check(receipts, Answer(from: test.at(-9), asOf: test.at(-1)))
            let vouched = try await test.claim(receipts)
            #expect(vouched.isVouched && vouched.transactionID == "1000" && vouched.historyRevision == nil)
        }
    }
}
