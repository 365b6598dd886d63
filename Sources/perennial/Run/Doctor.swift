import AppStore
import ArgumentParser
import Foundation
import JSON
import Logging
import Server
import Subscriptions
import Tracking

struct DoctorCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        "doctor",
        "Checks what an operator must know before the first start; changes nothing; 2 where something is wrong.",
        notes: """
            One line for each check: ok, or what to do. It looks at the settings, PostgreSQL (version, encoding, btree_gist, schema, \
            rights, clock, standby), the master key against every sealed secret, the addresses of the App Store, shared \
            secrets that Apple refused, and the limit of open files. It sends Apple no receipt and no secret. Run it with \
            the settings and the account of the service, before the first start and before and after an upgrade.
            """,
        examples: """
            perennial doctor
            perennial doctor --format json
            """)

    @Option(help: "text for people, or json, which is stable.")
    var format = TextForm.text

    @OptionGroup var apple: AppleFlags
    @OptionGroup var flags: SettingsFlags

    func run() async throws {
        let (settings, warnings) = try flags.sources([apple.values]).settings(needing: [.database])
        startLogging(level: .critical, format: settings.logFormat)
        var diagnosis = Diagnosis(settings: settings, shows: format == .text)
        diagnosis.look(at: settings, warnings)
        try await withUncheckedLedger(settings, isBrief: true) { ledger in
            let apps = await diagnosis.look(at: ledger)
            await diagnosis.lookAtStores(of: apps)
        }
        switch format {
        case .text: printLine(diagnosis.sentence)
        case .json: printExactly(diagnosis.json.rendered(pretty: true))
        }
        if diagnosis.wrong > 0 { throw ExitStatus.foundDifference }
    }
}

/// The findings of one examination, in the order in which they were made.
struct Diagnosis {
    let settings: Settings
    let shows: Bool
    /// The checks by their stable names, and what to do where one found something wrong.
    private(set) var findings: [(check: String, isFine: Bool, sentence: String)] = []

    var wrong: Int { findings.count { !$0.isFine } }

    var sentence: String {
        wrong == 0
            ? "Nothing is wrong (\(findings.count) checks)."
            : "\(wrong) of \(findings.count) checks found something wrong."
    }

    var json: JSONValue {
        [
            "checks": .array(
                findings.map {
                    ["check": .string($0.check), "ok": .bool($0.isFine), "detail": .string($0.sentence)]
                }),
            "version": .string(Perennial.version), "wrong": .integer(Int64(wrong)),
        ]
    }

    /// Notes what a check found: `sentence`, or `wrong` with what to do.
    private mutating func note(_ check: String, _ isFine: Bool, _ sentence: String, orElse wrong: String) {
        note(check, isFine, isFine ? sentence : wrong)
    }

    private mutating func note(_ check: String, _ isFine: Bool, _ sentence: String) {
        findings.append((check, isFine, sentence))
        guard shows else { return }
        printLine(
            (isFine ? "ok     " : "WRONG  ") + check.padding(toLength: 16, withPad: " ", startingAt: 0) + sentence)
    }
}

extension Diagnosis {
    /// The fewest open files with which a server takes a few hundred connections.
    private static let filesMin = 1_024

    mutating func look(at settings: Settings, _ warnings: [String]) {
        note("program", true, "perennial \(Perennial.version)")
        for warning in warnings { note("settings", false, warning) }
        if warnings.isEmpty { note("settings", true, "every name and value is known") }
        let files = OpenFiles.raised().count
        note(
            "open_files", files >= Self.filesMin, "\(files) open files at most",
            orElse: "at most \(files) open files; allow \(OpenFiles.wanted) (`ulimit -n`, in a unit LimitNOFILE).")
        lookAtTrust(settings)
        guard settings.pollSpeedup > 1 else { return }
        let isReal = [settings.appStoreURL, settings.appStoreServerURL].contains { $0.contains(".apple.com") }
        note(
            "speedup", !isReal, "the schedule is \(settings.pollSpeedup) times as fast, for a pretend App Store",
            orElse: "PERENNIAL_POLL_SPEEDUP is \(settings.pollSpeedup) with Apple's own address; remove it.")
    }

    /// Looks at settings that let others in.
    private mutating func lookAtTrust(_ settings: Settings) {
        if settings.trustedProxies.trustsEverybody {
            note(
                "trusted_proxies", false,
                "PERENNIAL_TRUSTED_PROXIES trusts all addresses, so callers choose their address by X-Forwarded-For and evade "
                    + "limits; name the proxies alone.")
        }
        guard let path = settings.masterKeyPath else { return }
        // A mounted secret is often a symbolic link, which has no mode of its own.
        let file = URL(fileURLWithPath: path).resolvingSymlinksInPath().path
        let mode = (try? FileManager.default.attributesOfItem(atPath: file)[.posixPermissions]) as? Int ?? 0
        note(
            "key_file", mode & 0o044 == 0, "only this account reads the master key in \(path)",
            orElse: "other accounts can read the master key in \(path) (mode \(String(mode, radix: 8))); "
                + "run `chmod 600 \(path)`.")
    }

