import Postgres
import SQL
import Subscriptions

/// Apple's answers about some subscriptions and purchases, read again from the stored observations by the present rules.
/// Each is folded at its first clock, and at its last one where that is another: every answer in between said the same.
struct Replay {
    /// A subscription to replay.
    struct Target {
        let rowID: Int64
        let key: SubscriptionRowKey
        let polledBy: ReceiptID?
        let asOf: Instant
        /// What answers about other receipts may have said: the statements by which its periods moved to other subscriptions,
        /// and refunds that it holds and that Apple stated of another subscription.
        var elsewhere: [SubscriptionEvidence] = []
        /// The subscriptions to which its periods moved, by line item.
        var successors: [WebOrderLineItemID: OriginalTransactionID] = [:]
    }

    /// A one-time purchase to replay.
    struct PurchaseTarget {
        let rowID: Int64
        let key: PurchaseRowKey
        let polledBy: ReceiptID?
        let asOf: Instant
    }

    /// The observations that were read, by number.
    private(set) var observations: [Int64: Observation] = [:]
    private var slices: [SubscriptionRowKey: [(place: Place, slice: SubscriptionEvidence)]] = [:]
    private var purchases: [PurchaseRowKey: [(place: Place, slice: PurchaseEvidence)]] = [:]
    /// How many answers are no longer stored or not vouched for by the present rules, by receipt.
    private var lost: [Int64: Int] = [:]
    /// The transactions in notifications whose details were taken along.
    private var details: [SubscriptionRowKey: [TransactionRow]] = [:]
    /// What applied notifications were about whose texts were erased.
    private var erased: Set<SubscriptionRowKey> = []
    private var links: ReplayLinks

    /// The order in which answers are folded: Apple's clock, then the receipt, then the observation.
    private struct Place: Comparable {
        let asOf: Instant
        let receipt: Int64
        let observation: Int64

        static func < (left: Place, right: Place) -> Bool {
            (left.asOf, left.receipt, left.observation) < (right.asOf, right.receipt, right.observation)
        }
    }

    /// The most bodies in memory at the same time.
    private static let bodiesMax: Int32 = 40

    /// Reads the stored answers about the receipts that contain the targets. The caller holds the targets' locks, or
    /// accepts that a settlement may come in between.
    init(
        of targets: [Target], purchases bought: [PurchaseTarget], reading read: EvidenceReader,
        in transaction: Transaction
    ) throws {
        links = try ReplayLinks(
            transaction.query(Queries.readLinks, .int8s(targets.map(\.rowID)), .int8s(bought.map(\.rowID))))
        let known = Dictionary(targets.map { ($0.key, $0) }) { first, _ in first }
        var after: Int64 = 0
        while true {
            let rows = try transaction.query(
                Queries.readObservations, .int8s(links.receipts), .int8(after), .int4(Self.bodiesMax))
            for row in rows { try hear(row, known, bought, reading: read) }
            guard let last = try rows.last?.int8("observation_id") else { break }
            after = last
        }
        try forgetErased(in: transaction)
        try hearNotifications(about: known, bought, reading: read, in: transaction)
        for target in known.values where slices[target.key] != nil {
            slices[target.key]? += target.elsewhere.map { said in
                // A row may be signed later than its answer, which gives the subscription its clock.
                var slice = said
                slice.asOf = min(said.asOf, target.asOf)
                return (place: Place(asOf: slice.asOf, receipt: .max, observation: .max), slice: slice)
            }
        }
    }

    /// Leaves out the account tokens of erased customers, which a body may still have that is of other customers too.
    private mutating func forgetErased(in transaction: Transaction) throws {
        var said: [(appID: Int32, rows: [TransactionRow])] = []
        for (key, heard) in slices { said += heard.map { (key.appID, $0.slice.transactions) } }
        for (key, heard) in purchases { said += heard.map { (key.appID, $0.slice.transactions) } }
        let customers = try OrderCustomers(of: said, in: transaction)
        for (key, heard) in slices {
            for index in heard.indices {
                slices[key]?[index].slice.transactions = customers.withoutErased(
                    heard[index].slice.transactions, appID: key.appID)
            }
        }
        for (key, heard) in purchases {
            for index in heard.indices {
                purchases[key]?[index].slice.transactions = customers.withoutErased(
                    heard[index].slice.transactions, appID: key.appID)
            }
        }
    }

    /// Reads the details in notifications about the targets that were taken along.
    private mutating func hearNotifications(
        about targets: [SubscriptionRowKey: Target], _ bought: [PurchaseTarget], reading read: EvidenceReader,
        in transaction: Transaction
    ) throws {
        let named = Array(targets.keys) + bought.map(\.key.subject)
        let rows = try transaction.query(Queries.readAppliedNotifications, SubscriptionRowKey.parameters(named))
        for row in rows {
            let (kept, subject) = (try KeptNotification(row: row), try SubscriptionRowKey(subject: row))
            if let evidence = read.notification(kept) {
                let effect: NotificationEffect = try row.word("effect")
                details[subject, default: []] += evidence.transactions.map { effect == .applied ? $0 : $0.withoutShare }
            } else if kept.texts == nil, kept.claims == nil {
                erased.insert(subject)
            }
        }
    }

