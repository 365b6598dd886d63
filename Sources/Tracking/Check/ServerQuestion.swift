import AppStore
import Ledger
import Subscriptions

/// Whether, by which transaction, and how much the Server API is asked about a claimed receipt.
struct ServerQuestion: Sendable, Hashable {
    /// Whether the Server API is asked at all.
    let asksServer: Bool
    /// Whether verifyReceipt is asked first, to vouch for the receipt: its bytes can be edited.
    let vouchesFirst: Bool
    /// Whether both channels are asked, to compare what they say.
    let compares: Bool
    /// The transaction to ask by; nil where none is known.
    let transactionID: String?
    /// How much to read.
    let reading: ServerReading

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
        reading = compares ? .all(from: nil) : ServerReading(for: claim)
    }

    private static func localTransactionID(of receipt: [UInt8], _ isReceipt: Bool) -> String? {
        guard isReceipt, let local = LocalReading(of: receipt).receipt else { return nil }
        return local.purchases.lazy.map(\.originalTransactionID).first { $0 != "0" }
    }
}

extension ServerReading {
    /// The age from which the history is read in every check, so that 30 days do not pass without: checks about the ends of
    /// short periods may leave no room for sweeps.
    private static let historyAgeMax = Delay.days(21)

    /// Chooses how much a check reads: everything at first sight and where it is wanted, the history from where it was
    /// read in a sweep and where that is long ago, else the statuses. In a sweep that can confirm, the statuses follow only
    /// if the history has news.
    init(for claim: Claim) {
        let history = claim.history
        guard let revision = history.revision, history.goesOn || !history.readsWhole else {
            self = .all(from: nil)
            return
        }
        let isSweep = claim.lane == .sweep && !history.goesOn
        if isSweep, claim.canConfirm {
            self = .news(since: revision)
        } else {
            self = isSweep || history.goesOn || Self.isOld(claim) ? .all(from: revision) : .statuses(since: revision)
        }
    }

    private static func isOld(_ claim: Claim) -> Bool {
        guard let readAt = claim.history.readAt else { return true }
        let speedup = claim.app.policy(for: claim.environment ?? .production).speedup
        return claim.claimedAt - readAt >= historyAgeMax.divided(by: speedup)
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
