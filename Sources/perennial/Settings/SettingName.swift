import Ledger

/// A setting by the exact name it has in the environment and in the settings file.
enum SettingName: String, CaseIterable, Sendable {
    /// Where the database is: a libpq URI or keyword string.
    case databaseURL = "DATABASE_URL"
    /// A hot standby for lookups.
    case databaseReadURL = "DATABASE_READ_URL"
    /// 32 bytes in base64 that seal secrets at rest.
    case masterKey = "PERENNIAL_MASTER_KEY"
    /// A file that holds the master key.
    case masterKeyFile = "PERENNIAL_MASTER_KEY_FILE"
    /// The address the API listens on.
    case httpHost = "PERENNIAL_HTTP_HOST"
    /// The port the API listens on.
    case httpPort = "PERENNIAL_HTTP_PORT"
    /// Apple's production endpoint.
    case appStoreURL = "PERENNIAL_APPSTORE_URL"
    /// Apple's sandbox endpoint.
    case appStoreSandboxURL = "PERENNIAL_APPSTORE_SANDBOX_URL"
    /// A file with the certificate of a pretend App Store's authority.
    case appStoreRootFile = "PERENNIAL_APPSTORE_ROOT_FILE"
    /// The least severe log line written.
    case logLevel = "PERENNIAL_LOG_LEVEL"
    /// How log lines look.
    case logFormat = "PERENNIAL_LOG_FORMAT"
    /// How long a claimed receipt is ours.
    case leaseSeconds = "PERENNIAL_LEASE_SECONDS"
    /// Divides the schedule's delays.
    case pollSpeedup = "PERENNIAL_POLL_SPEEDUP"

    /// The variable that names the settings file. It is no setting itself: a file cannot name another one.
    static let fileVariable = "PERENNIAL_CONFIG"

    /// Whether the value must never be printed.
    var isSecret: Bool {
        switch self {
        case .databaseURL, .databaseReadURL, .masterKey: true
        case .masterKeyFile, .httpHost, .httpPort, .appStoreURL, .appStoreSandboxURL, .appStoreRootFile, .logLevel,
            .logFormat, .leaseSeconds, .pollSpeedup:
            false
        }
    }

    /// The known name that was most likely meant; nil when nothing is near.
    static func nearest(to name: String) -> String? {
        let wanted = name.uppercased()
        let known = allCases.map(\.rawValue) + LibpqVariable.allCases.map(\.rawValue)
        return known.nearest(to: wanted)
    }
}