    private mutating func hear(
        _ row: Row, _ targets: [SubscriptionRowKey: Target], _ bought: [PurchaseTarget], reading read: EvidenceReader
    ) throws {
        let observation = try Observation(row: row)
        guard try row.text("outcome") == "verified" else {
            let sentence = try row.textIfPresent("reason")
            for target in targets.values where target.key.endedAllowanceSentence == sentence {
                keep(.silence(of: target.key.id, until: observation.firstAsOf), of: target.key, observation)
            }
            return
        }
        guard let body = try row.byteaIfPresent("body"),
            let environment: StoreEnvironment = try row.wordIfPresent("environment"),
            let evidence = read.answer(
                KeptAnswer(
                    observation: observation, bundleID: BundleID(try row.text("bundle_id")), environment: environment,
                    body: body))
        else {
            lost[observation.receiptID.number, default: 0] += 1
            return
        }
        observations[observation.id] = observation
        let kept = evidence.kept(in: observation)
        hear(kept, observation, targets, bought)
        let repeated = kept.given(at: observation.lastAsOf)
        if repeated.asOf != kept.asOf || repeated.transactions != kept.transactions
            || repeated.renewals != kept.renewals
        {
            hear(repeated, observation, targets, bought)
        }
    }

    private mutating func hear(
        _ evidence: Evidence, _ observation: Observation, _ targets: [SubscriptionRowKey: Target],
        _ bought: [PurchaseTarget]
    ) {
        // An equal answer counts only for what its receipt polls.
        func counts(at clock: Instant, polledBy poller: ReceiptID?) -> Bool {
            evidence.asOf <= max(observation.firstAsOf, clock) || poller == observation.receiptID
        }
        for target in targets.values where target.key.environment == evidence.environment {
            guard counts(at: target.asOf, polledBy: target.polledBy) else { continue }
            // What counted of an answer that shows a line item under several ids, the stored state tells: one under which
            // it is. Where it shows none such, the period had moved away from all of them.
            let once = evidence.showingLineItemsOnce { place in
                place.subscription != target.successors[place.item] ?? target.key.id
            }
            let slice = once.slice(of: target.key.id)
            if !slice.transactions.isEmpty { keep(slice, of: target.key, observation) }
        }
        let named = Dictionary(evidence.purchases.map { ($0.key, $0) }) { first, _ in first }
        for target in bought where target.key.environment == evidence.environment {
            let place = Place(asOf: evidence.asOf, receipt: observation.receiptID.number, observation: observation.id)
            if let purchase = named[target.key.purchase], counts(at: target.asOf, polledBy: target.polledBy) {
                purchases[target.key, default: []].append((place, purchase))
            } else if evidence.confirmsOtherPurchases || named[target.key.purchase] != nil,
                observation.firstAsOf <= target.asOf,
                links.purchases[target.rowID]?.receipts.contains(observation.receiptID.number) ?? false
            {
                // Equal answers may have come since the one that confirmed the purchase.
                let asOf = min(evidence.asOf, target.asOf)
                let confirmed = PurchaseEvidence(key: target.key.purchase, asOf: asOf, transactions: [])
                purchases[target.key, default: []].append((place, confirmed))
            }
        }
    }

    private mutating func keep(_ slice: SubscriptionEvidence, of key: SubscriptionRowKey, _ observation: Observation) {
        let place = Place(asOf: slice.asOf, receipt: observation.receiptID.number, observation: observation.id)
        slices[key, default: []].append((place, slice))
    }

    /// Returns the state of a subscription from the observations, except the dropped ones; nil when none is about it.
    func state(of target: Target, policy: Policy, without dropped: Set<Int64> = []) -> SubscriptionState? {
        let said = (slices[target.key] ?? []).filter { !dropped.contains($0.place.observation) }
            .sorted { $0.place < $1.place }
        let replayed = said.reduce(nil as SubscriptionState?) { reconcile($0, with: $1.slice, policy: policy).state }
            .map { $0.adding(details[target.key] ?? [], policy: policy) }
        // The end of an outage allowance is an observation of the poller. Without a poller there is no observation; only
        // the subscription's clock shows the end.
        guard let replayed, target.polledBy == nil, replayed.outageAllowance.expected, replayed.asOf < target.asOf,
            replayed.outageAllowance.accessEndsAt == target.asOf
        else { return replayed }
        return reconcile(replayed, with: .silence(of: target.key.id, until: target.asOf), policy: policy).state
    }

