import AppStore
import ArgumentParser
import Configuration
import Foundation
import Logging
import Postgres
import Server
import Subscriptions

/// A conversion of raw values into typed ones that collects the mistakes in them. Secrets never appear in a sentence.
struct SettingsCheck {
    let reader: ConfigReader
    /// The connection string of the `PG*` variables; nil when none is set.
    let libpq: String?
    /// Returns a setting as the source of its value calls it.
    let said: (SettingName) -> String
    let read: @Sendable (String) throws -> String
    var mistakes: [String]

    /// The raw value of a setting, whichever source it comes from.
    subscript(name: SettingName) -> String? {
        let components = name.rawValue.lowercased().split(separator: "_").map(String.init)
        return reader.string(forKey: ConfigKey(components), isSecret: name.isSecret)
    }

    /// Returns the location of the database; empty when the `PG*` variables are sufficient.
    mutating func database(isNeeded: Bool) -> String {
        if self[.databaseURL] != nil { return connectionString(.databaseURL) ?? "" }
        if let libpq = libpq { return libpq }
        if isNeeded {
            mistakes.append(
                "DATABASE_URL is not set; give a libpq URI such as postgresql://user@host/perennial, or set PGHOST and "
                    + "PGDATABASE.")
        }
        return ""
    }

    mutating func connectionString(_ name: SettingName) -> String? {
        guard let text = self[name] else { return nil }
        do {
            try DatabaseConfiguration(connectionString: text).validate()
        } catch {
            mistakes.append("\(said(name)): \(error.message)")
        }
        return text
    }

    /// Returns the 32 bytes of the master key, given directly or in a file.
    mutating func masterKey(isNeeded: Bool) -> [UInt8]? {
        let advice =
            "give 32 bytes in base64. `head -c 32 /dev/urandom | base64` makes them before the first start; later a new key "
            + "opens no stored secret: put the first one back, or run `perennial app rotate-secret` for each app."
        let source: String
        let text: String
        switch (self[.masterKey], self[.masterKeyFile]) {
        case (nil, nil):
            if isNeeded {
                mistakes.append("PERENNIAL_MASTER_KEY or PERENNIAL_MASTER_KEY_FILE is not set; \(advice)")
            }
            return nil
        case (.some, .some):
            mistakes.append("\(said(.masterKey)) and \(said(.masterKeyFile)) are both set; keep one of them.")
            return nil
        case (let key?, nil):
            (source, text) = (said(.masterKey), key)
        case (nil, let path?):
            source = said(.masterKeyFile)
            do {
                text = try read(path)
            } catch {
                let reason = ExitStatus.sentence(for: error)
                mistakes.append("\(source): cannot read \(path): \(reason) The key is 32 bytes in base64.")
                return nil
            }
        }
        let trimmed = text.trimmingCharacters(in: .whitespacesAndNewlines)
        guard !trimmed.isEmpty else {
            mistakes.append("\(source) is empty\(self[.masterKeyFile].map { " (\($0))" } ?? ""); \(advice)")
            return nil
        }
        guard let key = Data(base64Encoded: trimmed) else {
            mistakes.append("\(source) is not base64; \(advice)")
            return nil
        }
        guard key.count == 32 else {
            mistakes.append("\(source) has \(key.count) bytes; \(advice)")
            return nil
        }
        return [UInt8](key)
    }

    mutating func number(_ name: SettingName, in limits: ClosedRange<Int>, of what: String) -> Int? {
        value(name, "\(what) as a whole number from \(limits.lowerBound) to \(limits.upperBound)") { text in
            Int(text).flatMap { limits.contains($0) ? $0 : nil }
        }
    }

    /// Returns the value of a setting; one that cannot be converted is a mistake with the advice to give `what`.
    private mutating func value<Value>(
        _ name: SettingName, _ what: String, _ convert: (String) -> Value?
    ) -> Value? {
        guard let text = self[name] else { return nil }
        let value = convert(text)
        if value == nil { mistakes.append("\(said(name)) is '\(text)'; give \(what).") }
        return value
    }

