import AppStore
import Configuration
import Foundation
import Logging
import Server
import Tracking

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
    var httpHost = "127.0.0.1"
    /// The port the API listens on; 0 takes any free one.
    var httpPort = 8080
    /// The reverse proxies whose X-Forwarded-For counts.
    var trustedProxies = TrustedProxies()
    var appStoreURL = AppStoreOptions.appleProductionURL
    var appStoreSandboxURL = AppStoreOptions.appleSandboxURL
    var appStoreServerURL = ServerAPIOptions.appleProductionURL
    var appStoreServerSandboxURL = ServerAPIOptions.appleSandboxURL
    /// The certificate authorities of a simulated App Store; nil for Apple's, which uses the system's authorities.
    var appStoreRoots: TrustedRoots?
    var logLevel = Logger.Level.info
    var logFormat = LogFormat.text
    /// The length of the lease of a claimed receipt.
    var leaseSeconds = 60.0
    /// The divisor of the schedule's delays.
    var pollSpeedup = 1
    /// How long after a notification its check comes.
    var notificationWaitSeconds = 5.0
}

extension Settings {
    /// Checks every value; `check` gets one sentence for each that is invalid or missing.
    init(_ check: inout SettingsCheck, needing needs: Set<SettingsNeed>) {
        database = check.database(isNeeded: needs.contains(.database))
        readDatabase = check.connectionString(.databaseReadURL)
        masterKey = check.masterKey(isNeeded: needs.contains(.masterKey))
        masterKeyPath = check[.masterKeyFile]
        httpHost = check[.httpHost] ?? httpHost
        httpPort = check.number(.httpPort, in: 0...65_535, of: "a port") ?? httpPort
        trustedProxies = check.trustedProxies() ?? trustedProxies
        appStoreURL = check.url(.appStoreURL) ?? appStoreURL
        appStoreSandboxURL = check.url(.appStoreSandboxURL) ?? appStoreSandboxURL
        appStoreServerURL = check.url(.appStoreServerURL) ?? appStoreServerURL
        appStoreServerSandboxURL = check.url(.appStoreServerSandboxURL) ?? appStoreServerSandboxURL
        appStoreRoots = check.trustedRoots(ofStoresAt: [
            (.appStoreURL, appStoreURL), (.appStoreSandboxURL, appStoreSandboxURL),
            (.appStoreServerURL, appStoreServerURL), (.appStoreServerSandboxURL, appStoreServerSandboxURL),
        ])
        logLevel = check.word(.logLevel) ?? logLevel
        logFormat = check.word(.logFormat) ?? logFormat
        leaseSeconds =
            check.number(.leaseSeconds, in: 1...3_600, of: "seconds").map(Double.init) ?? leaseSeconds
        pollSpeedup = check.number(.pollSpeedup, in: 1...10_000_000, of: "a factor") ?? pollSpeedup
        notificationWaitSeconds =
            check.number(.notificationWaitSeconds, in: 0...600, of: "seconds").map(Double.init)
            ?? notificationWaitSeconds
    }
}

extension Settings: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// Values stay out of logs of any type that contains settings: they include the master key and connection strings.
    var description: String { "Settings" }
    var debugDescription: String { description }
    var customMirror: Mirror { Mirror(self, children: []) }
}

