import Ledger

/// A setting by its exact name in the environment and in the settings file.
enum SettingName: String, CaseIterable, Sendable {
    /// The location of the database: a libpq URI or keyword string.
    case databaseURL = "DATABASE_URL"
    /// A hot standby for lookups.
    case databaseReadURL = "DATABASE_READ_URL"
    /// 32 bytes in base64 that seal secrets at rest.
    case masterKey = "PERENNIAL_MASTER_KEY"
    /// A file with the master key.
    case masterKeyFile = "PERENNIAL_MASTER_KEY_FILE"
    /// The address the API listens on.
    case httpHost = "PERENNIAL_HTTP_HOST"
    /// The port the API listens on.
    case httpPort = "PERENNIAL_HTTP_PORT"
    /// The addresses and ranges of reverse proxies whose X-Forwarded-For counts.
    case trustedProxies = "PERENNIAL_TRUSTED_PROXIES"
    /// Apple's production endpoint.
    case appStoreURL = "PERENNIAL_APPSTORE_URL"
    /// Apple's sandbox endpoint.
    case appStoreSandboxURL = "PERENNIAL_APPSTORE_SANDBOX_URL"
    /// The Server API's production address.
    case appStoreServerURL = "PERENNIAL_APPSTORE_SERVER_URL"
    /// The Server API's sandbox address.
    case appStoreServerSandboxURL = "PERENNIAL_APPSTORE_SERVER_SANDBOX_URL"
    /// A file with the certificate of a simulated App Store's authority.
    case appStoreRootFile = "PERENNIAL_APPSTORE_ROOT_FILE"
    /// The least severe log line written.
    case logLevel = "PERENNIAL_LOG_LEVEL"
    /// The format of log lines.
    case logFormat = "PERENNIAL_LOG_FORMAT"
    /// The length of the lease of a claimed receipt.
    case leaseSeconds = "PERENNIAL_LEASE_SECONDS"
    /// The divisor of the schedule's delays.
    case pollSpeedup = "PERENNIAL_POLL_SPEEDUP"
    /// How long after a notification its check comes.
    case notificationWaitSeconds = "PERENNIAL_NOTIFICATION_WAIT_SECONDS"

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

    /// Returns the known name that was most likely meant; nil when none is similar.
    static func nearest(to name: String) -> String? {
        let wanted = name.uppercased()
        let known = allCases.map(\.rawValue) + LibpqVariable.allCases.map(\.rawValue)
        return known.nearest(to: wanted)
    }
}
