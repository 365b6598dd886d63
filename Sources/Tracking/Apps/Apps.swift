import Postgres
import SQL
package import Subscriptions

extension LedgerApps {
    /// Returns every registered app, ordered by bundle id.
    package func all() async throws -> [App] {
        try await query(Queries.readApps).map { try App(row: $0, speedup: ledger.speedup) }
    }

    /// Returns every registered app, for a lookup of one of them: the primary has apps that are too new for the standby.
    package func registered(forLookupOf bundleID: BundleID) async throws -> [App] {
        func apps(_ rows: [Row]) throws -> [App] { try rows.map { try App(row: $0, speedup: ledger.speedup) } }
        let known = try apps(try await reads.query(Queries.readApps))
        guard reads.mayLag, !known.contains(where: { $0.bundleID == bundleID }) else { return known }
        return try apps(try await reads.queryPrimary(Queries.readApps))
    }

    /// Returns the app with the given bundle id; throws `unknownApp` otherwise, naming up to five registered apps.
    package func app(_ bundleID: BundleID) async throws -> App {
        let apps = try await all()
        guard let app = apps.first(where: { $0.bundleID == bundleID }) else {
            guard !apps.isEmpty else { throw LedgerError.unknownApp(bundleID) }
            let known = apps.prefix(5).map(\.bundleID.text).joined(separator: ", ")
            throw LedgerError.unknownApp(bundleID, "registered are \(known).")
        }
        return app
    }

    /// Registers an app with its secrets (`previousSecret`: before the last rotation) and call budget: 0 calls a second
    /// are unlimited, the usual `burst` is one second's. Throws `invalid` for a bad bundle id, `exists` for a known.
    package func add(
        _ bundleID: BundleID, name: String? = nil, secret: String? = nil, previousSecret: String? = nil,
        sandboxAllowed: Bool = true, callsPerSecond: Double = 50, burst: Double? = nil
    ) async throws {
        guard !bundleID.text.isEmpty, bundleID.text.utf8.count <= 255 else {
            throw LedgerError(.invalid, "A bundle id has 1 to 255 characters, like com.example.app.")
        }
        let parameters: [Parameter] = [
            .text(bundleID.text), .text(name ?? bundleID.text), .bytea(try sealed(secret, for: bundleID)),
            .bytea(try sealed(previousSecret, for: bundleID)), .bool(sandboxAllowed), .float8(callsPerSecond),
            .float8(max(1, burst ?? callsPerSecond)),
        ]
        if try await write(Queries.addApp, parameters, audited: .appAdded, app: bundleID).isEmpty {
            throw LedgerError(
                .exists,
                "\(bundleID) is registered already; change it with `perennial app set`, and its secret with "
                    + "`perennial app rotate-secret`.")
        }
    }

    /// Changes the settings that `change` sets and keeps the others. Throws `invalid` for a verifier that needs a
    /// server key where there is none, and for one that leaves `both` too early.
    package func change(_ bundleID: BundleID, _ change: AppChange) async throws {
        try await requireVerifier(of: bundleID, change)
        let rows = try await write(
            Queries.setApp, .text(bundleID.text), .text(change.name), .bool(change.sandboxAllowed),
            .text(change.ownershipPolicy?.rawValue), .float8(change.callsPerSecond), .float8(change.burst),
            .text(change.sweep?.rawValue), .int8(change.preCheckSpread?.milliseconds),
            .int8(change.leeway?.milliseconds), .int8(change.sandboxLeeway?.milliseconds),
            .int8(change.outageAllowance?.milliseconds), .text(change.verifier?.rawValue), .int8(change.appleAppID),
            audited: .appChanged, app: bundleID, detail: change.auditDetail)
        if rows.isEmpty { _ = try await app(bundleID) }
    }

