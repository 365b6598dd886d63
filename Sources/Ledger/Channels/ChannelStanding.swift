import Postgres
import SQL
package import Subscriptions

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
    /// Those that were compared.
    package let compared: Int64
    /// Differences that nothing explains, or not yet.
    package let open: Int64

    /// Creates it from its parts; `speedup` divides the time that both have to be asked.
    package init(age: Delay, live: Int64, compared: Int64, open: Int64, speedup: Int = 1) {
        (self.age, self.live, self.compared, self.open) = (age, live, compared, open)
        ageMin = Delay.days(Self.daysMin).divided(by: speedup)
    }

    /// What is missing before the app may leave one of the channels, in one sentence; nil where nothing is.
    package var obstacle: String? {
        if age < ageMin {
            return "both channels are asked for \(age.inDays) of \(Self.daysMin) days"
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
        try await query(Queries.readChannelStanding, [.text(bundleID.text)]).first.map { row in
            ChannelStanding(
                age: try row.instant("at") - row.instant("compares_since"), live: try row.int8("live"),
                compared: try row.int8("compared"), open: try row.int8("open"), speedup: ledger.speedup)
        }
    }

    /// Throws `invalid` where an app may not change who is asked about its receipts: it has no key for the Server API, or
    /// it would leave `both` too early and the change is not forced.
    func requireVerifier(of bundleID: BundleID, _ change: AppChange) async throws {
        guard let verifier = change.verifier else { return }
        let app = try await app(bundleID)
        if verifier != .verifyReceipt, app.serverKey == nil {
            throw LedgerError(
                .invalid,
                "\(bundleID) has no key for the Server API; store it with `perennial app server-key --app \(bundleID)`."
            )
        }
        guard app.verifier == .both, verifier != .both, change.forcedBecause == nil,
            let obstacle = try await channelStanding(of: bundleID)?.obstacle
        else { return }
        throw LedgerError(
            .invalid,
            "\(bundleID) asks both channels still: \(obstacle); see `perennial report channel_differences --app "
                + "\(bundleID)`, or give --force and --reason.")
    }
}

extension Delay {
    /// The whole days.
    fileprivate var inDays: Int64 { milliseconds / Delay.days(1).milliseconds }
}
