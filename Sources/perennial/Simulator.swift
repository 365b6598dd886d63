import AppStoreSimulator
import ArgumentParser
import Foundation
import Logging
import ServiceLifecycle
import Subscriptions

struct SimulatorCommand: AsyncParsableCommand {
    /// The most customers, more than fit into any machine's memory.
    static let customersMax = 10_000_000
    /// The longest simulated month, in seconds: a year.
    static let monthSecondsMax = 31_622_400.0

    static let configuration = CommandConfiguration(
        "simulator", "Runs a pretend App Store whose months are short.",
        notes: """
            Test any backend with it: send what it would send Apple to /verifyReceipt and /sandbox/verifyReceipt. \
            /simulator/receipts and /simulator/uploads?since=T give receipts as devices send them, as JSON or, with \
            format=ndjson, as `perennial import` reads them. /simulator/truth?at=T says what is true and what \
            happened. For Perennial set PERENNIAL_APPSTORE_URL and PERENNIAL_APPSTORE_SANDBOX_URL to the two.
            """,
        examples: """
            perennial simulator --port 8090 --seed 7 --customers 200 --month-seconds 60
            perennial simulator --fault-rate 0.05 --latency-ms 80
            perennial simulator --customers 200000 --still --plain
            perennial simulator --tls --tls-root-file root.pem
            perennial simulator --signing-authority authority.pem --signing-root-file root.pem
            """)

    @Option(help: ArgumentHelp("The address to listen on.", valueName: "address"))
    var host = "127.0.0.1"

    @Option(0...65_535, help: ArgumentHelp("The port to listen on; 0 takes any free one.", valueName: "port"))
    var port = 8_090

    @Option(0...UInt64.max, help: ArgumentHelp("Decides the customers and their lives.", valueName: "N"))
    var seed: UInt64 = 1

    @Option(0...customersMax, help: ArgumentHelp("Customers of the production store at the start.", valueName: "N"))
    var customers = 200

    @Option(0...customersMax, help: ArgumentHelp("Customers of the sandbox at the start.", valueName: "N"))
    var sandboxCustomers = 10

    @Option(
        0...Double(customersMax),
        help: ArgumentHelp(
            "New customers in a month of the production store; a fiftieth of --customers unless given.", valueName: "N")
    )
    var arrivalsPerMonth: Double?

    @Flag(help: "Plain subscribers with today's receipts: no offers, purchases, old receipts, odd answers and so on.")
    var plain = false

    @Flag(help: "Lives stand still at the epoch while the request dates move.")
    var still = false

    @Option(
        0...3_600_000,
        help: ArgumentHelp(
            "Delays every answer of verifyReceipt and the Server API, in milliseconds.", valueName: "N"))
    var latencyMs = 0

    @Option(0...1, help: ArgumentHelp("The share of the calls of verifyReceipt that meet trouble.", valueName: "share"))
    var faultRate = 0.0

    @Option(
        help: ArgumentHelp(
            "Which trouble, by weight: statuses, HTTP codes, html, truncate, hang, slow, drip.",
            valueName: "kind=weight,…"))
    var faultKinds = Fault.usualKinds

    @Option(1...monthSecondsMax, help: ArgumentHelp("The length of a month.", valueName: "seconds"))
    var monthSeconds = 60.0

    @Option(
        instant: ArgumentHelp(
            "When the lives began; the start of the process unless given. The same seed and epoch give the same lives.",
            valueName: "T"))
    var epoch: Instant?

    @Option(help: ArgumentHelp("The only app this store sells.", valueName: "B"))
    var bundleId = "com.example.tracker"

    @Option(
        help: ArgumentHelp(
            "A file with the app's shared secret, or -; made from the seed unless given.", valueName: "F|-"))
    var sharedSecretFile: InputFile?

    @Option(
        help: ArgumentHelp(
            "Also sells this app, whose customers live at the speed of the calendar and arrived in the year before "
                + "the epoch.",
            valueName: "B"))
    var calendarApp: String?

    @Option(
        0...customersMax,
        help: ArgumentHelp(
            "With --calendar-app: customers who arrive in a year; 400 unless given.", valueName: "N"))
    var calendarCustomers: Int?

    @Option(help: ArgumentHelp("Posts Apple's notifications about the customers to this address.", valueName: "URL"))
    var notify: String?

    @OptionGroup var https: SimulatorTLSFlags
    @OptionGroup var signing: SimulatorSigningFlags

