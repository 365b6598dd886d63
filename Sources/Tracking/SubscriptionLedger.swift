package import Postgres
import SQL
package import Subscriptions

/// Perennial's memory in PostgreSQL: claims, settlements, state, events, the feed, customers and lookups.
package struct SubscriptionLedger: Sendable {
    let database: Database
    let reads: Reads
    let seal: SecretSeal?
    let openedSecrets = OpenedSecrets()
    let acceptedSecrets = AcceptedSecrets()
    let knownChains = KnownChains()
    let askedOrders = WriteGroups<AskedOrder, PlacedOrder?>(requestsMax: 100, groupsMax: 2, waitingMax: 1_000)
    /// The divisor of all delays with an accelerated App Store; 1 in production. The apps read here carry it along.
    package internal(set) var speedup: Int
    /// How long after a notification its check comes, in seconds.
    package var notificationWaitSeconds = 5.0
    /// Reads the texts of stored notifications. A ledger that reads none takes no details along.
    package var readNotification: ReadNotification = { _ in nil }
    /// The actor recorded for writes through this ledger; nil in workers.
    var actor: Actor?

    /// Creates a ledger on a primary; lookups read from a hot standby if there is one.
    ///
    /// Without a `seal`, what needs an app's secret fails. All programs on one database have the same `speedup`.
    package init(database: Database, reads: Database? = nil, seal: SecretSeal? = nil, speedup: Int = 1) {
        self.database = database
        self.speedup = max(1, speedup)
        self.reads = Reads(primary: database, standby: reads)
        self.seal = seal
    }

    /// Shortens the waits for a database that is away, for a process that stops.
    package func shortenWaitsForStop() { database.shortenWaitsForStop() }

    /// Returns the standing of the hot standby that lookups read from.
    package func standby() async -> StandbyStanding { await reads.look() }

    /// Returns the database's clock.
    package func now() async throws -> Instant {
        guard let row = try await query(Queries.readClock).first else {
            throw LedgerError(.mismatch, "The database gave no time.")
        }
        return try row.instant("recorded_at")
    }
}

extension Statement {
    init(_ file: SQLFile) {
        self.init(name: file.name, sql: file.text)
    }
}

extension Transaction {
    @discardableResult
    func query(_ file: SQLFile, _ parameters: [Parameter]) throws -> [Row] {
        try query(Statement(file), parameters)
    }

    @discardableResult
    func query(_ file: SQLFile, _ parameters: Parameter...) throws -> [Row] {
        try query(Statement(file), parameters)
    }
}

/// The ledger, or a part of it for one kind of caller.
protocol LedgerFacet: Sendable {
    var ledger: SubscriptionLedger { get }
}

extension SubscriptionLedger: LedgerFacet {
    var ledger: SubscriptionLedger { self }
}

/// Apps with their secrets, keys, catalog, notification addresses and rate limits.
package struct LedgerApps: LedgerFacet { let ledger: SubscriptionLedger }

/// What arrives from outside: uploads, imports and notifications.
package struct LedgerIntake: LedgerFacet { let ledger: SubscriptionLedger }

/// Workers, their leases on due receipts and their budget of calls.
package struct LedgerClaims: LedgerFacet { let ledger: SubscriptionLedger }

/// Answers that become facts, timelines and events.
package struct LedgerSettlements: LedgerFacet { let ledger: SubscriptionLedger }

/// Customers: what they may use and why, and decisions about them.
package struct LedgerCustomers: LedgerFacet { let ledger: SubscriptionLedger }

/// Orders: what customers are about to buy.
package struct LedgerOrders: LedgerFacet { let ledger: SubscriptionLedger }

/// Products on offer, and signatures of promotional offers.
package struct LedgerOffers: LedgerFacet { let ledger: SubscriptionLedger }

/// Deliveries: the queue, acknowledgements, and what a catalog releases.
package struct LedgerDeliveries: LedgerFacet { let ledger: SubscriptionLedger }

