import AppStoreSimulator
import ArgumentParser
import Logging
import ServiceLifecycle
import Subscriptions

/// `perennial simulator`
struct SimulatorCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "simulator",
        abstract: "Runs a pretend App Store whose months are short.",
        discussion: """
            Point PERENNIAL_APPSTORE_URL at /verifyReceipt and PERENNIAL_APPSTORE_SANDBOX_URL at /sandbox/verifyReceipt.
            /simulator/receipts?format=ndjson gives receipts for `perennial import`; /simulator/truth says what happened.

            Example:
              perennial simulator --port 8090 --seed 7 --customers 200 --month-seconds 60
            """)

    @Option(help: ArgumentHelp("The address to listen on.", valueName: "address"))
    var host = "127.0.0.1"

    @Option(help: ArgumentHelp("The port to listen on; 0 takes any free one.", valueName: "port"))
    var port = 8_090

    @Option(help: ArgumentHelp("Decides the customers and their lives.", valueName: "N"))
    var seed: UInt64 = 1

    @Option(help: ArgumentHelp("Customers of the production store at the start.", valueName: "N"))
    var customers = 200

    @Option(help: ArgumentHelp("Customers of the sandbox at the start.", valueName: "N"))
    var sandboxCustomers = 10

    @Option(help: ArgumentHelp("The length of a month.", valueName: "seconds"))
    var monthSeconds = 60.0

    @Option(
        help: ArgumentHelp(
            "When the lives began; the start of the process unless given. The same seed and epoch give the same lives.",
            valueName: "T"))
    var epoch: Instant?

    @Option(help: ArgumentHelp("The only app this store sells.", valueName: "B"))
    var bundleId = "com.example.tracker"

    @Option(
        help: ArgumentHelp(
            "A file with the app's shared secret, or -; made from the seed unless given.", valueName: "F|-"))
    var sharedSecretFile: String?

    func validate() throws {
        guard (0...65_535).contains(port) else { throw ValidationError("--port is a number from 0 to 65535.") }
        guard customers >= 0, sandboxCustomers >= 0 else { throw ValidationError("Customers are 0 or more.") }
        guard monthSeconds.isFinite, monthSeconds >= 1 else { throw ValidationError("--month-seconds is at least 1.") }
    }

    func run() async throws {
        startLogging(level: .info, format: .text)
        var options = SimulatorOptions(seed: seed)
        options.host = host
        options.port = port
        options.customers = customers
        options.sandboxCustomers = sandboxCustomers
        options.monthSeconds = monthSeconds
        options.bundleID = bundleId
        options.epochMilliseconds = epoch?.milliseconds
        if let sharedSecretFile {
            options.sharedSecret = try SecretFile(file: InputFile(sharedSecretFile)).secret()
        }
        let logger = Logger(label: "perennial.simulator")
        do {
            try await runServices(
                [SimulatorService(simulator: Simulator(options), logger: logger)], logger: logger)
        } catch {
            throw Failure(
                "The simulator stopped: \(Ending.sentence(for: error)); is \(host):\(port) free? Try --port 0.")
        }
    }
}

/// The simulator as a service that a signal stops.
struct SimulatorService: Service {
    let simulator: Simulator
    let logger: Logger

    func run() async throws {
        try await cancelWhenGracefulShutdown {
            try await simulator.run { port in
                logger.info("a pretend App Store listens on http://\(simulator.options.host):\(port)")
            }
        }
    }
}
