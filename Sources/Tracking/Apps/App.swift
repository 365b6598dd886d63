import Postgres
import SQL
package import Subscriptions

/// A registered app with its settings; its secrets stay sealed until a check needs them.
package struct App: Sendable, Hashable {
    package let id: Int32
    package let bundleID: BundleID
    package let name: String
    package let sandboxAllowed: Bool
    /// The policy for the case that another customer uploads an owned subscription.
    package let ownershipPolicy: OwnershipPolicy
    /// How late a renewal may be in production before access ends.
    package let leeway: Delay
    /// How late a renewal may be in the sandbox before access ends.
    package let sandboxLeeway: Delay
    /// The outage allowance: how long access goes on while Apple cannot be asked.
    package let outageAllowance: Delay
    /// The time over which checks shortly before an end are spread; longer where many subscriptions end together.
    package let preCheckSpread: Delay
    /// The configured rate limit for calls to Apple, in calls a second; 0 is unlimited.
    package let callsPerSecond: Double
    /// The number of calls that may be made at once after a pause.
    package let burst: Double
    package let sweep: SweepFrequency
    /// Whether Apple's notifications are accepted as hints.
    package let takesNotifications: Bool
    /// The key that signs its promotional offers, by name; nil when there is none.
    package let offerKey: ConnectKeyName?
    package let verifier: Verifier
    package let appleAppID: Int64?
    /// The key that signs its requests to the Server API, by name; nil when there is none.
    package let serverKey: ConnectKeyName?
    /// The app's current rate limit, as of the time when this value was read.
    package let rateLimit: CallRateLimit
    /// The rate limit at that time, in calls a second; 0 is unlimited.
    package let callsPerSecondNow: Double
    /// The number of consecutive rounds of calls, for any app, that brought no answer.
    package let appleFailures: Int
    /// The current pause of all scheduled checks of the app, with its end and reason; nil when there is none.
    package let pause: Pause?
    /// Where Apple refuses the shared secret, so that verifyReceipt is not asked there; `until` is the next trial.
    package internal(set) var secretPauses: [StoreEnvironment: Pause] = [:]
    /// Where Apple refuses the present shared secret and accepts the previous one, with which checks go on; since when.
    package internal(set) var previousSecrets: [StoreEnvironment: Instant] = [:]
    /// Where Apple refused the present shared secret about receipts, and no trial has shown whether it accepts it.
    package internal(set) var secretDoubts: [SecretDoubt] = []
    /// Where the calls of the Server API are paused, because Apple refuses the server key or asks for fewer requests.
    package internal(set) var callPauses: [StoreEnvironment: Pause] = [:]
    /// The divisor of all delays with an accelerated App Store; 1 in production.
    package var speedup: Int
    let sealedSecret: [UInt8]?
    let sealedPreviousSecret: [UInt8]?
    let sealedServerKey: [UInt8]?

    /// Where Apple refused the shared secret about receipts, maybe of another app, and no trial has shown whose fault it is.
    package struct SecretDoubt: Sendable, Hashable {
        /// The most refused receipts that are counted.
        package static let receiptsMax: Int32 = 100

        package let environment: StoreEnvironment
        /// How many receipts it refused; `receiptsMax` means that many or more.
        package let receipts: Int32
        /// Whether a trial found no receipt that can tell; otherwise Apple has not accepted the secret at all yet.
        package var isUntold = false
    }

    package struct Pause: Sendable, Hashable {
        package let until: Instant
        package let reason: String
        /// The only environment that is paused; nil for all checks of the app.
        package var environment: StoreEnvironment?
        /// Whether Apple refuses the server key.
        package var isOfKey = false

        /// The app, and the environment where it is paused alone.
        package func place(in app: BundleID) -> String { environment.map { "\(app) in \($0.rawValue)" } ?? "\(app)" }
    }

    /// Every pause: of all checks, then of single environments.
    package var pauses: [Pause] { [pause].compactMap(\.self) + sorted(environmentPauses) }

    /// The pauses of the channel that makes all checks. A refused secret stops only verifyReceipt, a key the other.
    private var environmentPauses: [StoreEnvironment: Pause] {
        switch verifier {
        case .verifyReceipt: secretPauses
        case .serverAPI: callPauses
        case .both: [:]
        }
    }

    /// Why verifyReceipt is not asked although the checks go on, because the Server API makes them.
    package var heldSecrets: [Pause] { verifier == .verifyReceipt ? [] : sorted(secretPauses) }

    /// Why the Server API is not asked although the checks go on, because verifyReceipt makes them: Apple refuses the key.
    package var heldKeys: [Pause] { verifier == .serverAPI ? [] : sorted(callPauses.filter(\.value.isOfKey)) }

    private func sorted(_ pauses: [StoreEnvironment: Pause]) -> [Pause] {
        StoreEnvironment.allCases.compactMap { pauses[$0] }
    }

    /// The only environment in which scheduled checks are made, because the other one alone is paused; nil otherwise.
    package var onlyEnvironment: StoreEnvironment? {
        guard environmentPauses.count == 1 else { return nil }
        return environmentPauses[.production] == nil ? .production : .sandbox
    }

    package var hasSecret: Bool { sealedSecret != nil }
}