    /// Looks at the database; returns the apps in it, none where they cannot be read.
    mutating func look(at ledger: SubscriptionLedger) async -> [App] {
        do {
            let begun = Instant.wallClock
            let found = try await ledger.operations.examineDatabase()
            lookAtServer(found, begun: begun, ended: .wallClock)
            await lookAtStandby(ledger)
            guard await lookAtSchema(ledger, found) else { return [] }
            try await lookAtRights(of: found.account, ledger)
            return await lookAtSecrets(ledger)
        } catch {
            note("database", false, ExitStatus.sentence(for: error))
            return []
        }
    }

    /// Logs what a process runs with all the same, and does less or other things than its operator thinks: a clock that is
    /// not the database's, rights that its account lacks, and a master key that does not open every secret.
    static func warn(of ledger: SubscriptionLedger, _ settings: Settings) async {
        var diagnosis = Diagnosis(settings: settings, shows: false)
        do {
            let begun = Instant.wallClock
            let found = try await ledger.operations.examineDatabase()
            diagnosis.lookAtServer(found, begun: begun, ended: .wallClock)
            try await diagnosis.lookAtRights(of: found.account, ledger)
            _ = await diagnosis.lookAtSecrets(ledger)
        } catch {
            // The connections log that the database went away meanwhile.
            return
        }
        for finding in diagnosis.findings
        where !finding.isFine && ["clock", "rights", "master_key"].contains(finding.check) {
            settings.logger.error("\(finding.sentence)")
        }
    }

    /// How far the database's clock and this machine's may differ, in milliseconds.
    private static let clockApartMax: Int64 = 60_000

    private mutating func lookAtServer(_ found: DatabaseExamination, begun: Instant, ended: Instant) {
        note(
            "postgresql", found.version >= DatabaseExamination.versionMin, "PostgreSQL \(found.versionText)",
            orElse: "PostgreSQL \(found.versionText) is too old; Perennial needs 14 or newer.")
        note("encoding", found.isUTF8, "the encoding of the database is UTF8", orElse: found.encodingAdvice)
        switch (found.gistInstalled, found.gistAvailable) {
        case (let version?, _): note("btree_gist", true, "btree_gist \(version)")
        case (nil, .some) where found.mayCreate: note("btree_gist", true, "`perennial migrate` will install btree_gist")
        case (nil, .some):
            note("btree_gist", false, "run `CREATE EXTENSION btree_gist` in this database as an account that may.")
        case (nil, nil):
            note("btree_gist", false, "the server lacks btree_gist; install its contrib package (postgresql-contrib).")
        }
        if found.isStandby { note("database", false, "it is a standby, which takes no writes; name the primary.") }
        let apart = max(begun.milliseconds - found.clock.milliseconds, found.clock.milliseconds - ended.milliseconds, 0)
        note(
            "clock", apart <= Self.clockApartMax, "the database's clock and this machine's agree",
            orElse: "the database's clock and this machine's differ by \(apart / 1_000) s; "
                + "let both follow a time server.")
    }

    private mutating func lookAtStandby(_ ledger: SubscriptionLedger) async {
        guard settings.readDatabase != nil else { return }
        switch await ledger.standby() {
        case .none: break
        case .following: note("standby", true, "the standby for lookups follows")
        case .behind:
            note("standby", false, "the standby for lookups is over a minute behind; lookups use the primary.")
        case .away:
            note(
                "standby", false,
                "the standby of DATABASE_READ_URL does not answer, or its account lacks rights; lookups use the primary."
            )
        case .foreign:
            note(
                "standby", false,
                "DATABASE_READ_URL leads to no standby of the primary: to another database, or to a standby that was "
                    + "promoted. Lookups use the primary; correct it, or DATABASE_URL where the promoted one is the primary now."
            )
        }
    }

    private mutating func lookAtSchema(_ ledger: SubscriptionLedger, _ found: DatabaseExamination) async -> Bool {
        do {
            try await ledger.operations.requireMigrated()
            note("schema", true, "the schema is that of this program")
            return true
        } catch let error as LedgerError where error.kind == .mismatch {
            let rights =
                found.mayCreate ? "" : " \(found.account) may not create it; run it as the owner of the database."
            note("schema", false, error.message + rights)
        } catch {
            note("schema", false, ExitStatus.sentence(for: error))
            // Without the schema's rights nothing in it can be asked, but the catalog can.
            try? await lookAtRights(of: found.account, ledger)
        }
        return false
    }

    private mutating func lookAtRights(of account: String, _ ledger: SubscriptionLedger) async throws {
        let roles = try await ledger.operations.examineRights()
        let remedy =
            "as the owner of the database run `perennial migrate`, or what `perennial migrate --no-roles` prints"
        if let role = roles.first(where: { $0.isMember && !$0.lacking.isEmpty }) {
            return note(
                "rights", false,
                "\(account) is a member of \(role.name) and lacks \(role.lack); \(remedy). A member with NOINHERIT lacks "
                    + "all rights.")
        }
        let held = roles.filter { $0.lacking.isEmpty && $0.name != "perennial_report" }.map(\.name)
        guard held.isEmpty else {
            let limit = held == ["perennial_worker"] ? "; `serve` and `all` need perennial_api" : ""
            return note("rights", true, "\(account) has the rights of \(held.joined(separator: ", "))\(limit)")
        }
        let lack = roles.first { $0.name == "perennial_api" }?.lack ?? ""
        note(
            "rights", false,
            "\(account) has the rights of no role that works (of perennial_api it lacks \(lack)); "
                + "`GRANT perennial_api TO \(account)` serves and checks. Where that role lacks them, \(remedy).")
    }

