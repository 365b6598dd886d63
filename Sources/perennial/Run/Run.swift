import ArgumentParser
import Foundation
import Logging
import Server
import ServiceLifecycle
import Synchronization
import Tracking
import UnixSignals

struct ServeCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        "serve", "Serves the HTTP API.",
        notes: """
            Listens even while the database is down and says so under /readyz; /openapi.yaml describes the rest. Under \
            /admin are pages for people; they sign in with a key of scope admin for every app.
            """,
        examples: "perennial serve --http-port 8080")

    @OptionGroup var http: HTTPFlags
    @OptionGroup var apple: AppleFlags
    @OptionGroup var flags: SettingsFlags

    func run() async throws {
        let settings = try flags.settings(needing: [.database, .masterKey], http.values, apple.values)
        try await start(settings) { [CheckerHeartbeat($0), http.server(of: $0, counting: $1, settings)] }
    }
}

struct AllCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        "all", "Runs worker and server in one process.",
        notes: "The simplest way to run everything on one machine.",
        examples: "perennial all")

    @OptionGroup var http: HTTPFlags
    @OptionGroup var apple: AppleFlags
    @OptionGroup var flags: SettingsFlags

    func run() async throws {
        let settings = try flags.settings(needing: [.database, .masterKey], http.values, apple.values)
        try await start(settings) {
            [CheckerHeartbeat($0), DatabaseWait(tracker: $0), http.server(of: $0, counting: $1, settings)]
        }
    }
}

/// Runs a process that goes on until a signal: the services that `body` names for a tracker and its metrics.
private func start(
    _ settings: Settings, _ body: (Tracker, MetricsRegistry) -> [any Service]
) async throws {
    try await withUncheckedLedger(settings) { ledger in
        try await examineAtStart(ledger, settings)
        async let _: Void = Diagnosis.warn(of: ledger, settings)
        let metrics = MetricsRegistry(version: Perennial.version)
        try await withTracker(settings, ledger: ledger, metrics: metrics) { tracker in
            try await runServices([MinuteLog(tracker)] + body(tracker, metrics), logger: settings.logger)
        }
    }
}

extension HTTPFlags {
    fileprivate func server(of tracker: Tracker, counting metrics: MetricsRegistry, _ settings: Settings) -> Listener {
        let (host, port, logger) = (settings.httpHost, settings.httpPort, settings.logger)
        return Listener(
            name: "server", host: host, port: port, portName: "PERENNIAL_HTTP_PORT (--http-port)",
            hostName: "PERENNIAL_HTTP_HOST (--http-host)", said: "listening",
            path: "", logger: logger
        ) { [noAdmin = noAdmin, proxies = settings.trustedProxies] onListening in
            HTTPServer(
                tracker: tracker, metrics: metrics, host: host, port: port, logger: logger, files: .raised(),
                trustedProxies: proxies, servesAdmin: !noAdmin, onListening: onListening)
        }
    }
}

/// A server on an address. It logs the address once it listens, and throws the reason when it cannot.
private struct Listener: Service {
    /// What it is, for a failure.
    let name: String
    let host: String
    let port: Int
    /// What gives the port and the address.
    let portName: String
    let hostName: String
    /// What the log says before the address, and the path after it.
    let said: String
    let path: String
    let logger: Logger
    let server: @Sendable (_ onListening: @escaping @Sendable (Int) async -> Void) -> any Service

    func run() async throws {
        let shown = host.contains(":") ? "[\(host)]" : host
        do {
            try await server { port in logger.info("\(said) on http://\(shown):\(port)\(path)") }.run()
        } catch {
            throw Failure(
                "The \(name) on \(shown):\(port) stopped: \(ExitStatus.sentence(for: error)); if another program listens "
                    + "there, choose another \(portName); \(hostName) takes an address of this machine or its name, such "
                    + "as 127.0.0.1, ::1 or localhost, and 0.0.0.0 for all.")
        }
    }
}

