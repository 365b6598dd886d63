import Subscriptions
import TestSupport
import Testing

@testable import Tracking

/// The rows of the table in docs/purchases.md: what an upload for an unpaid order of ann's says where a receipt holds one
/// purchase.
enum Held: String, CaseIterable, CustomTestStringConvertible {
    case paysAnotherOrderOfHers, paysAnOrderOfAnother, tokenOfAnothersOrder, tokenOfAnotherOrderOfHers
    case tokenOfAnother, familyMembers, takenBack, takenBackWithTokenOfAnother, ownedByAnother, possibleDuplicate
    case ownedNonConsumable, anotherProduct, anotherQuantity, boughtBefore, assignedAfterGiven, takenAfterGiven
    case pointedAt, pointedAtByAnother

    var testDescription: String { rawValue }

    var fit: ReceiptPurchases.Fit {
        switch self {
        case .paysAnOrderOfAnother, .ownedByAnother, .takenBack, .possibleDuplicate, .assignedAfterGiven,
            .takenAfterGiven:
            .refused
        case .ownedNonConsumable: .owned
        case .paysAnotherOrderOfHers, .tokenOfAnothersOrder, .tokenOfAnotherOrderOfHers, .tokenOfAnother,
            .familyMembers, .takenBackWithTokenOfAnother, .anotherProduct, .anotherQuantity, .boughtBefore, .pointedAt,
            .pointedAtByAnother:
            .nothing
        }
    }
}

@Suite("What an upload answers about an order that is not paid")
struct UploadFitTests {
    private static let stranger = "3f2504e0-4f89-41d3-9a0c-0305e82c3301"

    /// Makes what is held, and returns Apple's answer about it.
    private func arrange(_ held: Held, _ order: PlacedOrder, in test: TestLedger) async throws -> Finding {
        var answer = test.bought([("p", "coins")], asOf: -0.9)
        switch held {
        case .paysAnotherOrderOfHers:
            _ = try await test.place(days: -2.5)
            try await test.buys("p")
            try await test.acknowledgeAll()
        case .paysAnOrderOfAnother:
            _ = try await test.place(by: "bob")
            try await test.buys("p", by: "bob")
        case .tokenOfAnothersOrder:
            answer = answer.carrying(try await test.place(by: "bob", days: -1).appAccountToken)
        case .tokenOfAnotherOrderOfHers:
            answer = answer.carrying(try await test.place("themes").appAccountToken)
        case .tokenOfAnother, .takenBackWithTokenOfAnother:
            try await test.upload("of a stranger", by: Self.stranger)
            if held == .takenBackWithTokenOfAnother { answer = answer.but { $0.cancelledAt = test.at(-1.5) } }
            answer = answer.carrying(Self.stranger)
        case .familyMembers: answer = answer.but { $0.ownership = .familyShared }
        case .takenBack: answer = answer.but { $0.cancelledAt = test.at(-1.5) }
        case .ownedByAnother:
            try await test.buys("p", by: "bob")
            try await test.acknowledgeAll()
        case .assignedAfterGiven:
            try await test.buys("p", by: "bob")
            try await test.acknowledgeAll()
            _ = try await test.ledger.customers.assign(
                "p", to: "ann", of: test.app.bundleID, deciding: ManualDecision(by: "kim", because: "called"))
        case .takenAfterGiven:
            try await test.buys("p", by: "bob")
            try await test.acknowledgeAll()
            answer = answer.carrying(order.appAccountToken)
        case .possibleDuplicate:
            _ = try await test.place(days: -2.5)
            try await test.buys("o")
            try await test.acknowledgeAll()
        case .ownedNonConsumable:
            answer = test.bought([("p", "themes")], days: -20, asOf: -0.9)
        case .pointedAt, .pointedAtByAnother: break
        case .anotherProduct: answer = test.bought([("p", "themes")], asOf: -0.9)
        case .anotherQuantity: answer = answer.but { $0.quantity = 2 }
        case .boughtBefore: answer = test.bought([("p", "coins")], days: -3.1, asOf: -0.9)
        }
        return answer
    }

    @Test("Each row of the table has its answer", arguments: Held.allCases)
    func rows(held: Held) async throws {
        try await withLedger { test in
            try await test.sellDeliverables()
            let order = try await test.place(held == .ownedNonConsumable ? "themes" : "coins")
            let answer = try await arrange(held, order, in: test)
            let receipt: ReceiptID
            if held.isPointedAt {
                if held == .pointedAtByAnother { try await test.show(.transactionID, "p", by: "bob", answer) }
                let reference = OrderReference(id: order.id, isProved: false, transactionID: "p")
                receipt = try await test.show(.transactionID, "p", by: "ann", for: reference, answer).receiptID
            } else {
                receipt = try await test.send("receipt of p", for: order, by: held.isSentByDevice ? nil : "ann")
                try await test.check(receipt, answer)
            }
            let read = try #require(try await test.ledger.orders.read(order.id, of: test.app.bundleID))
            #expect(read.transactionID == nil, "\(read)")
            let contents = try await test.ledger.intake.purchases(in: receipt, for: "ann")
            #expect(contents.items.map(\.transactionID) == ["p"])
            #expect(contents.fit(for: read) == held.fit)
            #expect(contents.fit(for: read, naming: "p") == held.fit)
            // What the caller names is not said to have succeeded for an order that stays unpaid.
            #expect(contents.item("p")?.isLost(to: read) == held.isLost)
            // What the customer owns already may be finished by the device that sent it.
            #expect(contents.only(of: read).finishable == (held == .ownedNonConsumable ? ["p"] : []))
            #expect(try await test.violations() == [])
        }
    }
}

extension Held {
    /// Whether `failed` is the answer where the caller names it.
    fileprivate var isLost: Bool {
        switch self {
        case .paysAnotherOrderOfHers, .paysAnOrderOfAnother, .ownedByAnother, .takenBack, .takenBackWithTokenOfAnother,
            .tokenOfAnothersOrder, .tokenOfAnother, .assignedAfterGiven, .takenAfterGiven:
            true
        case .tokenOfAnotherOrderOfHers, .familyMembers, .possibleDuplicate, .ownedNonConsumable, .anotherProduct,
            .anotherQuantity, .boughtBefore,
            .pointedAt, .pointedAtByAnother:
            false
        }
    }

    fileprivate var isPointedAt: Bool { self == .pointedAt || self == .pointedAtByAnother }

    fileprivate var isSentByDevice: Bool {
        switch self {
        case .paysAnOrderOfAnother, .ownedByAnother: true
        case .paysAnotherOrderOfHers, .tokenOfAnothersOrder, .tokenOfAnotherOrderOfHers, .tokenOfAnother,
            .familyMembers, .takenBack, .takenBackWithTokenOfAnother, .possibleDuplicate, .ownedNonConsumable,
            .anotherProduct, .anotherQuantity, .boughtBefore, .assignedAfterGiven, .takenAfterGiven,
            .pointedAt, .pointedAtByAnother:
            false
        }
    }
}

extension Finding {
    /// The same, with another first row.
    fileprivate func but(_ change: (inout TransactionRow) -> Void) -> Finding {
        guard case .verified(var evidence) = self else { return self }
        change(&evidence.transactions[0])
        return .verified(evidence)
    }
}
