import Postgres
import SQL
import Subscriptions

/// A part of the ledger, for one kind of caller.
protocol LedgerFacet: Sendable {
    var ledger: SubscriptionLedger { get }
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

extension SubscriptionLedger {
    /// Apps with their secrets, keys, catalog, notification addresses and rate limits.
    package var apps: LedgerApps { LedgerApps(ledger: self) }
    /// What arrives from outside: uploads, imports and notifications.
    package var intake: LedgerIntake { LedgerIntake(ledger: self) }
    /// Workers, their leases on due receipts and their budget of calls.
    package var claims: LedgerClaims { LedgerClaims(ledger: self) }
    /// Answers that become facts, timelines and events.
    package var settlements: LedgerSettlements { LedgerSettlements(ledger: self) }
    /// Customers: what they may use and why, and decisions about them.
    package var customers: LedgerCustomers { LedgerCustomers(ledger: self) }
    /// Orders: what customers are about to buy.
    package var orders: LedgerOrders { LedgerOrders(ledger: self) }
    /// Products on offer, and signatures of promotional offers.
    package var offers: LedgerOffers { LedgerOffers(ledger: self) }
    /// Deliveries: the queue, acknowledgements, and what a catalog releases.
    package var deliveries: LedgerDeliveries { LedgerDeliveries(ledger: self) }
    /// Support calls: what people ask Apple to change.
    package var support: LedgerSupport { LedgerSupport(ledger: self) }
    /// Webhooks: receivers of the feed.
    package var webhooks: LedgerWebhooks { LedgerWebhooks(ledger: self) }
    /// The feed of events.
    package var feed: LedgerFeed { LedgerFeed(ledger: self) }
    /// What only the admin pages show: sessions, searches and histories.
    package var admin: LedgerAdmin { LedgerAdmin(ledger: self) }
    /// What keeps an installation healthy: migrations, verification, rebuilds, pruning, incidents and figures.
    package var operations: LedgerOperations { LedgerOperations(ledger: self) }
}

extension LedgerFacet {
    var database: Database { ledger.database }
    var reads: Reads { ledger.reads }

    func query(_ file: SQLFile, _ parameters: [Parameter] = []) async throws -> [Row] {
        try await ledger.query(file, parameters)
    }

    func write(_ file: SQLFile, _ parameters: [Parameter] = []) async throws -> [Row] {
        try await ledger.write(file, parameters)
    }

    func write(
        _ file: SQLFile, _ parameters: [Parameter], audited action: AuditedAction, app bundleID: BundleID? = nil,
        detail: [String: String] = [:]
    ) async throws -> [Row] {
        try await ledger.write(file, parameters, audited: action, app: bundleID, detail: detail)
    }
}