    /// Returns the state of a purchase from the observations, except the dropped ones; nil when none is about it.
    func state(of key: PurchaseRowKey, policy: Policy, without dropped: Set<Int64> = []) -> PurchaseState? {
        (purchases[key] ?? []).filter { !dropped.contains($0.place.observation) }.sorted { $0.place < $1.place }
            .reduce(nil as PurchaseState?) { reconcilePurchase($0, with: $1.slice, policy: policy)?.state ?? $0 }
            .map { $0.adding(details[key.subject] ?? []) }
    }

    /// Returns the observations that report on a subscription, by instant.
    func speakers(of key: SubscriptionRowKey) -> [Instant: Set<Int64>] {
        speakers((slices[key] ?? []).map { ($0.place, $0.slice.clocks) })
    }

    /// Returns the observations that report on a purchase, by instant.
    func speakers(of key: PurchaseRowKey) -> [Instant: Set<Int64>] {
        speakers((purchases[key] ?? []).map { ($0.place, $0.slice.clocks) })
    }

    private func speakers(_ said: [(place: Place, clocks: Set<Instant>)]) -> [Instant: Set<Int64>] {
        said.reduce(into: [:]) { speakers, said in
            for clock in said.clocks { speakers[clock, default: []].insert(said.place.observation) }
        }
    }

    /// Returns why a subscription cannot be rebuilt in full; nil when all answers about it are stored.
    func gap(of target: Target) -> String? {
        gap(target.key, links.subscriptions[target.rowID], slices[target.key]?.map(\.place.asOf).min())
    }

    /// Returns why a purchase cannot be rebuilt in full; nil when all answers about it are stored.
    func gap(of target: PurchaseTarget) -> String? {
        // What only confirms it says nothing of when it was bought.
        let shown = purchases[target.key]?.filter { !$0.slice.transactions.isEmpty }
        return gap(target.key.subject, links.purchases[target.rowID], shown?.map(\.place.asOf).min())
    }

    private func gap(_ subject: SubscriptionRowKey, _ link: ReplayLinks.Link?, _ earliest: Instant?) -> String? {
        if erased.contains(subject) { return "A notification about it was erased with its customer." }
        guard let earliest else { return "No answer about it is kept." }
        guard let link else { return nil }
        let lost = link.receipts.compactMap { self.lost[$0] }.reduce(0, +)
        if lost == 1 { return "1 answer about its receipts is not kept any more or cannot be read." }
        if lost > 1 { return "\(lost) answers about its receipts are not kept any more or cannot be read." }
        guard let first = link.firstAsOf, first < min(earliest, link.prunedAsOf ?? earliest) else { return nil }
        return "It was known at \(first.iso8601), and the first answer that is kept is of \(earliest.iso8601)."
    }
}

/// The receipts that contain the targets of a replay, and since when these are known.
struct ReplayLinks {
    struct Link {
        var receipts: [Int64] = []
        /// Apple's clock at the first event.
        var firstAsOf: Instant?
        /// Apple's clock at the first answer that was pruned because others say the same.
        var prunedAsOf: Instant?
    }

    private(set) var subscriptions: [Int64: Link] = [:]
    private(set) var purchases: [Int64: Link] = [:]

    init(_ rows: [Row]) throws {
        for row in rows {
            let receipt = try row.int8("receipt_id")
            let first = try row.instantIfPresent("first_as_of")
            let pruned = try row.instantIfPresent("pruned_as_of")
            if let id = try row.int8IfPresent("subscription_id") {
                subscriptions[id, default: Link()].note(receipt, first, pruned)
            }
            if let id = try row.int8IfPresent("purchase_id") {
                purchases[id, default: Link()].note(receipt, first, pruned)
            }
        }
    }

    var receipts: [Int64] {
        Set([subscriptions, purchases].flatMap { $0.values.flatMap(\.receipts) }).sorted()
    }
}

extension ReplayLinks.Link {
    fileprivate mutating func note(_ receipt: Int64, _ first: Instant?, _ pruned: Instant?) {
        receipts.append(receipt)
        firstAsOf = first
        prunedAsOf = [prunedAsOf, pruned].compactMap(\.self).min()
    }
}

extension SubscriptionState {
    /// Returns the replayed state with the details that applied notifications stated.
    fileprivate func adding(_ rows: [TransactionRow], policy: Policy) -> SubscriptionState {
        let detailed = rows.reduce(facts) { $0.addingDetails(of: $1) ?? $0 }
        return detailed == facts
            ? self
            : SubscriptionState(facts: detailed, policy: policy, version: version, retractions: retractions)
    }
}

extension PurchaseState {
    /// Returns the replayed state with the details that applied notifications stated.
    fileprivate func adding(_ rows: [TransactionRow]) -> PurchaseState {
        let own = rows.filter { $0.expiresAt == nil && $0.productID == facts.key.productID }
        return PurchaseState(
            facts: own.reduce(facts) { $0.addingDetails(of: $1) }, version: version,
            refundRetractedAt: refundRetractedAt)
    }
}
