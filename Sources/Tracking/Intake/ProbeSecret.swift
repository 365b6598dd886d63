import AppStore
import Foundation
package import Ledger
import Subscriptions

/// Apple's verdict on a shared secret.
package enum SecretProbe: Sendable, Hashable {
    /// Apple accepted the secret with this receipt.
    case accepted(ReceiptID)
    /// Apple answered 21004 about this receipt.
    case refused(ReceiptID)
    /// Apple gave no conclusive answer; one sentence.
    case inconclusive(String)
    /// No stored receipt contains a subscription, so there is nothing to ask about.
    case noReceipt
}

extension Tracker {
    /// The most receipts that a secret is tried on until one answer is conclusive.
    static let trialReceiptsMax = 3

    /// Tries a shared secret that is not in use yet on stored receipts. The calls are outside the app's budget: the app
    /// may be paused because of the wrong secret that this one replaces. Settles nothing.
    package func probeSecret(_ secret: String, of app: App) async throws -> SecretProbe {
        var trial = SecretProbe.noReceipt
        for receipt in try await ledger.apps.tellingReceipts(of: app, limit: Self.trialReceiptsMax) {
            let answer = await appStore.verify(
                AppStoreRequest(
                    receipt: Data(receipt.receipt).base64EncodedString(), secret: secret,
                    askFirst: receipt.environment.map(Endpoint.init) ?? .production,
                    sandboxAllowed: app.sandboxAllowed))
            trial = SecretProbe(of: answer, about: receipt.receiptID)
            switch trial {
            case .accepted, .refused: return trial
            case .inconclusive, .noReceipt: continue
            }
        }
        return trial
    }
}

extension SecretProbe {
    /// Reads the verdict from an answer. Apple looks at the secret after the receipt's form, signature and environment,
    /// so only these answers are conclusive.
    init(of answer: AppStoreAnswer, about receipt: ReceiptID) {
        switch answer.response?.status {
        case 0, 21006: self = .accepted(receipt)
        case 21004: self = .refused(receipt)
        case .some(let status): self = .inconclusive("Apple answered \(status) about receipt \(receipt).")
        case nil: self = .inconclusive(answer.failure ?? "Apple gave no answer about receipt \(receipt).")
        }
    }
}