    func validate() throws {
        guard calendarApp != nil || calendarCustomers == nil else {
            throw ValidationError("--calendar-customers goes with --calendar-app.")
        }
        guard calendarApp != bundleId else { throw ValidationError("--calendar-app is another app than --bundle-id.") }
        do {
            _ = try Fault.mixed(rate: faultRate, kinds: faultKinds)
        } catch {
            throw ValidationError("--fault-kinds: \(error.description)")
        }
        if let mistake = notify.flatMap({ NotificationOptions(url: $0).mistake }) {
            throw ValidationError("--notify: \(mistake).")
        }
        guard epoch.map({ SimulatorOptions.epochs.contains($0.milliseconds) }) ?? true else {
            throw ValidationError("--epoch is from 1970 to 9999.")
        }
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
        options.arrivalsPerMonth = arrivalsPerMonth ?? Double(customers) / 50
        options.standsStill = still
        options.latencyMilliseconds = latencyMs
        options.notifications = notify.map { NotificationOptions(url: $0) }
        if plain { options.traits = .none }
        if faultRate > 0 { options.faults = try Fault.mixed(rate: faultRate, kinds: faultKinds) }
        let epoch = epoch?.milliseconds ?? SimulatorClock.system.milliseconds()
        options.epochMilliseconds = epoch
        if let sharedSecretFile { options.sharedSecret = try sharedSecretFile.secret() }
        let logger = Logger(label: "perennial.simulator")
        let identity = try https.identity(ofStoreAt: host)
        let authority = try signing.authority()
        if let path = signing.signingRootFile {
            try write(certificates: authority.rootPEM, to: path, "--signing-root-file")
        }
        let rootFile = try identity.map { try https.writeRoots(of: $0, and: authority) }
        let signatory = Signatory(authority)
        let calendar = calendarApp.map {
            Simulator(options.calendarApp($0, customers: calendarCustomers ?? 400, at: epoch), signatory: signatory)
        }
        let simulator = Simulator(options, identity: identity, signatory: signatory, beside: calendar)
        if let key = try signing.serverKey() { simulator.accept(key) }
        let service = Job {
            try await cancelWhenGracefulShutdown {
                try await simulator.run { port in
                    let scheme = simulator.identity == nil ? "http" : "https"
                    logger.info("a pretend App Store listens on \(scheme)://\(simulator.options.host):\(port)")
                    if let rootFile { logger.info("the certificate of its authority is in \(rootFile)") }
                }
            }
        }
        do {
            try await runServices([service], logger: logger)
        } catch {
            throw Failure(
                "The simulator stopped: \(ExitStatus.sentence(for: error)); is \(host):\(port) free? Try --port 0.")
        }
    }
}

/// Flags about the authority that signs transactions, renewals and notifications, and the key to ask for them.
struct SimulatorSigningFlags: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Keeps the authority that signs texts in this file, so that it outlives a restart; made if the file is "
                + "missing.", valueName: "F"))
    var signingAuthority: String?

    @Option(help: ArgumentHelp("Where the certificate of the authority that signs texts is written.", valueName: "F"))
    var signingRootFile: String?

    @Option(
        help: ArgumentHelp(
            "Keeps a key for calls of the pretend Server API in this file, with the id \(PretendServerKey.id) and the "
                + "issuer \(PretendServerKey.issuerID); made if the file is missing.", valueName: "F"))
    var serverKeyFile: String?

    /// Returns the kept authority, or a new one, which is kept where that is asked for.
    func authority() throws -> SigningAuthority {
        guard let path = signingAuthority else { return try SigningAuthority() }
        return try kept(
            in: path, "--signing-authority", read: SigningAuthority.init(stored:), make: { try SigningAuthority() },
            text: \.stored)
    }

    /// Returns the kept key of servers, or a new one, which is kept; nil where none is asked for.
    func serverKey() throws -> PretendServerKey? {
        try serverKeyFile.map {
            try kept(
                in: $0, "--server-key-file", read: PretendServerKey.init(pem:), make: { PretendServerKey() },
                text: \.pem)
        }
    }

    /// Returns what a file keeps, or makes it and keeps it there, for its owner alone.
    private func kept<Value>(
        in path: String, _ option: String, read: (String) throws -> Value, make: () throws -> Value,
        text: KeyPath<Value, String>
    ) throws -> Value {
        do {
            if FileManager.default.fileExists(atPath: path) {
                return try read(String(contentsOfFile: path, encoding: .utf8))
            }
            let made = try make()
            let descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL, 0o600)
            guard descriptor >= 0 else { throw NSError(domain: NSPOSIXErrorDomain, code: Int(errno)) }
            try FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
                .write(contentsOf: Data(made[keyPath: text].utf8))
            return made
        } catch {
            throw Failure("\(path) cannot be used: \(ExitStatus.sentence(for: error)); give another \(option).")
        }
    }
}

/// Writes certificates into the file of an option, for the clients that trust them.
private func write(certificates pem: String, to path: String, _ option: String) throws {
    do {
        try pem.write(toFile: path, atomically: true, encoding: .utf8)
    } catch {
        throw Failure("\(path) cannot be written: \(ExitStatus.sentence(for: error)); give another \(option).")
    }
}

struct SimulatorTLSFlags: ParsableArguments {
    @Flag(help: "Speak HTTPS, with a certificate authority made at the start.")
    var tls = false

    @Option(
        help: ArgumentHelp(
            "With --tls: where the certificates of this authority and of the one that signs texts are written; a file "
                + "of the temporary folder unless given.",
            valueName: "F"))
    var tlsRootFile: String?

    @Option(
        help: ArgumentHelp(
            "With --tls: a further host name or address of this machine; may be repeated.", valueName: "name"))
    var tlsName: [String] = []

    @Option(
        help: ArgumentHelp(
            "With --tls: \(StoreCertificate.allCases.map(\.rawValue).joined(separator: ", ")).", valueName: "kind"))
    var tlsCertificate: StoreCertificate?

    func validate() throws {
        guard tls || (tlsRootFile == nil && tlsName.isEmpty && tlsCertificate == nil) else {
            throw ValidationError("--tls-root-file, --tls-name and --tls-certificate go with --tls.")
        }
    }

    func identity(ofStoreAt host: String) throws -> StoreIdentity? {
        guard tls else { return nil }
        return try StoreIdentity(names: StoreIdentity.localNames + [host] + tlsName, shows: tlsCertificate ?? .good)
    }

    /// Writes the certificates of both authorities for the clients that trust them, and returns the path.
    func writeRoots(of identity: StoreIdentity, and authority: SigningAuthority) throws -> String {
        let folder = FileManager.default.temporaryDirectory
        let path =
            tlsRootFile
            ?? folder.appending(path: "perennial-simulator-\(ProcessInfo.processInfo.processIdentifier).pem").path
        try write(certificates: identity.rootPEM + authority.rootPEM, to: path, "--tls-root-file")
        return path
    }
}

extension StoreCertificate: ExpressibleByArgument {}
