import Subscriptions
import Testing

@testable import Tracking

/// How a customer shows a purchase.
enum Showing: CaseIterable {
    /// A receipt for which verifyReceipt vouches.
    case receipt
    /// A text that Apple signed.
    case signedTransaction
    /// The bare id of a transaction.
    case transactionID
    /// A receipt for which Apple did not vouch: the Server API is asked by the id in it.
    case unvouchedReceipt

    private var form: SubmittedForm {
        switch self {
        case .receipt, .unvouchedReceipt: .receipt
        case .signedTransaction: .signedTransaction
        case .transactionID: .transactionID
        }
    }

    /// How the Server API is read for it; nil: verifyReceipt answers.
    var read: ServerRead? {
        switch self {
        case .receipt: nil
        case .signedTransaction, .transactionID, .unvouchedReceipt:
            ServerRead(beginsAtStart: true, revision: "r", goesOn: false)
        }
    }

    /// Returns the upload of a text by a customer.
    func upload(_ text: String, by customer: String, of app: App, imported: Bool = false) -> Upload {
        Upload(
            appID: app.id, customer: customer, receipt: Array(text.utf8), imported: imported, form: form,
            transactionID: form == .receipt ? nil : TransactionID(text),
            environment: form == .signedTransaction ? .production : nil)
    }
}

extension TestLedger {
    /// A customer shows a purchase, perhaps for an order, and Apple answers.
    @discardableResult
    func show(
        _ showing: Showing, _ text: String, by customer: String, for order: OrderReference? = nil, _ finding: Finding
    ) async throws -> Settled {
        var upload = showing.upload(text, by: customer, of: app)
        upload.order = order
        let stored = try await ledger.intake.store([upload])
        let claim = try await claim(try #require(stored.first).receiptID)
        let settlement = Settlement(
            claim: claim, finding: finding, body: Array("{}".utf8), latestReceipt: nil, server: showing.read)
        let batch = try await ledger.settlements.settleInFull([settlement])
        #expect(batch.failures.map(\.reason) == [])
        return try #require(batch.settled.first)
    }
}
