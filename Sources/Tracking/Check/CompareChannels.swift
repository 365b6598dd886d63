import AppStore
import Postgres
import SQL
package import Subscriptions

extension Tracker {
    /// Records what both channels said about receipts of apps that ask both.
    func compareChannels(of answers: [Checked]) async {
        let compared = answers.compactMap(\.comparedReceipt)
        guard !compared.isEmpty else { return }
        await attempt("compare the channels", tries: 3) { try await ledger.settlements.record(compared) }
        for checked in answers {
            if let verdict = checked.answer.compared, verdict.fault != nil || verdict.contents != nil {
                conditions.see(.serverAPI(checked.claim.app.bundleID), verdict.fault)
            }
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
        guard let compared = answer.compared, case .verified(let receipt) = finding else { return nil }
        return ComparedReceipt(
            receiptID: claim.receiptID, appID: claim.app.id, environment: receipt.environment,
            comparison: comparison(of: receipt, with: compared))
    }

    /// Compares both answers; nil where one of them does not speak for everything.
    private func comparison(of receipt: Evidence, with verdict: ServerVerdict) -> ChannelComparison? {
        guard receipt.isComplete, let contents = verdict.contents, !contents.goesOn, contents.statuses != nil,
            let server = Evidence(in: contents, bundleID: claim.app.bundleID, claimedAt: claim.claimedAt),
            server.isComplete, server.environment == receipt.environment
        else { return nil }
        return ChannelComparison(receipt, server, consumables: contents.consumables)
    }
}

extension ServerContents {
    fileprivate var consumables: Set<TransactionID> {
        let signed = (transactions ?? []).compactMap(\.transaction)
        return Set(signed.filter { $0.kind == "Consumable" }.map(\.row.transactionID))
    }
}

/// A receipt about which both channels were asked.
package struct ComparedReceipt: Sendable {
    package let receiptID: ReceiptID
    package let appID: Int32
    package let environment: StoreEnvironment
    /// What both state; nil where one of them gave no whole answer.
    package let comparison: ChannelComparison?
}

extension LedgerSettlements {
    /// How long a difference may be a delay between the channels, in seconds.
    package static let channelDelaySecondsMax = 3_600.0
    /// How soon both channels are asked again after a difference, in seconds; later the longer they differ.
    static let channelRepeatSeconds = 60.0

    /// Records what both channels said about receipts. A difference that is not seen again has ended; one that may be a
    /// delay brings the next check forward.
    package func record(_ receipts: [ComparedReceipt]) async throws {
        guard !receipts.isEmpty else { return }
        let ids = Parameter.int8s(receipts.map(\.receiptID.number).sorted())
        let items = receipts.flatMap { receipt in (receipt.comparison?.compared ?? []).map { (receipt, $0) } }
        let compared: [Parameter] = [
            .int4s(items.map(\.0.appID)), .texts(items.map(\.0.environment.rawValue)), .texts(items.map(\.1.text)),
        ]
        let differences = receipts.flatMap { receipt in (receipt.comparison?.differences ?? []).map { (receipt, $0) } }
        let keys: [Parameter] = [
            .int4s(differences.map(\.0.appID)), .texts(differences.map(\.0.environment.rawValue)),
            .texts(differences.map(\.1.originalTransactionID.text)),
            .texts(differences.map { $1.transactionID?.text ?? "" }), .texts(differences.map(\.1.fact.rawValue)),
        ]
        let values: [Parameter] = [
            .texts(differences.map(\.1.verifyReceipt)), .texts(differences.map(\.1.serverAPI)),
            .texts(differences.map { $1.explanation?.rawValue }),
        ]
        let speedup = Double(ledger.speedup)
        try await ledger.retryingCollisions {
            try await ledger.database.transaction { transaction in
                _ = try transaction.query(Queries.noteComparisons, [ids] + compared)
                _ = try transaction.query(Queries.endDifferences, compared + keys)
                guard !differences.isEmpty else { return }
                _ = try transaction.query(
                    Queries.storeDifferences, keys + values + [.float8(Self.channelDelaySecondsMax / speedup)])
                _ = try transaction.query(Queries.askAgain, ids, .float8(Self.channelRepeatSeconds / speedup))
            }
        }
    }
}

extension LedgerClaims {
    /// The seconds between two steps of the walk.
    package static let channelStepSeconds = 10.0
    /// The part of the app's rate that the walk may use.
    private static let rateShare = 0.25
    /// The most receipts of one step.
    private static let receiptsMax = 500
    /// How long after the begin of a walk the next one begins, in seconds.
    private static let roundSeconds = 86_400.0

    /// Brings forward the checks of subscriptions with access about which the channels were not compared, a few at a
    /// time: their next checks may be a month away.
    package func hastenComparisons(of app: App) async throws {
        guard app.verifier == .both else { return }
        let rate = app.callsPerSecond > 0 ? app.callsPerSecond * Self.rateShare * Self.channelStepSeconds : .infinity
        let receipts = max(1, min(Double(Self.receiptsMax), rate))
        _ = try await write(
            Queries.beginChannelWalk, .int4(app.id), .float8(Self.roundSeconds / Double(ledger.speedup)))
        _ = try await write(Queries.continueChannelWalk, .int4(app.id), .int4(Int32(receipts)))
    }
}

/// How far the comparison of verifyReceipt and the Server API came for an app that asks both.
package struct ChannelStanding: Sendable, Hashable {
    /// How long both channels have to be asked before one of them may be left.
    package static let daysMin: Int64 = 7
    /// The part of the subscriptions with access that has to be compared.
    package static let comparedMin = 0.99

    /// How long both are asked.
    package let age: Delay
    /// How long they have to be.
    package let ageMin: Delay
    /// The subscriptions with access.
    package let live: Int64
    package let compared: Int64
    /// Differences that nothing explains, or not yet.
    package let open: Int64

    /// What is missing before the app may leave one of the channels, in one sentence; nil where nothing is.
    package var obstacle: String? {
        if age < ageMin {
            let days = age.milliseconds / Delay.days(1).milliseconds
            return "both channels are asked for \(days) of \(Self.daysMin) days"
        }
        if Double(compared) < Self.comparedMin * Double(live) {
            return "\(compared) of \(live) live subscriptions are compared, and 99 % have to be"
        }
        return open == 0 ? nil : "\(open) differences are not explained"
    }
}

extension LedgerApps {
    /// Returns how far the comparison of an app's channels came; nil where only one channel is asked.
    package func channelStanding(of bundleID: BundleID) async throws -> ChannelStanding? {
        try await query(Queries.readChannelStanding, .text(bundleID.text)).first.map { row in
            ChannelStanding(
                age: try row.instant("at") - row.instant("compares_since"),
                ageMin: Delay.days(ChannelStanding.daysMin).divided(by: ledger.speedup),
                live: try row.int8("live"), compared: try row.int8("compared"), open: try row.int8("open"))
        }
    }
}
