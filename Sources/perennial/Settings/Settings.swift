import AppStore
import Logging
import Postgres
import Server

/// The settings of this process, after every value was checked.
struct Settings: Sendable {
    /// A libpq connection string; empty when the `PG*` variables are sufficient.
    var database = ""
    /// What gave the location of the database, for messages.
    var databaseSource = "DATABASE_URL"
    /// A hot standby for lookups.
    var readDatabase: String?
    /// 32 bytes; nil when none is set.
    var masterKey: [UInt8]?
    /// The file that has it; nil where the environment does.
    var masterKeyPath: String?
    /// The address the API listens on.
    var httpHost = "127.0.0.1"
    /// The port the API listens on; 0 takes any free one.
    var httpPort = 8080
    /// The reverse proxies whose X-Forwarded-For counts.
    var trustedProxies = TrustedProxies()
    /// Apple's production endpoint.
    var appStoreURL = AppStoreOptions.appleProductionURL
    /// Apple's sandbox endpoint.
    var appStoreSandboxURL = AppStoreOptions.appleSandboxURL
    /// The Server API's production address.
    var appStoreServerURL = ServerAPIOptions.appleProductionURL
    /// The Server API's sandbox address.
    var appStoreServerSandboxURL = ServerAPIOptions.appleSandboxURL
    /// The certificate authorities of a simulated App Store; nil for Apple's, which uses the system's authorities.
    var appStoreRoots: TrustedRoots?
    /// The least severe log line written.
    var logLevel = Logger.Level.info
    /// The format of log lines.
    var logFormat = LogFormat.text
    /// The length of the lease of a claimed receipt.
    var leaseSeconds = 60.0
    /// The divisor of the schedule's delays.
    var pollSpeedup = 1
    /// How long after a notification its check comes.
    var notificationWaitSeconds = 5.0
}

extension Settings {
    /// Checks every value, and adds one sentence for each that is invalid or missing.
    init(_ values: SettingsValues, needing needs: Set<SettingsNeed>, mistakes: inout [String]) {
        var check = SettingsCheck(values: values)
        database = check.database(isNeeded: needs.contains(.database))
        databaseSource = values.databaseSource
        readDatabase = check.connectionString(.databaseReadURL)
        masterKey = check.masterKey(isNeeded: needs.contains(.masterKey))
        masterKeyPath = values[.masterKeyFile]
        httpHost = values[.httpHost] ?? httpHost
        httpPort = check.number(.httpPort, in: 0...65_535, of: "a port") ?? httpPort
        trustedProxies = check.trustedProxies(.trustedProxies) ?? trustedProxies
        appStoreURL = check.url(.appStoreURL) ?? appStoreURL
        appStoreSandboxURL = check.url(.appStoreSandboxURL) ?? appStoreSandboxURL
        appStoreServerURL = check.url(.appStoreServerURL) ?? appStoreServerURL
        appStoreServerSandboxURL = check.url(.appStoreServerSandboxURL) ?? appStoreServerSandboxURL
        appStoreRoots = check.trustedRoots(ofStoresAt: [
            (.appStoreURL, appStoreURL), (.appStoreSandboxURL, appStoreSandboxURL),
            (.appStoreServerURL, appStoreServerURL), (.appStoreServerSandboxURL, appStoreServerSandboxURL),
        ])
        logLevel = check.word(.logLevel, of: Logger.Level.allCases.map { ($0.rawValue, $0) }) ?? logLevel
        logFormat = check.word(.logFormat, of: LogFormat.allCases.map { ($0.rawValue, $0) }) ?? logFormat
        leaseSeconds =
            check.number(.leaseSeconds, in: 1...3_600, of: "seconds").map(Double.init) ?? leaseSeconds
        pollSpeedup = check.number(.pollSpeedup, in: 1...10_000_000, of: "a factor") ?? pollSpeedup
        notificationWaitSeconds =
            check.number(.notificationWaitSeconds, in: 0...600, of: "seconds").map(Double.init)
            ?? notificationWaitSeconds
        mistakes += check.mistakes
    }
}

extension Settings: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// A description without any values: they include the master key and connection strings, and a log may describe a
    /// type that contains settings.
    var description: String { "Settings" }
    var debugDescription: String { description }
    var customMirror: Mirror { Mirror(self, children: []) }
}