/// Support calls: what people ask Apple to change.
package struct LedgerSupport: LedgerFacet { let ledger: SubscriptionLedger }

/// Webhooks: receivers of the feed.
package struct LedgerWebhooks: LedgerFacet { let ledger: SubscriptionLedger }

/// The feed of events.
package struct LedgerFeed: LedgerFacet { let ledger: SubscriptionLedger }

/// What only the admin pages show: sessions, searches and histories.
package struct LedgerAdmin: LedgerFacet { let ledger: SubscriptionLedger }

/// What keeps an installation healthy: migrations, verification, rebuilds, pruning, incidents and figures.
package struct LedgerOperations: LedgerFacet { let ledger: SubscriptionLedger }

/// The parts of the ledger.
extension SubscriptionLedger {
    package var apps: LedgerApps { LedgerApps(ledger: self) }
    package var intake: LedgerIntake { LedgerIntake(ledger: self) }
    package var claims: LedgerClaims { LedgerClaims(ledger: self) }
    package var settlements: LedgerSettlements { LedgerSettlements(ledger: self) }
    package var customers: LedgerCustomers { LedgerCustomers(ledger: self) }
    package var orders: LedgerOrders { LedgerOrders(ledger: self) }
    package var offers: LedgerOffers { LedgerOffers(ledger: self) }
    package var deliveries: LedgerDeliveries { LedgerDeliveries(ledger: self) }
    package var support: LedgerSupport { LedgerSupport(ledger: self) }
    package var webhooks: LedgerWebhooks { LedgerWebhooks(ledger: self) }
    package var feed: LedgerFeed { LedgerFeed(ledger: self) }
    package var admin: LedgerAdmin { LedgerAdmin(ledger: self) }
    package var operations: LedgerOperations { LedgerOperations(ledger: self) }
}

extension LedgerFacet {
    var database: Database { ledger.database }
    var reads: Reads { ledger.reads }

    func query(_ file: SQLFile, _ parameters: [Parameter]) async throws -> [Row] {
        try await database.query(Statement(file), parameters)
    }

    func query(_ file: SQLFile, _ parameters: Parameter...) async throws -> [Row] {
        try await query(file, parameters)
    }

    /// Reads from the primary, or from where lookups read.
    func read(_ file: SQLFile, _ parameters: [Parameter], fromPrimary: Bool) async throws -> [Row] {
        fromPrimary ? try await query(file, parameters) : try await reads.query(file, parameters)
    }

    /// Runs one writing statement in a transaction of its own.
    func write(_ file: SQLFile, _ parameters: [Parameter]) async throws -> [Row] {
        try await database.write(Statement(file), parameters)
    }

    func write(_ file: SQLFile, _ parameters: Parameter...) async throws -> [Row] {
        try await write(file, parameters)
    }
}

/// An error of the ledger: the reason of a refusal, in one sentence that says what to do.
package struct LedgerError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The kind of a refusal, for callers that map it to an exit status or an HTTP status.
    package enum Kind: Sendable, Hashable {
        case notFound
        /// No app has this bundle id.
        case unknownApp(BundleID)
        /// The thing exists already, or what exists is in the way.
        case exists
        case invalid
        /// The stored history or key does not match this program.
        case mismatch
        /// Another caller is using it at the moment; try again.
        case busy
        /// A limit is exceeded; a retry can succeed after this many seconds.
        case exhausted(retryAfterSeconds: Int)
    }

    package let kind: Kind
    package let message: String

    package init(_ kind: Kind, _ message: String) {
        self.kind = kind
        self.message = message
    }

    package var description: String { message }

    static func unknownApp(
        _ bundleID: BundleID, _ remedy: String = "add it with `perennial app add`."
    ) -> LedgerError {
        LedgerError(.unknownApp(bundleID), "No app has the bundle id \(bundleID); \(remedy)")
    }

    /// An erasure renamed a customer, or removed a receipt, between two statements of a transaction.
    static let erasedMeanwhile = LedgerError(.busy, "The customer is erased at this moment; send the request again.")
}

