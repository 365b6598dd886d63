/// The variables of libpq with the location of the database (PostgreSQL documentation, "Environment Variables").
///
/// libpq itself reads them from the environment; in the settings file they become a keyword string.
enum LibpqVariable: String, CaseIterable, Sendable {
    case host = "PGHOST"
    case hostAddress = "PGHOSTADDR"
    case port = "PGPORT"
    case database = "PGDATABASE"
    case user = "PGUSER"
    case password = "PGPASSWORD"
    case passwordFile = "PGPASSFILE"
    case service = "PGSERVICE"
    case sslMode = "PGSSLMODE"
    case sslRootCertificate = "PGSSLROOTCERT"
    case sslCertificate = "PGSSLCERT"
    case sslKey = "PGSSLKEY"

    /// The keyword of a connection string.
    var keyword: String {
        switch self {
        case .host: "host"
        case .hostAddress: "hostaddr"
        case .port: "port"
        case .database: "dbname"
        case .user: "user"
        case .password: "password"
        case .passwordFile: "passfile"
        case .service: "service"
        case .sslMode: "sslmode"
        case .sslRootCertificate: "sslrootcert"
        case .sslCertificate: "sslcert"
        case .sslKey: "sslkey"
        }
    }

    /// Returns the connection string of the variables that the file sets and the environment does not; empty when libpq
    /// finds everything itself.
    ///
    /// Nil when neither sets any, so that the program connects to no database by accident.
    static func connectionString(environment: [String: String], file: [String: String]) -> String? {
        guard allCases.contains(where: { environment[$0.rawValue] != nil || file[$0.rawValue] != nil }) else {
            return nil
        }
        return allCases.compactMap { variable in
            guard environment[variable.rawValue] == nil, let value = file[variable.rawValue] else { return nil }
            let quoted = value.replacing("\\", with: "\\\\").replacing("'", with: "\\'")
            return "\(variable.keyword)='\(quoted)'"
        }.joined(separator: " ")
    }
}
