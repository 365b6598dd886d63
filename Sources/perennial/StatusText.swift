import JSON
import Server
import Subscriptions
import Tracking

extension LedgerStatus {
    /// The status for human readers; its tables fit a terminal of this style. No part of it is text that a terminal
    /// would obey.
    func text(in style: TerminalStyle? = nil) -> String {
        func table(_ listing: Listing) -> String { style.map { listing.table(in: $0) } ?? listing.table }
        var totals = Listing(columns: ["receipts", "verified", "unverified", "rejected", "subscriptions", "workers"])
        totals.rows = [[receipts, verified, unverified, rejected, subscriptions, workers].map { .integer($0) }]
        var parts: [String] = []
        if isEstimated { parts.append("The ledger is large: receipts and subscriptions are estimates.") }
        if lanes.isEmpty { parts.append("Nothing is scheduled.") }
        for pause in pauses {
            let place = pause.pause.place(in: pause.bundleID)
            parts.append("Paused: \(place) until \(pause.pause.until.iso8601): \(pause.pause.reason)")
        }
        parts += heldSecrets.map {
            "Secret: \($0.bundleID): \($0.pause.reason). The Server API makes the checks meanwhile"
        }
        parts += doubtfulSecrets.map {
            "Secret: Apple refused the shared secret of \($0.bundleID) (21004) in \($0.doubt.environment.rawValue) about "
                + "\($0.doubt.shown), and no receipt with a subscription can prove it there. Compare it with App Store "
                + "Connect: `perennial app rotate-secret`"
        }
        parts += refusedBundles.map(\.text)
        for (bundleID, now, most) in slowed {
            parts.append(
                "Slowed: \(bundleID) to \(now.tenths) calls a second of \(most == 0 ? "any number" : most.tenths), for Apple "
                    + "had too much to do; they grow again")
        }
        parts += todayLines
        parts += incidents.map(\.text)
        parts += invariants.filter { $0.violations > 0 }.map(\.text)
        parts += lateDeliveries.map(\.text)
        parts += productsWithoutKind.map(\.text)
        parts += unreadLines
        parts += hiddenTerms.map { terms in
            "Terms: \(terms.periods.of("period", "periods")) of \(terms.bundleID) \(terms.periods == 1 ? "looks" : "look") like "
                + "payments of a yearly term, of which verifyReceipt says nothing; store a key for the Server API with "
                + "`perennial app server-key`"
        }
        parts += notificationLines
        parts += webhookTroubles.map { "Webhook \($0.id) \($0.trouble)" }
        if let until = provisional.until {
            let receipts = provisional.receipts.of("unverified receipt gives", "unverified receipts give")
            let more = provisional.isMore ? "more than " : ""
            parts.append("Provisional: \(more)\(receipts) access by your word, until \(until.iso8601)")
        }
        parts.append(
            (feedLines + ["Last verified answer: \(lastCheckedAt?.iso8601 ?? "none yet")"]).joined(separator: "\n"))
        let tables = [table(totals)] + (lanes.isEmpty ? [] : [table(laneListing(\.shown))])
        return (tables + parts.map(\.visibleLines)).joined(separator: "\n\n")
    }

    private var feedLines: [String] {
        let waiting = unsequencedEvents.of("event", "events")
        var lines = ["Feed: position \(feedPosition), \(waiting) without a position yet, id \(feedID)"]
        if let feedFormerID {
            lines.append(
                "The feed has this id \(feedRenewedAt.map { "since \($0.iso8601)" } ?? "from now on") instead of "
                    + "\(feedFormerID), for the database was restored: cursors of that one are refused")
        }
        if isFeedAnywhere {
            lines.append(
                "The feed's id says nothing of the cluster: let the schema's owner execute pg_control_system(), or run "
                    + "`perennial feed renew` after every restore")
        }
        return lines
    }

