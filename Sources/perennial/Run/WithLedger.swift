import AppStore
import ArgumentParser
import Foundation
import Logging
import Metrics
import NIOCore
import NIOPosix
import Postgres
import Server
import Tracking

/// Opens the database for `body` and always closes it. The schema may be missing. The loss of the database and its return
/// are logged once each; with `isBrief`, for a command that ends by itself, only the command's own failure is reported.
func withUncheckedLedger<Result: Sendable>(
    _ settings: Settings, statementTimeoutMilliseconds: Int = 30_000, isBrief: Bool = false,
    _ body: (SubscriptionLedger) async throws -> Result
) async throws -> Result {
    let logger = settings.logger
    let database = Database(
        DatabaseConfiguration(
            connectionString: settings.database, addressSource: settings.databaseSource,
            statementTimeoutMilliseconds: statementTimeoutMilliseconds),
        note: DatabaseNotes(logger: logger, isBrief: isBrief).take)
    let reads = settings.readDatabase.map { address in
        // The primary answers instead, so the wait for an unreachable standby is short.
        Database(
            DatabaseConfiguration(
                connectionString: address, addressSource: SettingName.databaseReadURL.rawValue, connectTimeoutSeconds: 1
            ),
            // `watchStandby` logs what became of it.
            note: { logger.debug("\($0)") })
    }
    do {
        let seal = try settings.masterKey.map { try SecretSeal(masterKey: $0) }
        var ledger = SubscriptionLedger(database: database, reads: reads, seal: seal, speedup: settings.pollSpeedup)
        ledger.notificationWaitSeconds = settings.notificationWaitSeconds
        let result = try await body(ledger)
        await close(database, reads)
        return result
    } catch {
        await close(database, reads)
        throw error
    }
}

/// Opens the database for a one-shot command. A database that is down or not migrated ends the command with one
/// sentence, which the connections' own notes would only repeat. Writes are recorded for the user who runs the command.
func withLedger<Result: Sendable>(
    _ settings: Settings, _ body: (SubscriptionLedger) async throws -> Result
) async throws -> Result {
    try await withUncheckedLedger(settings, isBrief: true) { ledger in
        try await ledger.operations.requireMigrated()
        return try await body(ledger.acting(as: .user(NSUserName())))
    }
}

/// The flags of a one-shot command: its settings, and what it is about.
protocol LedgerFlags: ParsableArguments {
    var base: SettingsFlags { get }
}

extension LedgerFlags {
    /// Opens the database of the settings for `body`; with `sealing` the master key is needed too.
    func ledger<Result: Sendable>(
        sealing: Bool = false, _ body: (SubscriptionLedger) async throws -> Result
    ) async throws -> Result {
        try await withLedger(try base.settings(needing: sealing ? [.database, .masterKey] : [.database]), body)
    }

    /// Opens the database of the settings for `body`, which asks Apple.
    func tracker<Result: Sendable>(
        _ apple: AppleFlags? = nil, _ body: (Tracker) async throws -> Result
    ) async throws -> Result {
        let settings = try base.settings(needing: [.database, .masterKey], apple?.values ?? [:])
        return try await withLedger(settings) { try await withTracker(settings, ledger: $0, body) }
    }
}

private func close(_ database: Database, _ reads: Database?) async {
    await database.close()
    await reads?.close()
}

/// Creates the tracker for `body`, which counts in `metrics`. Calls and checks share one thread: a check wakes no other
/// thread on its way, and the other processors remain free for PostgreSQL and for lookups.
func withTracker<Result: Sendable>(
    _ settings: Settings, ledger: SubscriptionLedger, metrics: any MetricsFactory = NOOPMetricsHandler.instance,
    _ body: (Tracker) async throws -> Result
) async throws -> Result {
    let logger = settings.logger
    var options = AppStoreOptions(productionURL: settings.appStoreURL, sandboxURL: settings.appStoreSandboxURL)
    // All calls of one check end within half the lease, so that an answer is settled before the lease ends.
    options.deadline = min(options.deadline, .seconds(settings.leaseSeconds / 2))
    // A connection attempt fails before the check's deadline, so that there is a reason to report.
    options.connectTimeout = min(options.connectTimeout, options.deadline / 2)
    options.trustedRoots = settings.appStoreRoots
    options.connectionsPerHostMax = OpenFiles.raised().callsMax
    let thread = MultiThreadedEventLoopGroup(numberOfThreads: 1)
    do {
        let result = try await options.withClient(on: thread.next()) { client in
            let signedTexts = SignedTextVerifier(trusting: try settings.appStoreRoots.map(SigningRoot.init) ?? .apple)
            let serverOptions = ServerAPIOptions(
                productionURL: settings.appStoreServerURL, sandboxURL: settings.appStoreServerSandboxURL,
                deadline: options.deadline)
            let server = ServerAPIClient.live(serverOptions, client: client, verifier: signedTexts)
            return try await body(
                Tracker(
                    ledger: ledger,
                    appStore: .live(options, client: client, server: server) { logger.warning("\($0)") },
                    options: TrackerOptions(
                        leaseSeconds: settings.leaseSeconds, executor: EventLoopExecutor(thread.next()),
                        callsMax: options.connectionsPerHostMax),
                    logger: logger, metrics: metrics, signedTexts: signedTexts, webhookSender: try .live()))
        }
        try await thread.shutdownGracefully()
        return result
    } catch {
        // The first error is the one to report; a failed shutdown ends with the process anyway.
        try? await thread.shutdownGracefully()
        throw error
    }
}