/// A failure of the database as the ledger's callers see it: what to do about it, without the driver's terms.
package struct StorageFailure: Sendable {
    fileprivate let error: DatabaseError

    /// One sentence: what failed, where, and the remedy.
    package var message: String { error.message }

    /// Whether the server is unreachable: the connection was lost or never made.
    package var isLoss: Bool { error.isLoss }

    /// Whether the statement ran, or its caller waited, longer than the limit.
    package var isTimeout: Bool { error.kind == .timedOut }

    /// Whether this process stops: it closed the database or cancelled the work.
    package var isStop: Bool { error.kind == .closed || error.kind == .cancelled }

    /// Whether a value can never be stored, however often it is tried: SQLSTATE classes 22 and 23.
    package var isAboutAValue: Bool {
        error.sqlState.map { $0.hasPrefix("22") || $0.hasPrefix("23") } ?? false
    }

    /// Whether the same work may succeed later. A settlement may be repeated even after a commit of unknown outcome.
    package var mayPass: Bool {
        switch error.disposition {
        case .retry: true
        case .reject: false
        case .alarm: error.kind == .commitUnknown
        }
    }

    /// When a caller of the API should try again, in seconds; nil where the failure is the program's fault.
    package var retryAfterSeconds: Int? {
        switch error.kind {
        case .cannotConnect, .connectionLost, .commitUnknown, .timedOut, .queueFull, .closed, .cancelled: 1
        case .decoding: nil
        case .server:
            switch error.disposition {
            case .retry(let milliseconds): (milliseconds + 999) / 1000
            case .alarm: 30
            case .reject: nil
            }
        }
    }
}

extension Error {
    /// The failure of the database that this error is; nil for any other error.
    package var storageFailure: StorageFailure? { (self as? DatabaseError).map(StorageFailure.init(error:)) }
}

extension Instant {
    /// Microseconds since 1970, PostgreSQL's unit.
    var microseconds: Int64 {
        let (product, overflow) = milliseconds.multipliedReportingOverflow(by: 1000)
        guard overflow else { return product }
        return milliseconds < 0 ? .min : .max
    }

    /// Creates the instant of the millisecond that contains the given microsecond.
    init(microseconds: Int64) {
        self.init(milliseconds: microseconds >= 0 ? microseconds / 1000 : (microseconds - 999) / 1000)
    }
}

extension Parameter {
    static func instant(_ instant: Instant?) -> Parameter {
        .timestamptz(microseconds: instant?.microseconds)
    }

    static func instants(_ instants: [Instant?]) -> Parameter {
        .timestamptzs(instants.map { $0?.microseconds })
    }
}

extension Row {
    func instant(_ column: String) throws -> Instant {
        Instant(microseconds: try timestamptz(column))
    }

    func instantIfPresent(_ column: String) throws -> Instant? {
        try timestamptzIfPresent(column).map(Instant.init(microseconds:))
    }
}

extension Row {
    /// Returns the value of one of our enums; throws `mismatch` for an unknown value.
    func word<Word: RawRepresentable<String>>(_ column: String) throws -> Word {
        let text = try text(column)
        guard let word = Word(rawValue: text) else {
            throw LedgerError(
                .mismatch, "The ledger's column \(column) holds the unknown word \(text); run a newer perennial.")
        }
        return word
    }

    /// Returns a name that Apple or the operator gave.
    func id<Tag>(_ column: String) throws -> Identifier<Tag> { Identifier(try text(column)) }

    func idIfPresent<Tag>(_ column: String) throws -> Identifier<Tag>? {
        try textIfPresent(column).map { Identifier($0) }
    }

    func wordIfPresent<Word: RawRepresentable<String>>(_ column: String) throws -> Word? {
        try isNull(column) ? nil : word(column)
    }
}