    /// The status as JSON with stable keys. A number of `lanes` that equals `counted_to` means that many or more.
    var json: JSONValue {
        [
            "lanes": laneListing { .integer($0.number) }.json,
            "counted_to": .integer(lanes.first?.countedTo ?? Self.laneReceiptsCounted),
            "estimated": .bool(isEstimated),
            "pauses": .array(
                pauses.map { pause in
                    [
                        "bundle_id": .string(pause.bundleID.text), "until": .string(pause.pause.until.iso8601),
                        "reason": .string(pause.pause.reason),
                        "environment": .optional(pause.pause.environment?.rawValue),
                    ]
                }),
            "held_secrets": .array(
                heldSecrets.map {
                    ["bundle_id": .string($0.bundleID.text), "environment": .optional($0.pause.environment?.rawValue)]
                }),
            "doubtful_secrets": .array(
                doubtfulSecrets.map {
                    [
                        "bundle_id": .string($0.bundleID.text), "environment": .string($0.doubt.environment.rawValue),
                        "receipts": .integer(Int64($0.doubt.receipts)),
                    ]
                }),
            "refused_bundles": .array(refusedBundles.map(\.json)),
            "slowed": .array(
                slowed.map { bundleID, now, most in
                    [
                        "bundle_id": .string(bundleID.text), "calls_per_second": .number(now), "rate": .number(most),
                    ]
                }),
            "incidents": .array(incidents.map(\.json)),
            "invariants": .array(invariants.map(\.json)),
            "late_deliveries": .array(lateDeliveries.map(\.json)),
            "hidden_terms": .array(
                hiddenTerms.map { ["bundle_id": .string($0.bundleID.text), "periods": .integer($0.periods)] }),
            "unread_claims": .array(unreadClaims.map(\.json)),
            "products_without_kind": .array(productsWithoutKind.map(\.json)),
            "known_by_notification": .array(unasked.map(\.json)),
            "late_consumption": .array(lateConsumption.map(\.json)),
            "webhook_troubles": .array(
                webhookTroubles.map { ["webhook_id": .string("\($0.id)"), "trouble": .string($0.trouble)] }),
            "today": .array(today.map(\.json)), "summarised": .bool(isSummarised),
            "receipts": .integer(receipts), "verified": .integer(verified), "unverified": .integer(unverified),
            "provisional": [
                "receipts": .integer(provisional.receipts), "more": .bool(provisional.isMore),
                "until": .optional(provisional.until),
            ],
            "rejected": .integer(rejected), "subscriptions": .integer(subscriptions), "workers": .integer(workers),
            "feed": [
                "id": .string(feedID), "position": .integer(feedPosition), "unsequenced": .integer(unsequencedEvents),
                "former_id": .optional(feedFormerID), "renewed_at": .optional(feedRenewedAt),
            ],
            "last_checked_at": .optional(lastCheckedAt),
            "attention": .array(attention.map { .string($0) }),
        ]
    }

    private func laneListing(_ shown: (CountedNumber) -> JSONValue) -> Listing {
        var listing = Listing(columns: [
            "bundle_id", "lane", "receipts", "due", "overdue", "in_flight", "next_due_at", "lag_s",
        ])
        listing.rows = lanes.map { lane in
            let numbers = [lane.receipts, lane.due, lane.overdue, lane.inFlight].map {
                shown(CountedNumber(number: $0, countedTo: lane.countedTo))
            }
            let lag = lane.lagSeconds.map { JSONValue.integer(Int64(max(0, $0))) } ?? .null
            return [.string(lane.bundleID.text), .string("\(lane.lane)")] + numbers + [.optional(lane.nextDueAt), lag]
        }
        return listing
    }
}

extension Double {
    /// The number with one decimal, as rates are shown; a whole number has none.
    fileprivate var tenths: String { Int64(exactly: self).map { "\($0)" } ?? "\((self * 10).rounded() / 10)" }
}

/// A count that stopped at a limit: a number that reaches `countedTo` means that many or more.
private struct CountedNumber {
    let number: Int64
    let countedTo: Int64

    /// The number for human readers: `10000+` where the count stopped at 10,000.
    var shown: JSONValue { number < countedTo ? .integer(number) : .string("\(number)+") }
}

extension Incident {
    /// The incident in one sentence.
    fileprivate var text: String {
        let time = closedAt.map { "from \(openedAt.iso8601) to \($0.iso8601)" } ?? "since \(openedAt.iso8601)"
        let what =
            switch kind {
            case .refusals: "answers about once-verified receipts were refusals, which count as no answer"
            case .clock: "answers were dated too far ahead, which count as no answer"
            }
        return "Incident: \(bundleID) \(time): \(refused) of \(asked) \(what); the last: \(lastReason)"
    }

    fileprivate var json: JSONValue {
        [
            "bundle_id": .string(bundleID.text), "kind": .string(kind.rawValue), "opened_at": .string(openedAt.iso8601),
            "closed_at": .optional(closedAt), "asked": .integer(asked), "refused": .integer(refused),
            "last_reason": .string(lastReason),
        ]
    }
}

extension InvariantStanding {
    /// The violation in one sentence.
    fileprivate var text: String {
        let action = left > 0 ? "run `perennial verify`" : "all of them were repaired"
        return "Violated: \(name): \(violations) found at \(checkedAt.iso8601), repaired: \(repaired); \(action)"
    }

