import AppStore
import Foundation
import Ledger
import Subscriptions

/// What Apple says of a shared secret.
package enum SecretTrial: Sendable, Hashable {
    /// Apple answered about this receipt.
    case accepted(ReceiptID)
    /// 21004 about this receipt.
    case refused(ReceiptID)
    /// Apple gave no answer that tells; one sentence.
    case untold(String)
    /// No stored receipt holds a subscription, so there is nothing to ask about.
    case noReceipt
}

extension Tracker {
    /// How many receipts a secret is tried on until one answer tells, at most.
    static let trialReceiptsMax = 3

    /// Tries a shared secret that is not in place yet on stored receipts, outside the app's budget: its pause may be for the
    /// wrong secret that this one replaces. Nothing is settled.
    package func trySecret(_ secret: String, of app: App) async throws -> SecretTrial {
        var trial = SecretTrial.noReceipt
        for receipt in try await ledger.tellingReceipts(of: app, limit: Self.trialReceiptsMax) {
            let answer = await appStore.verify(
                AppStoreRequest(
                    receipt: Data(receipt.receipt).base64EncodedString(), secret: secret,
                    askFirst: receipt.environment.map(Endpoint.init) ?? .production,
                    sandboxAllowed: app.sandboxAllowed))
            trial = SecretTrial(of: answer, about: receipt.receiptID)
            switch trial {
            case .accepted, .refused: return trial
            case .untold, .noReceipt: continue
            }
        }
        return trial
    }
}

extension SecretTrial {
    /// Apple looks at the secret after the receipt's form, signature and environment, so that only these answers tell.
    init(of answer: AppStoreAnswer, about receipt: ReceiptID) {
        switch answer.response?.status {
        case 0, 21006: self = .accepted(receipt)
        case 21004: self = .refused(receipt)
        case .some(let status): self = .untold("Apple answered \(status) about receipt \(receipt).")
        case nil: self = .untold(answer.trouble ?? "Apple gave no answer about receipt \(receipt).")
        }
    }
}
