import JSON
import Subscriptions
import Tracking

/// One entry of a list of the status, in all the forms in which it is shown.
private struct StatusEntry {
    /// What people read; nil where another entry says it.
    var line: String?
    let json: JSONValue
    /// What an operator should look at, as a phrase; nil while all is well.
    var attention: String?
}

extension LedgerStatus {
    /// The status for human readers, without text that a terminal would obey; its tables fit a terminal of this style.
    func text(in style: TerminalStyle? = nil) -> String {
        let totals = Listing(
            columns: ["receipts", "verified", "unverified", "rejected", "subscriptions", "workers"],
            rows: [[receipts, verified, unverified, rejected, subscriptions, workers].map { .integer($0) }])
        var parts: [String] = []
        if isEstimated { parts.append("The ledger is large: receipts and subscriptions are estimates.") }
        if lanes.isEmpty { parts.append("Nothing is scheduled.") }
        func lines(_ lists: [List]) -> [String] { lists.flatMap(\.entries).compactMap(\.line) }
        // An entry is one line, but today has one for each app.
        parts += lines(hindrances).map(\.visible) + lines([todayList]) + lines(findings).map(\.visible)
        if let until = provisional.until {
            let receipts = provisional.receipts.of("unverified receipt gives", "unverified receipts give")
            let more = provisional.isMore ? "more than " : ""
            parts.append("Provisional: \(more)\(receipts) access by your word, until \(until.iso8601)")
        }
        parts.append(
            (feedLines + ["Last verified answer: \(lastCheckedAt?.iso8601 ?? "none yet")"]).joined(separator: "\n"))
        let tables = [totals] + (lanes.isEmpty ? [] : [laneListing(forPeople: true)])
        return (tables.map { $0.table(in: style) } + parts.map(\.visibleLines)).joined(separator: "\n\n")
    }