    private mutating func lookAtSecrets(_ ledger: SubscriptionLedger) async -> [App] {
        do {
            let (count, unreadable) = try await ledger.operations.examineSecrets()
            if settings.masterKey == nil {
                note(
                    "master_key", false,
                    "PERENNIAL_MASTER_KEY is not set; workers and servers need it. "
                        + (unreadable.isEmpty
                            ? "`head -c 32 /dev/urandom | base64` makes one."
                            : "Set the key with which the secrets here were sealed; with a new one run `perennial app "
                                + "rotate-secret` for each app.")
                )
            } else if unreadable.isEmpty {
                note("master_key", true, "the master key opens \(count.of("sealed secret", "sealed secrets"))")
            }
            for secret in unreadable where settings.masterKey != nil { note("master_key", false, secret.sentence) }
            let apps = try await ledger.apps.all()
            if apps.isEmpty { note("apps", true, "no app yet; `perennial app add` adds one") }
            for app in apps { look(at: app) }
            return apps
        } catch {
            note("master_key", false, ExitStatus.sentence(for: error))
            return []
        }
    }

    private mutating func look(at app: App) {
        let name = app.bundleID.text
        for pause in app.pauses {
            note(
                "apps", false,
                "\(pause.place(in: app.bundleID)) is paused until \(pause.until.iso8601): \(pause.reason)")
        }
        for held in app.heldSecrets + app.heldKeys { note("apps", false, "\(name): \(held.reason)") }
        for environment in StoreEnvironment.allCases where app.previousSecrets[environment] != nil {
            note(
                "apps", false,
                "\(name): Apple accepts only the previous shared secret in \(environment.rawValue); run `perennial app "
                    + "rotate-secret`.")
        }
        guard app.pauses.isEmpty, app.heldSecrets.isEmpty, app.heldKeys.isEmpty, app.previousSecrets.isEmpty else {
            return
        }
        guard app.hasSecret || app.serverKey != nil else {
            return note(
                "apps", false,
                "\(name) has no shared secret and no server key, so Apple cannot be asked; run `perennial app rotate-secret` "
                    + "or `perennial app server-key`.")
        }
        note("apps", true, "\(name) is asked about with \(app.hasSecret ? "its shared secret" : "its server key")")
    }

    /// Asks the addresses that the apps need; without apps those of verifyReceipt.
    mutating func lookAtStores(of apps: [App]) async {
        var options = AppStoreOptions(productionURL: settings.appStoreURL, sandboxURL: settings.appStoreSandboxURL)
        options.trustedRoots = settings.appStoreRoots
        do {
            try await options.withClient { await lookAtStores(through: StoreReach(client: $0), of: apps) }
        } catch {
            // Only the end of the client throws; the process ends now, and that changes no finding.
        }
    }

    private mutating func lookAtStores(through reach: StoreReach, of apps: [App]) async {
        let sandbox = apps.isEmpty || apps.contains(where: \.sandboxAllowed)
        let keys = apps.contains { $0.serverKey != nil }
        for url in [settings.appStoreURL] + (sandbox ? [settings.appStoreSandboxURL] : []) {
            note("app_store", at: url, await reach.failure(ofVerifyReceiptAt: url))
        }
        if keys {
            for url in [settings.appStoreServerURL] + (sandbox ? [settings.appStoreServerSandboxURL] : []) {
                note("app_store", at: url, await reach.failure(ofServerAPIAt: url))
            }
        }
    }

    private mutating func note(_ check: String, at url: String, _ failure: String?) {
        note(check, failure == nil, failure.map { "\(url): \($0)" } ?? "\(url) answers")
    }
}

extension HeldRole {
    /// The first rights that the account lacks, and how many more.
    fileprivate var lack: String {
        let more = lacking.count > 3 ? " and \(lacking.count - 3) more" : ""
        return lacking.prefix(3).joined(separator: ", ") + more
    }
}

extension UnreadableSecret {
    fileprivate var sentence: String {
        let name = bundleID.text
        let lost = "does not open with this master key; set the key that it was sealed with"
        return switch kind {
        case .shared: "the shared secret of \(name) \(lost), or run `perennial app rotate-secret`."
        case .serverKey: "the server key of \(name) \(lost), or run `perennial app server-key`."
        case .offerKey: "the offer key of \(name) \(lost), or run `perennial app offer-key`."
        case .order:
            "keys of orders of \(name) do not open with this master key; set the key that they were sealed with. Otherwise "
                + "devices cannot prove earlier orders."
        }
    }
}
