import AppStore
import Ledger
import Subscriptions

/// Whether, by which transaction, and from where on the Server API is asked about a claimed receipt.
struct ServerQuestion: Sendable, Hashable {
    /// Whether the Server API is asked at all.
    let asksServer: Bool
    /// Whether verifyReceipt is asked first, to vouch for the receipt: its bytes can be edited.
    let vouchesFirst: Bool
    /// Whether both channels are asked, to compare what they say.
    let compares: Bool
    /// The transaction to ask by; nil where none is known.
    let transactionID: String?
    /// The revision after which the history is read; nil: from its start.
    let revision: String?

    init(about claim: Claim) {
        let isReceipt = claim.form == .receipt
        let wantsServer = !isReceipt || claim.app.verifier != .verifyReceipt
        transactionID =
            wantsServer ? claim.transactionID?.text ?? Self.localTransactionID(of: claim.receipt, isReceipt) : nil
        // A receipt without purchases gives no id.
        asksServer = wantsServer && (transactionID != nil || !isReceipt)
        compares = isReceipt && claim.app.verifier == .both && claim.environment != nil && asksServer
        vouchesFirst =
            isReceipt && claim.app.hasSecret
            && (claim.app.verifier == .both || !claim.isVouched && claim.fingerprint == nil)
        // Only everything can be compared with everything.
        revision = compares ? nil : claim.historyRevision
    }

    private static func localTransactionID(of receipt: [UInt8], _ isReceipt: Bool) -> String? {
        guard isReceipt, let local = LocalReading(of: receipt).receipt else { return nil }
        return local.purchases.lazy.map(\.originalTransactionID).first { $0 != "0" }
    }
}

extension AppStoreAnswer {
    /// Whether verifyReceipt said what it thinks of the receipt.
    var isVerdict: Bool {
        switch response?.status {
        case 0, 21003, 21006, 21007, 21008, 21010: httpStatus == 200
        case .some, nil: false
        }
    }
}