    mutating func trustedProxies() -> TrustedProxies? {
        guard let text = self[.trustedProxies] else { return nil }
        do throws(TrustedProxies.UnknownRange) {
            return try TrustedProxies(text)
        } catch {
            mistakes.append(
                "\(said(.trustedProxies)) has '\(error.text)'; give up to \(TrustedProxies.rangesMax) addresses and "
                    + "ranges with commas between them, such as 10.0.0.7,192.168.0.0/16,fd00::/8.")
            return nil
        }
    }

    mutating func url(_ name: SettingName) -> String? {
        value(name, "an address such as https://host/path") { text in
            let url = URL(string: text)
            let isHTTP = ["http", "https"].contains(url?.scheme?.lowercased())
            return isHTTP && url?.host?.isEmpty == false ? text : nil
        }
    }

    /// Returns the authorities of a simulated App Store. A file of them is refused while one of the stores is Apple's:
    /// a user who can write that file could then read every shared secret.
    mutating func trustedRoots(ofStoresAt addresses: [(name: SettingName, url: String)]) -> TrustedRoots? {
        let name = said(.appStoreRootFile)
        guard let path = self[.appStoreRootFile] else { return nil }
        // An address that cannot be read was named before, and Apple's stands in its place.
        let apples = addresses.filter { Self.isApples($0.url) && (self[$0.name] ?? $0.url) == $0.url }
            .map { said($0.name) }
        guard apples.isEmpty else {
            mistakes.append(
                "\(name) is for a pretend App Store, but \(apples.joined(separator: " and ")) lead\(apples.count == 1 ? "s" : "") "
                    + "to Apple; give the pretend store's addresses, or leave the file out.")
            return nil
        }
        do {
            return try TrustedRoots(pem: read(path))
        } catch {
            mistakes.append("\(name): cannot use \(path): \(ExitStatus.sentence(for: error))")
            return nil
        }
    }

    private static func isApples(_ url: String) -> Bool {
        guard let host = URL(string: url)?.host?.lowercased() else { return false }
        let name = host.hasSuffix(".") ? String(host.dropLast()) : host
        return name == "apple.com" || name.hasSuffix(".apple.com")
    }

    mutating func word<Word: CaseIterable & RawRepresentable<String>>(_ name: SettingName) -> Word? {
        let words = Word.allCases.map(\.rawValue).joined(separator: ", ")
        return value(name, "one of \(words)") { Word(rawValue: $0.lowercased()) }
    }
}

/// All mistakes in the settings, so that one run is enough to correct them all.
struct SettingsMistakes: Error {
    let lines: [String]
}

enum SettingsNeed: Hashable, Sendable {
    case database
    /// The master key, because secrets are sealed or opened.
    case masterKey
}

/// Flags of every command that reads settings. A flag is its setting's name in lower case.
struct SettingsFlags: LedgerFlags {
    @Option(help: ArgumentHelp("A file of KEY=VALUE lines, instead of PERENNIAL_CONFIG.", valueName: "file"))
    var config: String?

    @Option(
        help: ArgumentHelp(
            "Overrides DATABASE_URL. Others on this machine can read flags: keep passwords out of it.", valueName: "url"
        ))
    var databaseUrl: String?

    @Option(help: ArgumentHelp("trace, debug, info (default), notice, warning, error or critical.", valueName: "level"))
    var logLevel: String?

    @Option(help: ArgumentHelp("text (default) or json.", valueName: "format"))
    var logFormat: String?

    var base: SettingsFlags { self }

    var values: [SettingName: String?] {
        [.databaseURL: databaseUrl, .logLevel: logLevel, .logFormat: logFormat]
    }

    /// Returns the sources of the settings, with further flags.
    func sources(_ further: [[SettingName: String?]]) -> SettingsSources {
        let flags = further.reduce(values) { $0.merging($1) { _, newer in newer } }.compactMapValues { $0 }
        return SettingsSources(flags: flags, environment: ProcessInfo.processInfo.environment, file: config)
    }

    /// Returns the checked settings, with further flags, and starts logging. Throws `SettingsMistakes`.
    func settings(needing needs: Set<SettingsNeed>, _ further: [SettingName: String?]...) throws -> Settings {
        let (settings, warnings) = try sources(further).settings(needing: needs)
        startLogging(level: settings.logLevel, format: settings.logFormat)
        for warning in warnings { settings.logger.warning("\(warning)") }
        return settings
    }
}

