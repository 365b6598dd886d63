import ArgumentParser
import Foundation
import Logging

/// Flags of every command that reads settings. A flag is its setting's name in lower case.
struct SettingsFlags: ParsableArguments {
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

    /// The flags that were given.
    var values: [SettingName: String?] {
        [.databaseURL: databaseUrl, .logLevel: logLevel, .logFormat: logFormat]
    }

    /// Returns the checked settings, with further flags, and starts logging. Throws `SettingsMistakes`.
    func settings(needing needs: Set<SettingsNeed>, _ further: [SettingName: String?]...) throws -> Settings {
        let flags = further.reduce(values) { $0.merging($1) { _, newer in newer } }.compactMapValues { $0 }
        let sources = SettingsSources(flags: flags, environment: ProcessInfo.processInfo.environment, file: config)
        let (settings, warnings) = try sources.settings(needing: needs)
        startLogging(level: settings.logLevel, format: settings.logFormat)
        for warning in warnings { settings.logger.warning("\(warning)") }
        return settings
    }
}

/// Flags of the commands that ask Apple.
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

    @Option(help: ArgumentHelp("Overrides PERENNIAL_LEASE_SECONDS (60).", valueName: "seconds"))
    var leaseSeconds: String?

    @Option(help: ArgumentHelp("Overrides PERENNIAL_POLL_SPEEDUP (1).", valueName: "factor"))
    var pollSpeedup: String?

    /// The flags that were given.
    var values: [SettingName: String?] {
        [
            .appStoreURL: appstoreUrl, .appStoreSandboxURL: appstoreSandboxUrl,
            .appStoreServerURL: appstoreServerUrl, .appStoreServerSandboxURL: appstoreServerSandboxUrl,
            .appStoreRootFile: appstoreRootFile, .leaseSeconds: leaseSeconds, .pollSpeedup: pollSpeedup,
        ]
    }
}

/// Flags of the commands that serve HTTP.
struct HTTPFlags: ParsableArguments {
    @Option(help: ArgumentHelp("Overrides PERENNIAL_HTTP_HOST (127.0.0.1).", valueName: "address"))
    var httpHost: String?

    @Option(help: ArgumentHelp("Overrides PERENNIAL_HTTP_PORT (8080).", valueName: "port"))
    var httpPort: String?

    @Option(help: ArgumentHelp("Overrides PERENNIAL_TRUSTED_PROXIES.", valueName: "list"))
    var trustedProxies: String?

    @Flag(help: "Serve no pages under /admin.")
    var noAdmin = false

    /// The flags that were given.
    var values: [SettingName: String?] {
        [.httpHost: httpHost, .httpPort: httpPort, .trustedProxies: trustedProxies]
    }
}
