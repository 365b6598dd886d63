import Postgres
import SQL

extension LedgerClaims {
    /// The seconds between two steps of the walk.
    package static let channelStepSeconds = 10.0
    /// The part of the app's rate that the walk may use.
    private static let rateShare = 0.25
    /// The most receipts of one step.
    private static let receiptsMax = 500
    /// How long after the begin of a walk the next one begins, in seconds.
    private static let roundSeconds = 86_400.0

    /// Brings forward the checks of subscriptions with access about which the channels were not compared, a few at a time:
    /// their next checks may be a month away.
    package func hastenComparisons(of app: App) async throws {
        guard app.verifier == .both else { return }
        let rate = app.callsPerSecond > 0 ? app.callsPerSecond * Self.rateShare * Self.channelStepSeconds : .infinity
        let receipts = max(1, min(Double(Self.receiptsMax), rate))
        _ = try await write(
            Queries.beginChannelWalk, [.int4(app.id), .float8(Self.roundSeconds / Double(ledger.speedup))])
        _ = try await write(Queries.continueChannelWalk, [.int4(app.id), .int4(Int32(receipts))])
    }
}
