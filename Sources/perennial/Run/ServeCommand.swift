import ArgumentParser
import Logging
import Server
import ServiceLifecycle
import Tracking

/// `perennial serve`
struct ServeCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "serve",
        abstract: "Serves the HTTP API.",
        discussion: """
            Listens even while the database is down and says so under /readyz; /openapi.yaml describes the rest. Under \
            /admin are pages for people; they sign in with a key of scope admin for every app.

            Example:
              perennial serve --http-port 8080
            """)

    @OptionGroup var http: HTTPFlags
    @OptionGroup var apple: AppleFlags
    @OptionGroup var flags: SettingsFlags

    func run() async throws {
        let settings = try flags.settings(needing: [.database, .masterKey], http.values, apple.values)
        try await withUncheckedLedger(settings) { ledger in
            try await refuseOtherSchema(ledger, logger: settings.logger)
            let metrics = MetricsRegistry(version: Perennial.version)
            try await withTracker(settings, ledger: ledger, metrics: metrics) { tracker in
                try await runServices(
                    [
                        MinuteLog(tracker), CheckerHeartbeat(tracker),
                        ListeningServer(
                            tracker: tracker, metrics: metrics, settings: settings, servesAdmin: !http.noAdmin),
                    ],
                    logger: settings.logger)
            }
        }
    }
}

/// `perennial all`
struct AllCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "all",
        abstract: "Runs worker and server in one process.",
        discussion: """
            The simplest way to run everything on one machine.

            Example:
              perennial all
            """)

    @OptionGroup var http: HTTPFlags
    @OptionGroup var apple: AppleFlags
    @OptionGroup var flags: SettingsFlags

    func run() async throws {
        let settings = try flags.settings(needing: [.database, .masterKey], http.values, apple.values)
        try await withUncheckedLedger(settings) { ledger in
            try await refuseOtherSchema(ledger, logger: settings.logger)
            let metrics = MetricsRegistry(version: Perennial.version)
            try await withTracker(settings, ledger: ledger, metrics: metrics) { tracker in
                let worker = DatabaseWait(ledger: ledger, logger: settings.logger, service: Worker(tracker))
                try await runServices(
                    [
                        MinuteLog(tracker), CheckerHeartbeat(tracker), worker,
                        ListeningServer(
                            tracker: tracker, metrics: metrics, settings: settings, servesAdmin: !http.noAdmin),
                    ],
                    logger: settings.logger)
            }
        }
    }
}

/// The API on the address in the settings. It logs the address once it listens, and throws the reason when it cannot.
struct ListeningServer: Service {
    let tracker: Tracker
    let metrics: MetricsRegistry
    let settings: Settings
    let servesAdmin: Bool

    func run() async throws {
        let logger = settings.logger
        let host = settings.httpHost.contains(":") ? "[\(settings.httpHost)]" : settings.httpHost
        let server = HTTPServer(
            tracker: tracker, metrics: metrics, host: settings.httpHost, port: settings.httpPort, logger: logger,
            files: .raised(), trustedProxies: settings.trustedProxies, servesAdmin: servesAdmin
        ) { port in
            logger.info("listening on http://\(host):\(port)")
        }
        do {
            try await server.run()
        } catch {
            throw Failure(
                "The server on \(host):\(settings.httpPort) stopped: \(ExitStatus.sentence(for: error)); "
                    + "if another program listens there, set PERENNIAL_HTTP_PORT.")
        }
    }
}