/// A setting by its exact name in the environment and in the settings file. `Settings` says what the values mean.
enum SettingName: String, CaseIterable, Sendable {
    case databaseURL = "DATABASE_URL"
    case databaseReadURL = "DATABASE_READ_URL"
    /// 32 bytes in base64 that seal secrets at rest.
    case masterKey = "PERENNIAL_MASTER_KEY"
    case masterKeyFile = "PERENNIAL_MASTER_KEY_FILE"
    case httpHost = "PERENNIAL_HTTP_HOST"
    case httpPort = "PERENNIAL_HTTP_PORT"
    case trustedProxies = "PERENNIAL_TRUSTED_PROXIES"
    case appStoreURL = "PERENNIAL_APPSTORE_URL"
    case appStoreSandboxURL = "PERENNIAL_APPSTORE_SANDBOX_URL"
    case appStoreServerURL = "PERENNIAL_APPSTORE_SERVER_URL"
    case appStoreServerSandboxURL = "PERENNIAL_APPSTORE_SERVER_SANDBOX_URL"
    /// A file with the certificate of a simulated App Store's authority.
    case appStoreRootFile = "PERENNIAL_APPSTORE_ROOT_FILE"
    case logLevel = "PERENNIAL_LOG_LEVEL"
    case logFormat = "PERENNIAL_LOG_FORMAT"
    case leaseSeconds = "PERENNIAL_LEASE_SECONDS"
    case pollSpeedup = "PERENNIAL_POLL_SPEEDUP"
    case notificationWaitSeconds = "PERENNIAL_NOTIFICATION_WAIT_SECONDS"

    static let names = allCases.map(\.rawValue)

    /// The variable with the path of the settings file. It is not a setting itself: a file cannot name another one.
    static let fileVariable = "PERENNIAL_CONFIG"

    /// Whether the value must never be printed.
    var isSecret: Bool {
        switch self {
        case .databaseURL, .databaseReadURL, .masterKey: true
        case .masterKeyFile, .httpHost, .httpPort, .trustedProxies, .appStoreURL, .appStoreSandboxURL,
            .appStoreServerURL, .appStoreServerSandboxURL, .appStoreRootFile, .logLevel, .logFormat, .leaseSeconds,
            .pollSpeedup, .notificationWaitSeconds:
            false
        }
    }

    /// The flag that overrides it, where there is one: its name in lower case.
    var flag: String {
        let name = rawValue.hasPrefix("PERENNIAL_") ? rawValue.dropFirst("PERENNIAL_".count) : rawValue[...]
        return "--" + name.lowercased().replacing("_", with: "-")
    }

    /// Returns the known name that was most likely meant; nil when none is similar.
    static func nearest(to name: String) -> String? {
        (names + LibpqVariable.names).nearest(to: name.uppercased())
    }
}

/// The sources of settings: flags before the environment before the file. An empty value counts as absent.
struct SettingsSources {
    /// Values that no other source overrides.
    var flags: [SettingName: String] = [:]
    var environment: [String: String]
    /// The settings file's path; nil for the environment's PERENNIAL_CONFIG.
    var file: String?
    /// Reads a file as text; a seam for tests.
    var read: @Sendable (String) throws -> String = SettingsSources.textOfFile

    /// Returns the settings a command needs, with warnings for the log. Throws all mistakes at once.
    func settings(needing needs: Set<SettingsNeed>) throws(SettingsMistakes) -> (Settings, warnings: [String]) {
        var mistakes: [String] = []
        let flags = flags.filter { !$0.value.isEmpty }
        let environment = environment.filter { !$0.value.isEmpty }
        var file = SettingsFile("", name: "")
        if let path = self.file ?? environment[SettingName.fileVariable] {
            do {
                file = SettingsFile(try read(path), name: path)
                mistakes += file.mistakes
            } catch {
                mistakes.append("\(SettingName.fileVariable): cannot read \(path): \(ExitStatus.sentence(for: error))")
            }
        }
        let inFile = file.values.filter { !$0.value.isEmpty }
        var check = SettingsCheck(
            reader: ConfigReader(providers: [
                provider(of: Dictionary(uniqueKeysWithValues: flags.map { ($0.rawValue, $1) })),
                provider(of: environment), provider(of: inFile),
            ]),
            libpq: LibpqVariable.connectionString(environment: environment, file: inFile),
            said: { name in
                if flags[name] != nil { return name.flag }
                let isOfFile = environment[name.rawValue] == nil && inFile[name.rawValue] != nil
                return isOfFile ? "\(name.rawValue) of \(file.name)" : name.rawValue
            }, read: read, mistakes: mistakes)
        var settings = Settings(&check, needing: needs)
        let variables = LibpqVariable.names.filter { environment[$0] != nil || inFile[$0] != nil }
        settings.databaseSource =
            check[.databaseURL] != nil || variables.isEmpty
            ? check.said(.databaseURL) : variables.joined(separator: ", ")
        guard check.mistakes.isEmpty else { throw SettingsMistakes(lines: check.mistakes) }
        return (settings, Self.warnings(about: environment) + file.warnings)
    }