    fileprivate var json: JSONValue {
        [
            "check": .string(name), "violations": .integer(violations), "repaired": .integer(repaired),
            "checked_at": .string(checkedAt.iso8601),
        ]
    }
}

extension DueDeliveries {
    /// What to do, in one sentence.
    fileprivate var text: String {
        "Not delivered: \(isMore ? "more than " : "")\(deliveries.of("delivery", "deliveries")) of \(bundleID) due for "
            + "more than an hour, the oldest since \(oldestAt.iso8601). Does your service run? See `perennial delivery "
            + "list --app \(bundleID) --state due`"
    }

    fileprivate var json: JSONValue {
        [
            "bundle_id": .string(bundleID.text), "deliveries": .integer(deliveries), "more": .bool(isMore),
            "oldest_at": .string(oldestAt.iso8601),
        ]
    }
}

extension LedgerStatus.RefusedBundle {
    /// What to look at, in one sentence.
    fileprivate var text: String {
        let advice = isOnly ? "; it has no other receipt, so compare its bundle id" : ""
        let count = receipts.of("receipt", "receipts")
        return "Refused: \(count) sent for \(bundleID), of \(named), the last at \(lastAt.iso8601)\(advice)"
    }

    fileprivate var json: JSONValue {
        [
            "bundle_id": .string(bundleID.text), "named": .string(named.text), "receipts": .integer(receipts),
            "last_at": .string(lastAt.iso8601), "only": .bool(isOnly),
        ]
    }
}

extension LedgerStatus {
    /// The most claims of an app that are named.
    private static let claimsNamed = 5

    /// What Apple states and this version does not read, one sentence for each app.
    fileprivate var unreadLines: [String] {
        Dictionary(grouping: unreadClaims, by: \.bundleID).sorted { $0.key < $1.key }.map { bundleID, claims in
            let named = claims.prefix(Self.claimsNamed).map { claim in
                "\(claim.name) (\(claim.texts.of("text", "texts"))\(claim.isUnreadable ? ", unreadable" : ""))"
            }
            let more = claims.count > Self.claimsNamed ? " and others" : ""
            return
                "Unread: Apple states \(Int64(claims.count).of("claim", "claims")) about \(bundleID) that this version does "
                + "not read: \(named.joined(separator: ", "))\(more); `perennial app claims \(bundleID)` lists them"
        }
    }
}

extension CountedClaim {
    fileprivate var json: JSONValue {
        [
            "bundle_id": .string(bundleID.text), "claim": .string(name), "unreadable": .bool(isUnreadable),
            "texts": .integer(texts), "first_seen_at": .string(firstSeenAt.iso8601),
            "last_seen_at": .string(lastSeenAt.iso8601),
        ]
    }
}

extension LedgerStatus.ProductWithoutKind {
    /// What to do, in one sentence.
    fileprivate var text: String {
        let state =
            isNamed
            ? "the catalog does not say its kind, so purchases are kept for good and deliver nothing"
            : "no catalog names it, so purchases grant nothing"
        return "Without kind: customers of \(bundleID) bought \(id); \(state). Add it with its kind to the catalog"
    }

    fileprivate var json: JSONValue {
        ["bundle_id": .string(bundleID.text), "product_id": .string(id.text), "named": .bool(isNamed)]
    }
}

extension LedgerStatus {
    /// Today so far, one line for each app.
    var todayLines: [String] {
        let left = isSummarised ? "" : " Not all subscriptions are in it: workers read them for the first time."
        return today.isEmpty ? [] : [today.map(\.text).joined(separator: "\n") + left]
    }
}

extension TodaySoFar {
    /// The day in one sentence, as unfinished.
    fileprivate var text: String {
        let amounts = revenue.compactMap(\.now)
        let money =
            amounts.isEmpty
            ? "no MRR" : "MRR " + amounts.map { "\($0.amount.cents.decimal) \($0.currency)" }.joined(separator: ", ")
        let moves = "\(figures.began) began to pay, \(figures.returned) came back, \(figures.churned) stopped"
        let trials =
            "trials: \(figures.trialsStarted) began, \(figures.trialsConverted) paid, \(figures.trialsLost) lost"
        return "Today so far (\(figures.day) UTC, incomplete), \(bundleID?.text ?? "all apps"): "
            + "\(figures.active) with access, \(figures.trial) in a trial, \(figures.paying) paying, \(money); "
            + "\(moves); \(trials)."
    }

