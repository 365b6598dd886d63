import AppStore
import Ledger
import Subscriptions

extension Tracker {
    /// Records what both channels said about receipts of apps that ask both.
    func compareChannels(of answers: [Checked]) async {
        let compared = answers.compactMap(\.comparedReceipt)
        guard !compared.isEmpty else { return }
        await attempt("compare the channels", tries: 3) { try await ledger.settlements.record(compared) }
        for checked in answers {
            guard let verdict = checked.compared?.server, verdict.fault != nil || verdict.contents != nil else {
                continue
            }
            conditions.see(.serverAPI(checked.claim.app.bundleID), verdict.fault)
        }
    }

    /// Brings forward checks of apps that ask both channels, so that all subscriptions are compared within days.
    func hastenComparisons() async throws {
        for app in try await ledger.apps.all() { try await ledger.claims.hastenComparisons(of: app) }
    }
}

extension Checked {
    /// What both channels said; nil where only one was asked, or verifyReceipt did not vouch for the receipt.
    fileprivate var comparedReceipt: ComparedReceipt? {
        guard let compared, case .verified(let receipt) = finding else { return nil }
        return ComparedReceipt(
            receiptID: claim.receiptID, appID: claim.app.id, environment: receipt.environment,
            comparison: comparison(of: receipt, with: compared))
    }

    /// Compares both answers; nil where one of them does not speak for everything.
    private func comparison(of receipt: Evidence, with other: AppStoreAnswer) -> ChannelComparison? {
        guard receipt.isComplete, let contents = other.server?.contents, !contents.goesOn, contents.statuses != nil,
            let server = Evidence(in: contents, bundleID: claim.app.bundleID, claimedAt: claim.claimedAt),
            server.isComplete,
            server.environment == receipt.environment
        else { return nil }
        return ChannelComparison(receipt, server, consumables: contents.consumables)
    }
}

extension ServerContents {
    /// The transactions that Apple calls consumables.
    fileprivate var consumables: Set<TransactionID> {
        Set(
            (transactions ?? []).compactMap { text in
                let signed = text.payload.flatMap { SignedTransaction(payload: $0) }
                return signed?.kind == "Consumable" ? signed.map { TransactionID($0.transactionID.storable) } : nil
            })
    }
}