/// Who is asked about an app's receipts; uploads without receipts always ask the Server API.
package enum Verifier: String, Sendable, CaseIterable {
    /// verifyReceipt, with the app's shared secret.
    case verifyReceipt = "verify_receipt"
    /// The App Store Server API. verifyReceipt vouches for each new receipt once, while it answers.
    case serverAPI = "server_api"
    /// verifyReceipt, and the Server API to compare with, which also stands in where verifyReceipt gives no verdict.
    case both
}

/// The policy for the case that a second customer uploads a receipt containing an owned subscription.
package enum OwnershipPolicy: String, Sendable, CaseIterable {
    /// The newest uploader takes over, at most three times in 30 days.
    case transfer
    /// The first owner keeps the subscription.
    case keep
    /// The newest uploader takes over only subscriptions that no longer give access.
    case transferIfLapsed = "transfer_if_lapsed"
}

/// How often the worker checks for refunds.
package enum SweepFrequency: String, Sendable, CaseIterable {
    case normal
    /// Half as often, for an app that learns of refunds from Apple's notifications.
    case relaxed

    /// By what the delays of these checks are multiplied.
    var stretch: Int {
        switch self {
        case .normal: 1
        case .relaxed: 2
        }
    }
}

/// An app's shared secrets in plain text, for the duration of a check.
package struct AppSecrets: Sendable {
    package let current: String?
    /// The secret before the last rotation.
    package let previous: String?
}

extension LedgerApps {
    /// The most customers, or receipts, that are read at a time to be erased.
    private static let erasedMax: Int32 = 100
    /// How often an erasure is tried while Apple is being asked about a receipt, with a pause before each.
    private static let triesMax = 60
    private static let pause = Duration.seconds(1)

    /// Removes an app without receipts, its secrets, its keys and the webhooks for it alone, and ends its API keys and its
    /// address of notifications. Events, figures and its catalog stay, should it be registered again, which then asks
    /// verifyReceipt. Throws `unknownApp` for an unknown app, `exists` while receipts of it are stored.
    package func remove(_ bundleID: BundleID, deciding decision: ManualDecision) async throws {
        let app = try await app(bundleID)
        let removed = try await write(
            Queries.removeApp, .int4(app.id), audited: .appRemoved, app: bundleID,
            detail: ["by": decision.actor, "reason": decision.reason])
        guard removed.isEmpty else { return }
        throw LedgerError(
            .exists,
            "Receipts of \(bundleID) are stored. Erase them with --erase-receipts, which erases all its customers too.")
    }

    /// Erases all customers of an app, and the receipts that no customer uploaded. It may be repeated after an
    /// interruption. `onErased` learns the number of erased customers so far. Throws what
    /// ``LedgerCustomers/erase(_:of:deciding:)`` throws; `busy` after a minute of calls to Apple.
    @discardableResult
    package func eraseCustomers(
        of bundleID: BundleID, deciding decision: ManualDecision, onErased: (Int) -> Void
    ) async throws -> Int {
        let app = try await app(bundleID)
        var erased = 0
        while true {
            let rows = try await query(Queries.readUnerased, .int4(app.id), .int4(Self.erasedMax))
            guard !rows.isEmpty else { break }
            for row in rows {
                try await erase(try row.text("name"), of: bundleID, deciding: decision)
                erased += 1
                onErased(erased)
            }
        }
        while try await eraseUnclaimedReceipts(of: app) {}
        return erased
    }

    /// Erases one of the app's customers, once Apple is not being asked about them.
    private func erase(_ customer: String, of bundleID: BundleID, deciding decision: ManualDecision) async throws {
        try await repeating { error, tries in
            (error as? LedgerError)?.kind == .busy && tries < Self.triesMax
        } pausing: { _, _ in
            try await Task.sleep(for: Self.pause)
        } _: {
            _ = try await ledger.customers.erase(customer, of: bundleID, deciding: decision)
        }
    }

    private func eraseUnclaimedReceipts(of app: App) async throws -> Bool {
        try await ledger.changingPollers(orCustomers: true) { transaction in
            func unclaimed() throws -> [Int64] {
                try transaction.query(Queries.readUnclaimedReceipts, .int4(app.id), .int4(Self.erasedMax))
                    .map { try $0.int8("receipt_id") }
            }
            let ids = try unclaimed()
            guard !ids.isEmpty, let clock = try transaction.query(Queries.readClock).first else { return false }
            try ledger.handOver(from: ids.map(ReceiptID.init), in: transaction)
            // They are locked from here on, and an upload of one of them before is seen.
            guard try unclaimed() == ids else {
                throw LedgerError(.busy, "A receipt is being uploaded at this moment; try again.")
            }
            try transaction.query(
                Queries.eraseReceipts, .int8s(ids), .timestamptz(microseconds: try clock.timestamptz("recorded_at")))
            return true
        }
    }
}

extension App {
    func accelerated(by speedup: Int) -> App {
        var app = self
        app.speedup = speedup
        return app
    }

    /// The app's tolerances in one environment, divided by the speed-up.
    package func policy(for environment: StoreEnvironment) -> Policy {
        var policy = Policy.standard(for: environment, speedup: speedup)
        let leeway =
            switch environment {
            case .production: leeway
            case .sandbox: sandboxLeeway
            }
        policy.leeway = Delay(milliseconds: leeway.milliseconds / Int64(policy.speedup))
        policy.preCheckSpread = preCheckSpread
        policy.outageAllowance = Delay(milliseconds: outageAllowance.milliseconds / Int64(policy.speedup))
        policy.sweepStretch = sweep.stretch
        return policy
    }
}
