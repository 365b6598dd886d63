/// A property of every ledger at every moment; the raw value is its name in flags, JSON, metrics and tables.
package enum Invariant: String, Sendable, CaseIterable {
    /// A subscription that needs a check is polled by a receipt that can vouch for it and that is scheduled by then.
    case coverage
    /// The same for a one-time purchase that is checked for refunds.
    case purchaseCoverage = "purchase_coverage"
    /// A subscription is polled by one of the receipts that can vouch for it.
    case poller
    /// The next check is stored, and is no later than the schedule's rules say.
    case nextCheck = "next_check"
    /// No answer gets older than lookups promise while Apple answers.
    case age
    /// The stored columns and timeline of a subscription follow from its facts.
    case facts
    /// A timeline goes from the first period to infinity without gap or overlap.
    case timeline
    /// A subscription or purchase has one owner at a time.
    case ownership
    /// What is stored of a customer's entitlements is what their sources give.
    case entitlements
    /// What was bought is delivered, and what was taken back is taken back, turn by turn.
    case deliveries
    /// A paid order has a delivery, or there is a reason why not; and its state is what was settled.
    case orders
    /// A receipt without any usable answer from Apple is scheduled.
    case scheduled
    /// A check that is wanted by a certain time is not forgotten.
    case wanted
    /// No receipt is leased for longer than its worker's lease time.
    case leases
    /// Every event belongs to a version that its subscription or purchase has reached, and has or awaits a place in the
    /// feed; and a refund that came with a move of its period has an event.
    case events
    /// The feed is gapless, and in the order of each subscription's changes.
    case feed
    /// A webhook is within the feed, and each of its streams waits at an event of its own.
    case webhooks
    /// The summaries match the history of each subscription.
    case summaries
    /// The sums of the summaries match the shares of the subscriptions.
    case summarySums = "summary_sums"
}

extension Invariant {
    /// Whether a repair restores it: the repair makes a new plan to ask about the subscription.
    package var isRepairable: Bool {
        switch self {
        case .coverage, .purchaseCoverage, .poller, .nextCheck, .age: true
        case .facts, .timeline, .ownership, .entitlements, .deliveries, .orders, .scheduled, .wanted, .leases, .events,
            .feed, .webhooks, .summaries, .summarySums:
            false
        }
    }

    /// The advice on a violation, in one sentence.
    package var advice: String {
        switch self {
        case .coverage, .poller, .nextCheck, .age:
            "Run `perennial verify --repair`; the subscription is then asked about by a receipt that can vouch for it."
        case .purchaseCoverage:
            "Run `perennial verify --repair`; the purchase is then asked about by a receipt that can vouch for it."
        case .facts:
            "Run `perennial rebuild --app APP`, which writes it anew from what Apple said."
        case .timeline:
            "Run `perennial rebuild --app APP`; if it stays, restore the constraint subscription_span_says_one_thing."
        case .ownership:
            "Run `perennial customer assign` to say whose it is, and restore the constraints of ledger.ownership; where a "
                + "receipt is named, run `perennial receipt check --receipt ID`, which decides anew."
        case .entitlements:
            "Run `perennial rebuild --app APP`, which stores what the sources give."
        case .deliveries:
            "Run `perennial catalog apply` with the same catalog; a worker then stores what is missing."
        case .orders:
            "Look at the order with `perennial order show` and at its customer's deliveries; give by hand what is missing."
        case .scheduled:
            "Run `perennial receipt check --receipt ID`, which asks Apple and schedules it."
        case .wanted:
            "See that a worker runs; then run `perennial receipt check --receipt ID`."
        case .leases:
            "Run `perennial receipt check --receipt ID` when the lease is over, or stop the worker that holds it."
        case .events:
            "Keep a dump of the database and report it: a settlement and its events are one transaction."
        case .feed:
            "Keep a dump of the database and report it; consumers read the subscription's state again."
        case .webhooks:
            "Run `perennial webhook replay`, which sends again from a position that you trust."
        case .summaries, .summarySums:
            "A worker's round through all subscriptions puts it right; `perennial report summaries_check` names the days."
        }
    }
}