struct AppFlags: LedgerFlags {
    @Option(help: ArgumentHelp("Apple's bundle id.", valueName: "B"))
    var app: BundleID

    @OptionGroup var base: SettingsFlags
}

struct CustomerFlags: LedgerFlags {
    @Option(help: ArgumentHelp("Apple's bundle id.", valueName: "B"))
    var app: BundleID

    @Option(help: ArgumentHelp("Your own id of the customer.", valueName: "C"))
    var customer: String

    @OptionGroup var base: SettingsFlags
}

struct AppleFlags: ParsableArguments {
    @Option(help: ArgumentHelp("Overrides PERENNIAL_APPSTORE_URL.", valueName: "url"))
    var appstoreUrl: String?

    @Option(help: ArgumentHelp("Overrides PERENNIAL_APPSTORE_SANDBOX_URL.", valueName: "url"))
    var appstoreSandboxUrl: String?

    @Option(help: ArgumentHelp("Overrides PERENNIAL_APPSTORE_SERVER_URL.", valueName: "url"))
    var appstoreServerUrl: String?

    @Option(help: ArgumentHelp("Overrides PERENNIAL_APPSTORE_SERVER_SANDBOX_URL.", valueName: "url"))
    var appstoreServerSandboxUrl: String?

    @Option(help: ArgumentHelp("Overrides PERENNIAL_APPSTORE_ROOT_FILE.", valueName: "file"))
    var appstoreRootFile: String?

    @Option(
        parsing: .unconditional, help: ArgumentHelp("Overrides PERENNIAL_LEASE_SECONDS (60).", valueName: "seconds"))
    var leaseSeconds: String?

    @Option(parsing: .unconditional, help: ArgumentHelp("Overrides PERENNIAL_POLL_SPEEDUP (1).", valueName: "factor"))
    var pollSpeedup: String?

    var values: [SettingName: String?] {
        [
            .appStoreURL: appstoreUrl, .appStoreSandboxURL: appstoreSandboxUrl,
            .appStoreServerURL: appstoreServerUrl, .appStoreServerSandboxURL: appstoreServerSandboxUrl,
            .appStoreRootFile: appstoreRootFile, .leaseSeconds: leaseSeconds, .pollSpeedup: pollSpeedup,
        ]
    }
}

struct HTTPFlags: ParsableArguments {
    @Option(help: ArgumentHelp("Overrides PERENNIAL_HTTP_HOST (127.0.0.1).", valueName: "address"))
    var httpHost: String?

    @Option(parsing: .unconditional, help: ArgumentHelp("Overrides PERENNIAL_HTTP_PORT (8080).", valueName: "port"))
    var httpPort: String?

    @Option(help: ArgumentHelp("Overrides PERENNIAL_TRUSTED_PROXIES.", valueName: "list"))
    var trustedProxies: String?

    @Flag(help: "Serve no pages under /admin.")
    var noAdmin = false

    var values: [SettingName: String?] {
        [.httpHost: httpHost, .httpPort: httpPort, .trustedProxies: trustedProxies]
    }
}

/// The variables of libpq with the location of the database (PostgreSQL documentation, "Environment Variables"). libpq
/// itself reads them from the environment; in the settings file they become a keyword string.
enum LibpqVariable {
    static let names = [
        "PGHOST", "PGHOSTADDR", "PGPORT", "PGDATABASE", "PGUSER", "PGPASSWORD", "PGPASSFILE", "PGSERVICE", "PGSSLMODE",
        "PGSSLROOTCERT", "PGSSLCERT", "PGSSLKEY",
    ]

    /// Returns the connection string of the variables that the file sets and the environment does not. It is empty when
    /// libpq finds everything itself, and nil when neither sets any, so that no database is met by accident.
    static func connectionString(environment: [String: String], file: [String: String]) -> String? {
        guard names.contains(where: { environment[$0] != nil || file[$0] != nil }) else { return nil }
        return names.compactMap { name in
            guard environment[name] == nil, let value = file[name] else { return nil }
            // A keyword is the variable's name without PG, except for the database.
            let keyword = name == "PGDATABASE" ? "dbname" : name.dropFirst("PG".count).lowercased()
            let quoted = value.replacing("\\", with: "\\\\").replacing("'", with: "\\'")
            return "\(keyword)='\(quoted)'"
        }.joined(separator: " ")
    }
}