    /// The status as JSON with stable keys. A number of `lanes` that equals `counted_to` means that many or more.
    var json: JSONValue {
        var members: [String: JSONValue] = [
            "lanes": laneListing(forPeople: false).json,
            "counted_to": .integer(lanes.first?.countedTo ?? Self.laneReceiptsCounted),
            "estimated": .bool(isEstimated), "summarised": .bool(isSummarised),
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
        for list in hindrances + [todayList] + findings { members[list.key] = .array(list.entries.map(\.json)) }
        return .object(members)
    }

    /// What an operator should look at, one phrase each; empty while all is well.
    var attention: [String] {
        let overdue = lanes.reduce(0) { $0 + $1.overdue }
        let waiting = "\(overdue.of("receipt is", "receipts are")) overdue\(workers == 0 ? ", and no worker runs" : "")"
        func phrases(_ lists: [List]) -> [String] { lists.flatMap(\.entries).compactMap(\.attention) }
        return phrases(hindrances) + (overdue > 0 ? [waiting] : []) + phrases(findings)
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

    /// The lanes. People read a number at which the count stopped with a plus, such as `10000+`.
    private func laneListing(forPeople: Bool) -> Listing {
        func number(_ number: Int64, in lane: LaneStatus) -> JSONValue {
            forPeople && number >= lane.countedTo ? .string("\(number)+") : .integer(number)
        }
        return lanes.listing([
            ("bundle_id", { .string($0.bundleID.text) }), ("lane", { .string("\($0.lane)") }),
            ("receipts", { number($0.receipts, in: $0) }), ("due", { number($0.due, in: $0) }),
            ("overdue", { number($0.overdue, in: $0) }), ("in_flight", { number($0.inFlight, in: $0) }),
            ("next_due_at", { .optional($0.nextDueAt) }),
            ("lag_s", { lane in lane.lagSeconds.map { .integer(Int64(max(0, $0))) } ?? .null }),
        ])
    }
}

extension Double {
    /// The number with one decimal, as rates are shown; a whole number has none.
    fileprivate var tenths: String { Int64(exactly: self).map { "\($0)" } ?? "\((self * 10).rounded() / 10)" }
}

/// The lists of the status by their names in JSON, in the order in which people read them.
extension LedgerStatus {
    private typealias List = (key: String, entries: [StatusEntry])

    /// What keeps Apple from being asked as planned.
    private var hindrances: [List] {
        let paused = pauses.map { bundleID, pause in
            let place = pause.place(in: bundleID)
            return StatusEntry(
                line: "Paused: \(place) until \(pause.until.iso8601): \(pause.reason)",
                json: [
                    "bundle_id": .string(bundleID.text), "until": .string(pause.until.iso8601),
                    "reason": .string(pause.reason), "environment": .optional(pause.environment?.rawValue),
                ], attention: "\(place) is paused")
        }
        let held = heldSecrets.map { bundleID, pause in
            StatusEntry(
                line: "Secret: \(bundleID): \(pause.reason). The Server API makes the checks meanwhile",
                json: ["bundle_id": .string(bundleID.text), "environment": .optional(pause.environment?.rawValue)],
                attention: "Apple refuses the shared secret of \(pause.place(in: bundleID))")
        }
        let keys = heldKeys.map { bundleID, pause in
            StatusEntry(
                line:
                    "Key: \(pause.place(in: bundleID)): \(pause.reason) verifyReceipt makes the checks of receipts meanwhile",
                json: ["bundle_id": .string(bundleID.text), "environment": .optional(pause.environment?.rawValue)],
                attention: "Apple refuses the server key of \(pause.place(in: bundleID))")
        }
        let previous = previousSecrets.map { bundleID, environment, since in
            StatusEntry(
                line: "Secret: Since \(since.iso8601) Apple refuses the shared secret of \(bundleID) in "
                    + "\(environment.rawValue) and accepts the previous one, with which checks go on, at two calls each. If "
                    + "Apple ends that one too, they stop: put the right one in place with `perennial app rotate-secret`",
                json: [
                    "bundle_id": .string(bundleID.text), "environment": .string(environment.rawValue),
                    "since": .string(since.iso8601),
                ], attention: "Apple accepts only the previous shared secret of \(bundleID) in \(environment.rawValue)")
        }
        let doubtful = doubtfulSecrets.map { bundleID, doubt in
            let place = doubt.environment.rawValue
            return StatusEntry(
                line:
                    "Secret: Apple refused the shared secret of \(bundleID) (21004) in \(place) about \(doubt.shown), and "
                    + "\(doubt.why). Unless the receipts are another app's, it is wrong: compare it with App Store Connect, and "
                    + "put the right one in place with `perennial app rotate-secret`",
                json: [
                    "bundle_id": .string(bundleID.text), "environment": .string(place),
                    "receipts": .integer(Int64(doubt.receipts)),
                ], attention: "Apple refuses the shared secret of \(bundleID) in \(place) about \(doubt.shown)")
        }
        let slow = slowed.map { bundleID, now, most in
            StatusEntry(
                line:
                    "Slowed: \(bundleID) to \(now.tenths) calls a second of \(most == 0 ? "any number" : most.tenths), for "
                    + "Apple had too much to do; they grow again",
                json: ["bundle_id": .string(bundleID.text), "calls_per_second": .number(now), "rate": .number(most)])
        }
        return [
            ("pauses", paused), ("held_secrets", held), ("held_keys", keys), ("previous_secrets", previous),
            ("doubtful_secrets", doubtful),
            ("refused_bundles", refusedBundles.map(\.entry)), ("slowed", slow),
        ]
    }

    /// What was found in the ledger.
    private var findings: [List] {
        let terms = hiddenTerms.map { terms in
            StatusEntry(
                line: "Terms: \(terms.periods.of("period", "periods")) of \(terms.bundleID) "
                    + "\(terms.periods == 1 ? "looks" : "look") like payments of a yearly term, of which verifyReceipt says "
                    + "nothing; store a key for the Server API with `perennial app server-key`",
                json: ["bundle_id": .string(terms.bundleID.text), "periods": .integer(terms.periods)])
        }
        let troubles = webhookTroubles.map { id, trouble in
            StatusEntry(
                line: "Webhook \(id) \(trouble)", json: ["webhook_id": .string("\(id)"), "trouble": .string(trouble)],
                attention: "webhook \(id) \(trouble)")
        }
        return [
            ("incidents", incidents.map(\.entry)), ("invariants", invariants.map(\.entry)),
            ("late_deliveries", lateDeliveries.map(\.entry)), ("products_without_kind", kindlessEntries),
            ("unread_claims", unreadEntries), ("hidden_terms", terms), ("known_by_notification", unasked.map(\.entry)),
            ("late_consumption", lateConsumption.map(\.entry)), ("webhook_troubles", troubles),
        ]
    }

    /// Today so far, one line for each app.
    private var todayList: List {
        var entries = today.map { StatusEntry(json: $0.json) }
        if !entries.isEmpty {
            let left = isSummarised ? "" : "\nNot all subscriptions are in it: workers read them for the first time."
            let isImporting = lanes.contains { $0.lane == .imported && $0.due + $0.inFlight > 0 }
            let unasked = isImporting ? "\nImported receipts wait for their first check and are not in it yet." : ""
            entries[0].line = today.map(\.text).joined(separator: "\n") + unasked + left
        }
        return ("today", entries)
    }

    /// Products whose kind is not known, one sentence for each app and state of its catalog.
    private var kindlessEntries: [StatusEntry] {
        let alike = Dictionary(grouping: productsWithoutKind) { [$0.bundleID.text, "\($0.isNamed)"] }
        return productsWithoutKind.map { product in
            let (app, id) = (product.bundleID, product.id)
            let ids = alike[[app.text, "\(product.isNamed)"], default: []].map(\.id.text).sorted()
            let isFirst = ids.first == id.text
            let bought =
                ids.prefix(Self.namedMax).joined(separator: ", ") + (ids.count > Self.namedMax ? " and others" : "")
            let state =
                product.isNamed
                ? "the catalog does not say the kind, so purchases are kept for good and deliver nothing"
                : "no catalog names that, so purchases grant nothing"
            return StatusEntry(
                line: isFirst
                    ? "Without kind: customers of \(app) bought \(bought); \(state). Add each with its kind to the catalog"
                    : nil,
                json: [
                    "bundle_id": .string(app.text), "product_id": .string(id.text), "named": .bool(product.isNamed),
                ],
                attention: isFirst ? "\(bought) of \(app) \(ids.count == 1 ? "has" : "have") no kind" : nil)
        }
    }

    /// The most claims or products of an app that are named.
    private static let namedMax = 5

    private var unreadEntries: [StatusEntry] {
        let byApp = Dictionary(grouping: unreadClaims, by: \.bundleID)
        var said: Set<BundleID> = []
        return unreadClaims.map { claim in
            let app = claim.bundleID
            let claims = said.insert(app).inserted ? byApp[app] : nil
            return StatusEntry(
                line: claims.map { claims in
                    let named = claims.prefix(Self.namedMax).map { claim in
                        "\(claim.name) (\(claim.texts.of("text", "texts"))\(claim.isUnreadable ? ", unreadable" : ""))"
                    }
                    let more = claims.count > Self.namedMax ? " and others" : ""
                    return
                        "Unread: Apple states \(Int64(claims.count).of("claim", "claims")) about \(app) that this version "
                        + "does not read: \(named.joined(separator: ", "))\(more); `perennial app claims \(app)` lists them"
                },
                json: [
                    "bundle_id": .string(app.text), "claim": .string(claim.name),
                    "unreadable": .bool(claim.isUnreadable),
                    "texts": .integer(claim.texts), "first_seen_at": .string(claim.firstSeenAt.iso8601),
                    "last_seen_at": .string(claim.lastSeenAt.iso8601),
                ])
        }
    }
}

extension Incident {
    fileprivate var entry: StatusEntry {
        let time = closedAt.map { "from \(openedAt.iso8601) to \($0.iso8601)" } ?? "since \(openedAt.iso8601)"
        let what =
            switch kind {
            case .refusals: "answers about once-verified receipts were refusals, which count as no answer"
            case .clock: "answers were dated too far ahead, which count as no answer"
            }
        return StatusEntry(
            line: "Incident: \(bundleID) \(time): \(refused) of \(asked) \(what); the last: \(lastReason)",
            json: [
                "bundle_id": .string(bundleID.text), "kind": .string(kind.rawValue),
                "opened_at": .string(openedAt.iso8601), "closed_at": .optional(closedAt), "asked": .integer(asked),
                "refused": .integer(refused), "last_reason": .string(lastReason),
            ], attention: closedAt == nil ? "\(bundleID) has an open incident" : nil)
    }
}

extension InvariantStanding {
    fileprivate var entry: StatusEntry {
        let action = left > 0 ? "run `perennial verify`" : "all of them were repaired"
        let line = "Violated: \(name): \(violations) found at \(checkedAt.iso8601), repaired: \(repaired); \(action)"
        return StatusEntry(
            line: violations > 0 ? line : nil,
            json: [
                "check": .string(name), "violations": .integer(violations), "repaired": .integer(repaired),
                "checked_at": .string(checkedAt.iso8601),
            ], attention: left > 0 ? "the invariant \(name) is violated" : nil)
    }
}

extension DueDeliveries {
    fileprivate var entry: StatusEntry {
        StatusEntry(
            line:
                "Not delivered: \(isMore ? "more than " : "")\(deliveries.of("delivery", "deliveries")) of \(bundleID) due "
                + "for more than an hour, the oldest since \(oldestAt.iso8601). Does your service run? See `perennial "
                + "delivery list --app \(bundleID) --state due`",
            json: [
                "bundle_id": .string(bundleID.text), "deliveries": .integer(deliveries), "more": .bool(isMore),
                "oldest_at": .string(oldestAt.iso8601),
            ], attention: "deliveries of \(bundleID) wait")
    }
}

extension LedgerStatus.RefusedBundle {
    fileprivate var entry: StatusEntry {
        let advice = isOnly ? "; it has no other receipt, so compare its bundle id" : ""
        let count = receipts.of("receipt", "receipts")
        return StatusEntry(
            line: "Refused: \(count) sent for \(bundleID), of \(named), the last at \(lastAt.iso8601)\(advice)",
            json: [
                "bundle_id": .string(bundleID.text), "named": .string(named.text), "receipts": .integer(receipts),
                "last_at": .string(lastAt.iso8601), "only": .bool(isOnly),
            ], attention: isOnly ? "every receipt for \(bundleID) names another app, \(named)" : nil)
    }
}

extension LedgerStatus.UnaskedSubjects {
    fileprivate var entry: StatusEntry {
        let known =
            subjects.of("subscription or purchase of \(bundleID) is", "subscriptions and purchases of \(bundleID) are")
            + " known by \(hasServerKey ? "notification" : "notification or transaction") only"
        let todo =
            hasServerKey
            ? "a worker asks the Server API about them"
            : "Apple is not asked about them; store a key with `perennial app server-key --app \(bundleID)`"
        let attention = "Apple is not asked about \(subjects.of("purchase", "purchases")) of \(bundleID)"
        return StatusEntry(
            line: "Notifications: \(known); \(todo)",
            json: [
                "bundle_id": .string(bundleID.text), "subjects": .integer(subjects),
                "has_server_key": .bool(hasServerKey),
            ], attention: hasServerKey ? nil : attention)
    }
}

extension LateConsumption {
    fileprivate var entry: StatusEntry {
        let sandbox = environment == .sandbox ? " --sandbox" : ""
        return StatusEntry(
            line:
                "Refund request: Apple asked at \(askedAt.iso8601) what was used of \(transactionID) of \(bundleID), and "
                + "waits for 12 hours. Answer with `perennial support consumption --app \(bundleID)\(sandbox) "
                + "--transaction-id \(transactionID)` and --customer-consented, or --not-consented if the customer does not "
                + "consent",
            json: [
                "bundle_id": .string(bundleID.text), "environment": .string(environment.rawValue),
                "transaction_id": .string(transactionID.text), "asked_at": .string(askedAt.iso8601),
            ], attention: "Apple waits for what was used of \(transactionID) of \(bundleID)")
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

    fileprivate var json: JSONValue {
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