    /// The day as JSON.
    var json: JSONValue {
        [
            "bundle_id": .optional(bundleID?.text), "day": .string(figures.day), "complete": false,
            "active": .integer(figures.active), "trial": .integer(figures.trial), "paying": .integer(figures.paying),
            "began": .integer(figures.began), "returned": .integer(figures.returned),
            "churned": .integer(figures.churned), "trials_started": .integer(figures.trialsStarted),
            "trials_converted": .integer(figures.trialsConverted), "trials_lost": .integer(figures.trialsLost),
            "mrr": .array(
                revenue.compactMap(\.now).map {
                    ["currency": .string($0.currency), "amount": .string($0.amount.decimal)]
                }),
        ]
    }
}

extension Overview.Revenue {
    fileprivate var now: (currency: String, amount: Milliunits)? {
        days.last.map { (currency, Milliunits($0.milliunits)) }
    }
}

extension Milliunits {
    /// The amount to the nearest hundredth, for people.
    fileprivate var cents: Milliunits { Milliunits(10 * ((count + (count < 0 ? -5 : 5)) / 10)) }
}

extension LedgerStatus {
    /// What an operator should look at, one phrase each; empty while all is well.
    var attention: [String] {
        var phrases = pauses.map { "\($0.pause.place(in: $0.bundleID)) is paused" }
        phrases += heldSecrets.map { "Apple refuses the shared secret of \($0.pause.place(in: $0.bundleID))" }
        phrases += doubtfulSecrets.map {
            "Apple refuses the shared secret of \($0.bundleID) in \($0.doubt.environment.rawValue) about \($0.doubt.shown)"
        }
        phrases += refusedBundles.filter(\.isOnly).map {
            "every receipt for \($0.bundleID) names another app, \($0.named)"
        }
        let overdue = lanes.reduce(0) { $0 + $1.overdue }
        if overdue > 0 {
            let waiting = overdue.of("receipt is", "receipts are")
            phrases.append("\(waiting) overdue\(workers == 0 ? ", and no worker runs" : "")")
        }
        phrases += incidents.filter { $0.closedAt == nil }.map { "\($0.bundleID) has an open incident" }
        phrases += invariants.filter { $0.left > 0 }.map { "the invariant \($0.name) is violated" }
        phrases += lateDeliveries.map { "deliveries of \($0.bundleID) wait" }
        phrases += unasked.filter { !$0.hasServerKey }.map {
            "Apple is not asked about \($0.subjects.of("purchase", "purchases")) of \($0.bundleID)"
        }
        phrases += productsWithoutKind.map { "\($0.id) of \($0.bundleID) has no kind" }
        phrases += lateConsumption.map { "Apple waits for what was used of \($0.transactionID) of \($0.bundleID)" }
        phrases += webhookTroubles.map { "webhook \($0.id) \($0.trouble)" }
        return phrases
    }
}

extension LedgerStatus {
    /// What Apple's notifications wait for, in sentences.
    var notificationLines: [String] {
        unasked.map(\.text) + lateConsumption.map(\.text)
    }
}

extension LedgerStatus.UnaskedSubjects {
    /// What to do, in one sentence.
    fileprivate var text: String {
        let known =
            subjects.of("subscription or purchase of \(bundleID) is", "subscriptions and purchases of \(bundleID) are")
            + " known by \(hasServerKey ? "notification" : "notification or transaction") only"
        let todo =
            hasServerKey
            ? "a worker asks the Server API about them"
            : "Apple is not asked about them; store a key with `perennial app server-key --app \(bundleID)`"
        return "Notifications: \(known); \(todo)"
    }

    var json: JSONValue {
        ["bundle_id": .string(bundleID.text), "subjects": .integer(subjects), "has_server_key": .bool(hasServerKey)]
    }
}

extension LateConsumption {
    /// What to do, in one sentence.
    fileprivate var text: String {
        let sandbox = environment == .sandbox ? " --sandbox" : ""
        return
            "Refund request: Apple asked at \(askedAt.iso8601) what was used of \(transactionID) of \(bundleID), and waits "
            + "for 12 hours. Answer with `perennial support consumption --app \(bundleID)\(sandbox) --transaction-id "
            + "\(transactionID)` and --customer-consented, or --not-consented if the customer does not consent"
    }

    var json: JSONValue {
        [
            "bundle_id": .string(bundleID.text), "environment": .string(environment.rawValue),
            "transaction_id": .string(transactionID.text), "asked_at": .string(askedAt.iso8601),
        ]
    }
}