    /// Names of the environment that look like settings and are none, one sentence each. Tests and examples have names
    /// of their own.
    private static func warnings(about environment: [String: String]) -> [String] {
        let others = [
            "PERENNIAL_TEST_", "PERENNIAL_FUZZ_", "PERENNIAL_WRITE_GOLDENS", "PERENNIAL_KEY", "PERENNIAL_URL",
        ]
        let known = SettingName.names + [SettingName.fileVariable, OperatorCommand.variable]
        return environment.keys.filter { name in
            name.hasPrefix("PERENNIAL_") && !known.contains(name) && !others.contains(where: name.hasPrefix)
        }.sorted().map { name in
            let hint = SettingName.nearest(to: name).map { "did you mean \($0)?" } ?? "it is ignored."
            return "\(name) of the environment is unknown; \(hint)"
        }
    }

    /// Provides only the program's own names, so that a stray variable with the same name in lower case has no effect.
    private func provider(of values: [String: String]) -> EnvironmentVariablesProvider {
        let names = Set(SettingName.names)
        let secrets = Set(SettingName.allCases.filter(\.isSecret).map(\.rawValue))
        return EnvironmentVariablesProvider(
            environmentVariables: values.filter { names.contains($0.key) },
            secretsSpecifier: .specific(secrets))
    }

    @Sendable static func textOfFile(_ path: String) throws -> String {
        try InputFile(path: path).text(bytesMax: SettingsFile.bytesMax)
    }
}

/// The `KEY=VALUE` lines of a settings file.
struct SettingsFile: Sendable {
    static let bytesMax = 1 << 20

    /// The file as messages call it.
    let name: String
    /// Values by key; of equal keys the last counts.
    private(set) var values: [String: String] = [:]
    /// Lines that are neither `KEY=VALUE` nor a comment, one sentence each.
    private(set) var mistakes: [String] = []
    private(set) var warnings: [String] = []

    /// Reads the text of the file called `name`. Empty lines and lines that start with `#` are skipped. `export` before a
    /// key and quotes around a value are dropped, so that a shell can read the same file.
    init(_ text: String, name: String) {
        self.name = name
        let known = Set(SettingName.names + LibpqVariable.names)
        for (index, line) in text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline).enumerated() {
            var line = Self.trimmed(line)
            guard !line.isEmpty, !line.hasPrefix("#") else { continue }
            if line.hasPrefix("export ") { line = Self.trimmed(line.dropFirst("export ".count)) }
            guard let equals = line.firstIndex(of: "="), equals > line.startIndex else {
                mistakes.append("\(name), line \(index + 1): write KEY=VALUE, or # before a comment.")
                continue
            }
            let key = String(Self.trimmed(line[..<equals]))
            if values.updateValue(Self.unquoted(Self.trimmed(line[line.index(after: equals)...])), forKey: key) != nil {
                warnings.append("\(name), line \(index + 1): \(key) is there again; the last one counts.")
            }
            if !known.contains(key) {
                let hint = SettingName.nearest(to: key).map { "did you mean \($0)?" } ?? "it is ignored."
                warnings.append("\(name), line \(index + 1): \(key) is unknown; \(hint)")
            }
        }
    }

    private static func trimmed(_ text: Substring) -> Substring {
        let start = text.drop(while: \.isWhitespace)
        guard let end = start.lastIndex(where: { !$0.isWhitespace }) else { return "" }
        return start[...end]
    }

    private static func unquoted(_ value: Substring) -> String {
        guard value.count >= 2, let quote = value.first, quote == value.last, quote == "\"" || quote == "'" else {
            return String(value)
        }
        return String(value.dropFirst().dropLast())
    }
}
