@testable import Subscriptions

/// Days since 2026-01-01T00:00:00Z, the calendar of these tests.
func day(_ days: Double) -> Instant {
    Instant(milliseconds: 1_767_225_600_000 + Int64((days * 86_400_000).rounded()))
}

/// Production defaults without leeway, so that a table shows Apple's dates only.
let strictPolicy = Policy.standard(for: .production).with(leeway: .zero)
/// Production defaults.
let standardPolicy = Policy.standard(for: .production)

let subscriptionID: OriginalTransactionID = "1000"

/// A row of `latest_receipt_info` for a test; `name` is both line item and transaction unless given.
func row(
    _ name: String, _ from: Double, _ to: Double, product: ProductID = "monthly", asOf: Double = 0,
    cancelled: Double? = nil, upgraded: Bool = false, trial: Bool? = nil, family: Bool = false,
    source: EvidenceSource = .latestReceiptInfo, transaction: String? = nil, numbered: Bool = true,
    of subscription: OriginalTransactionID = subscriptionID
) -> TransactionRow {
    var row = TransactionRow(
        path: "latest_receipt_info[\(name)]", source: source, asOf: day(asOf),
        transactionID: TransactionID(transaction ?? "t\(name)"), originalTransactionID: subscription,
        webOrderLineItemID: numbered ? WebOrderLineItemID("w\(name)") : nil, productID: product,
        purchasedAt: day(from), expiresAt: day(to), cancelledAt: cancelled.map(day), isUpgraded: upgraded)
    (row.isTrial, row.groupID, row.ownership) = (trial, "group", family ? .familyShared : nil)
    return row
}

/// What a pending row says, for a test.
func renewal(
    _ willRenew: Bool? = true, product: ProductID = "monthly", to next: ProductID? = nil, intent: String? = nil,
    retry: Bool? = nil, grace: Double? = nil, consent: String? = nil, increase: String? = nil,
    graceByStatus: Bool? = nil
) -> Renewal {
    Renewal(
        productID: product, renewsToProductID: next ?? product, willRenew: willRenew, expirationIntent: intent,
        inBillingRetry: retry, graceExpiresAt: grace.map(day), isInGraceByStatus: graceByStatus,
        priceConsentStatus: consent, priceIncreaseStatus: increase)
}

/// One answer about the subscription: rows speak for the answer's day unless they are a device's.
func answer(
    _ asOf: Double, _ rows: [TransactionRow], _ renewals: Renewal..., replacedBy: OriginalTransactionID? = nil
) -> SubscriptionEvidence {
    SubscriptionEvidence(
        originalTransactionID: subscriptionID, asOf: day(asOf),
        transactions: rows.map { row in
            var row = row
            if row.source == .latestReceiptInfo { row.asOf = day(asOf) }
            return row
        },
        renewals: renewals.enumerated().map { index, renewal in
            RenewalRow(
                path: "pending_renewal_info[\(index)]", asOf: day(asOf), originalTransactionID: subscriptionID,
                renewal: renewal)
        }, replacedBy: replacedBy)
}

/// A whole answer: every row speaks for the answer's day unless it is a device's.
func evidence(_ asOf: Double, _ rows: [TransactionRow], _ renewals: [OriginalTransactionID: Renewal] = [:]) -> Evidence
{
    Evidence(
        environment: .production, asOf: day(asOf), transactions: answer(asOf, rows).transactions,
        renewals: renewals.sorted { $0.key < $1.key }.enumerated().map { index, entry in
            RenewalRow(
                path: "pending_renewal_info[\(index)]", asOf: day(asOf), originalTransactionID: entry.key,
                renewal: entry.value)
        })
}

/// Settles answers one after another and collects every event.
func settle(
    _ answers: [SubscriptionEvidence], policy: Policy = standardPolicy
) -> (state: SubscriptionState?, events: [[Event]]) {
    var state: SubscriptionState?
    var events: [[Event]] = []
    for answer in answers {
        let reconciled = reconcile(state, with: answer, policy: policy)
        state = reconciled.state
        events.append(reconciled.events)
    }
    return (state, events)
}

/// Folds whole answers as a settlement does; tells each event with its subscription.
func foldWhole(_ answers: [Evidence]) -> (states: [OriginalTransactionID: SubscriptionState], events: [String]) {
    var states: [OriginalTransactionID: SubscriptionState] = [:]
    let events = foldEach(answers, into: &states)
    return (states, events.map { "\($0.0) \($0.1.kind.rawValue)" })
}

/// Folds whole answers into what is known; returns the events, each with its subscription.
func foldEach(
    _ answers: [Evidence], into states: inout [OriginalTransactionID: SubscriptionState]
) -> [(OriginalTransactionID, Event)] {
    var events: [(OriginalTransactionID, Event)] = []
    for answer in answers {
        func learn(_ slice: SubscriptionEvidence, _ elsewhere: LineItemsElsewhere? = nil) {
            let id = slice.originalTransactionID
            let result = reconcile(states[id], with: slice, elsewhere: elsewhere, policy: strictPolicy)
            states[id] = result.state
            events += result.events.map { (id, $0) }
        }
        answer.forEachStep(known: { states.sorted { $0.key < $1.key }.map(\.value) }) { step in
            switch step {
            case .part(let slice, let elsewhere): learn(slice, elsewhere)
            case .move(let move): learn(move.evidence())
            case .shown(let slice): learn(slice)
            }
        }
    }
    return events
}

/// The kinds of events of each answer, such as `["subscription.started", "", "subscription.renewed"]`.
func kinds(_ events: [[Event]]) -> [String] {
    events.map { $0.map(\.kind.rawValue).joined(separator: " ") }
}

/// A timeline as one line: `0 active monthly | 30 expired/voluntary monthly`, starts in days.
func drawing(_ timeline: Timeline) -> String {
    timeline.spans.map { span in
        let days = Double(span.from.milliseconds - day(0).milliseconds) / 86_400_000
        let start = days == days.rounded() ? String(Int(days)) : String((days * 1000).rounded() / 1000)
        let reason = span.reason.map { "/\($0.rawValue)" } ?? ""
        let flags = span.flags.isEmpty ? "" : " +" + span.flags.map(\.rawValue).joined(separator: "+")
        return "\(start) \(span.state.rawValue)\(reason) \(span.productID)\(flags)"
    }.joined(separator: " | ")
}