    /// Replaces the shared secret. The present one becomes the previous one, unless `previous` is given, or Apple accepts
    /// only the one that is the previous one already. A pause because of the former one ends by the next trial, which is
    /// due at once. Receipts for which Apple did not vouch because of it are due too.
    package func rotateSecret(of bundleID: BundleID, to secret: String, previous: String? = nil) async throws {
        let rows = try await write(
            Queries.rotateSecret, .text(bundleID.text), .bytea(try sealed(secret, for: bundleID)),
            .bytea(try sealed(previous, for: bundleID)), audited: .secretRotated, app: bundleID)
        if rows.isEmpty { _ = try await app(bundleID) }
    }

    /// Returns the app's secrets in plain text; they must not leave the check.
    package func secrets(of app: App) throws -> AppSecrets {
        try ledger.openedSecrets.secrets(of: app) { sealed in
            try sealed.map { try requiredSeal().open($0, for: app.bundleID.text) }
        }
    }

    private func sealed(_ secret: String?, for bundleID: BundleID) throws -> [UInt8]? {
        try secret.map { try requiredSeal().seal($0, for: bundleID.text) }
    }

    /// Returns the seal; throws `invalid` without a master key.
    func requiredSeal() throws(LedgerError) -> SecretSeal {
        guard let seal = ledger.seal else {
            throw LedgerError(
                .invalid,
                "Secrets are sealed with a master key; set PERENNIAL_MASTER_KEY "
                    + "(make one with `head -c 32 /dev/urandom | base64`).")
        }
        return seal
    }
}

/// A change of an app's settings for `apps.change`; nil keeps a setting.
package struct AppChange: Sendable {
    package var name: String?
    package var sandboxAllowed: Bool?
    /// The policy for the case that another customer uploads an owned subscription.
    package var ownershipPolicy: OwnershipPolicy?
    /// The rate limit for calls to Apple, in calls a second; 0 is unlimited.
    package var callsPerSecond: Double?
    /// The number of calls that may be made at once after a pause.
    package var burst: Double?
    package var sweep: SweepFrequency?
    /// The time over which checks shortly before an end are spread, 0 to 12 hours.
    package var preCheckSpread: Delay?
    /// How late a renewal may be in production before access ends; like the next two, it applies from the next answer.
    package var leeway: Delay?
    /// How late a renewal may be in the sandbox before access ends.
    package var sandboxLeeway: Delay?
    /// The outage allowance: how long access goes on while Apple cannot be asked.
    package var outageAllowance: Delay?
    package var verifier: Verifier?
    /// Why it changes although the comparison of both channels is not complete; nil: it does not then.
    package var forcedBecause: String?
    package var appleAppID: Int64?

    /// Creates a change that keeps every setting.
    package init() {}

    /// The changed settings, for the audit log.
    fileprivate var auditDetail: [String: String] {
        [
            "name": name, "sandbox_allowed": sandboxAllowed.map { "\($0)" },
            "ownership_policy": ownershipPolicy?.rawValue, "rate": callsPerSecond.map { "\($0)" },
            "burst": burst.map { "\($0)" }, "sweep": sweep?.rawValue,
            "pre_check_spread_ms": preCheckSpread.map { "\($0.milliseconds)" },
            "leeway_ms": leeway.map { "\($0.milliseconds)" },
            "sandbox_leeway_ms": sandboxLeeway.map { "\($0.milliseconds)" },
            "outage_allowance_ms": outageAllowance.map { "\($0.milliseconds)" },
            "verifier": verifier?.rawValue, "forced_because": forcedBecause, "apple_app_id": appleAppID.map { "\($0)" },
        ].compactMapValues { $0 }
    }
}