struct WorkerCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        "worker", "Asks Apple about every receipt when it is due; run as many as you like.",
        notes: """
            The worker runs until SIGTERM or SIGINT. Then it waits up to five seconds for answers and hands the other \
            receipts back. With --once it checks the receipts that were due when it began, and exits: with 0 when \
            Apple was asked about all of them, with 1 when some are left, with the reasons. A receipt without a usable \
            answer counts as asked about; a later run checks it again.
            """,
        examples: """
            perennial worker
            perennial worker --metrics-port 9464
            */5 * * * * perennial worker --once --max-seconds 240
            """)

    @Flag(help: "Check what is due now, then exit.")
    var once = false

    @Option(
        1...31_622_400,
        help: ArgumentHelp("With --once: begin nothing new after this many seconds.", valueName: "N"))
    var maxSeconds: Int?

    @Option(
        0...65_535,
        help: ArgumentHelp("Serve /metrics, /healthz and /readyz on this port; 0 takes a free one.", valueName: "N"))
    var metricsPort: Int?

    @Option(
        help: ArgumentHelp(
            "With --metrics-port: the address to listen on; 127.0.0.1 unless given.", valueName: "H"))
    var metricsHost: String?

    @OptionGroup var apple: AppleFlags
    @OptionGroup var flags: SettingsFlags

    func validate() throws {
        guard metricsHost == nil || metricsPort != nil else {
            throw ValidationError("--metrics-host goes with --metrics-port.")
        }
        guard metricsPort == nil || !once else { throw ValidationError("--metrics-port does not go with --once.") }
        guard maxSeconds == nil || once else { throw ValidationError("--max-seconds goes with --once.") }
    }

    func run() async throws {
        let settings = try flags.settings(needing: [.database, .masterKey], apple.values)
        guard !once else { return try await checkWhatIsDue(settings) }
        try await start(settings) { [DatabaseWait(tracker: $0)] + serving($1, of: $0, logger: settings.logger) }
    }

    private func checkWhatIsDue(_ settings: Settings) async throws {
        let report = try await withLedger(settings) { ledger in
            await Diagnosis.warn(of: ledger, settings)
            return try await withTracker(settings, ledger: ledger) { tracker in
                let result = Mutex<OnceReport?>(nil)
                let run = Job { [maxSeconds] in
                    let report = try await Worker(tracker).runOnce(maxSeconds: maxSeconds)
                    result.withLock { $0 = report }
                }
                try await runServices([run], untilDone: true, logger: settings.logger)
                guard let report = result.withLock(\.self) else { throw Failure("The run ended before it began.") }
                return report
            }
        }
        printLine(report.text)
        if let failure = report.failure { throw failure }
    }

    private func serving(_ metrics: MetricsRegistry, of tracker: Tracker, logger: Logger) -> [any Service] {
        guard let metricsPort else { return [] }
        let host = metricsHost ?? "127.0.0.1"
        return [
            Listener(
                name: "metrics", host: host, port: metricsPort, portName: "--metrics-port", hostName: "--metrics-host",
                said: "metrics", path: "/metrics", logger: logger
            ) {
                metrics.server(of: tracker, host: host, port: metricsPort, onListening: $0)
            }
        ]
    }
}

extension OnceReport {
    var text: String {
        let rest = left == 0 ? "none is left" : left.of("is left", "are left")
        var lines = ["Asked Apple about \(asked.of("receipt", "receipts")); \(rest)."]
        if unanswered > 0 {
            lines.append("No usable answer about \(unanswered.of("receipt", "receipts")), to be asked about again:")
            lines += unansweredBecause.map { "  \($0)" }
            if unanswered > unansweredBecause.count {
                lines.append("  and \(unanswered - unansweredBecause.count) more")
            }
        }
        return lines.joined(separator: "\n")
    }

    var failure: Failure? {
        guard left > 0 else { return nil }
        let reasons = why.isEmpty ? "see the log" : why.joined(separator: "; ")
        return Failure("Apple was not asked about \(left.of("due receipt", "due receipts")): \(reasons)")
    }
}

/// Some work as a service, which a signal stops early.
struct Job: Service {
    let work: @Sendable () async throws -> Void

    func run() async throws { try await work() }
}

/// The longest time that services may take to finish their work, in seconds. What is not finished then would not be, as
/// where PostgreSQL's machine vanished in the middle of a statement; a claim is taken over within one lease.
private let stopSecondsMax = 30

/// Runs services until they end, or until SIGTERM or SIGINT asks them to finish their work; a second signal, or half a
/// minute, ends the process. A service that ends by itself ends the group: as a failure, or as completed work with
/// `untilDone`. When one fails, the others finish their work.
func runServices(_ services: [any Service], untilDone: Bool = false, logger: Logger) async throws {
    let group = ServiceGroup(
        configuration: ServiceGroupConfiguration(
            services: services.map {
                .init(
                    service: $0, successTerminationBehavior: untilDone ? .gracefullyShutdownGroup : .cancelGroup,
                    failureTerminationBehavior: .gracefullyShutdownGroup)
            }, logger: logger))
    let signals = await UnixSignalsSequence(trapping: .sigterm, .sigint)
    try await withThrowingTaskGroup(of: Void.self) { tasks in
        tasks.addTask {
            await withDiscardingTaskGroup { limit in
                var count = 0
                for await signal in signals {
                    count += 1
                    guard count == 1 else { _exit(128 + (signal == .sigint ? SIGINT : SIGTERM)) }
                    logger.info("stopping; once more stops at once")
                    limit.addTask {
                        await pause(seconds: stopSecondsMax)
                        guard !Task.isCancelled else { return }
                        logger.error(
                            "not everything was finished within \(stopSecondsMax) seconds; ending all the same")
                        _exit(EXIT_FAILURE)
                    }
                    await group.triggerGracefulShutdown()
                }
            }
        }
        try await group.run()
        tasks.cancelAll()
    }
}