extension App {
    init(row: Row, speedup: Int) throws {
        id = try row.int4("app_id")
        self.speedup = speedup
        bundleID = try row.id("bundle_id")
        name = try row.text("name")
        sandboxAllowed = try row.bool("sandbox_allowed")
        ownershipPolicy = try row.word("ownership_policy")
        leeway = Delay(milliseconds: try row.int8("leeway_ms"))
        sandboxLeeway = Delay(milliseconds: try row.int8("sandbox_leeway_ms"))
        outageAllowance = Delay(milliseconds: try row.int8("outage_allowance_ms"))
        preCheckSpread = Delay(milliseconds: try row.int8("pre_check_spread_ms"))
        callsPerSecond = try row.float8("rate")
        burst = try row.float8("burst")
        sweep = try row.word("sweep")
        takesNotifications = try row.bool("takes_notifications")
        offerKey = try row.textIfPresent("offer_key_id").map {
            ConnectKeyName(id: $0, issuer: try row.textIfPresent("offer_issuer_id"))
        }
        verifier = try row.word("verifier")
        appleAppID = try row.int8IfPresent("apple_app_id")
        serverKey = try row.textIfPresent("server_key_id").map {
            ConnectKeyName(id: $0, issuer: try row.textIfPresent("server_issuer_id"))
        }
        sealedServerKey = try row.byteaIfPresent("sealed_server_key")
        rateLimit = try CallRateLimit(row: row)
        callsPerSecondNow = rateLimit.callsPerSecond(at: try row.instant("at"))
        appleFailures = Int(try row.int2("apple_failures"))
        pause = try row.instantIfPresent("paused_until").map {
            Pause(until: $0, reason: try row.textIfPresent("paused_because") ?? "paused")
        }
        sealedSecret = try row.byteaIfPresent("sealed_secret")
        sealedPreviousSecret = try row.byteaIfPresent("sealed_previous_secret")
        for environment in StoreEnvironment.allCases {
            let column = environment.rawValue.lowercased()
            secretPauses[environment] = try row.instantIfPresent("\(column)_tried_at").map {
                Pause(forSecretIn: environment, triedAt: $0)
            }
            previousSecrets[environment] = try row.instantIfPresent("\(column)_previous_since")
            if let receipts = try row.int4IfPresent("\(column)_doubted_by") {
                let isUntold = try row.bool("\(column)_is_untold")
                secretDoubts.append(SecretDoubt(environment: environment, receipts: receipts, isUntold: isUntold))
            }
            callPauses[environment] = try Pause(ofCallsIn: environment, row, column)
        }
    }
}

extension App.Pause {
    /// The pause of an environment in which Apple refuses the shared secret, until the next trial is accepted.
    fileprivate init(forSecretIn environment: StoreEnvironment, triedAt: Instant) {
        self.init(
            until: triedAt,
            reason: "Apple refuses the shared secret (21004) in \(environment.rawValue); run "
                + "`perennial app rotate-secret`. One receipt is tried every minute until Apple accepts it",
            environment: environment)
    }

    /// Reads a pause of the Server API's calls; nil where there is none.
    fileprivate init?(ofCallsIn environment: StoreEnvironment, _ row: Row, _ prefix: String) throws {
        guard let until = try row.instantIfPresent("\(prefix)_until") else { return nil }
        let refusal = try row.textIfPresent("\(prefix)_because")
        self.init(
            until: until, reason: refusal ?? "Apple asks for fewer requests", environment: environment,
            isOfKey: refusal != nil)
    }
}

extension LedgerApps {
    /// Throws `invalid` where an app may not change who is asked about its receipts: it has no key for the Server API,
    /// or it would leave `both` too early and the change is not forced.
    fileprivate func requireVerifier(of bundleID: BundleID, _ change: AppChange) async throws {
        guard let verifier = change.verifier else { return }
        let app = try await app(bundleID)
        if verifier != .verifyReceipt, app.serverKey == nil {
            throw LedgerError(.invalid, ServerKeyText.missing(of: bundleID))
        }
        guard app.verifier == .both, verifier != .both, change.forcedBecause == nil,
            let obstacle = try await channelStanding(of: bundleID)?.obstacle
        else { return }
        let cause = app.heldSecrets.first.map { ". \($0.reason)" } ?? ""
        throw LedgerError(
            .invalid,
            "\(bundleID) asks both channels still: \(obstacle)\(cause); see `perennial report channel_differences --app "
                + "\(bundleID)`, or give --force and --reason.")
    }
}
