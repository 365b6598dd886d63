import Ledger
import Server
import Subscriptions
import Tracking

extension Settled {
    /// The result of a check, for human readers.
    var text: String {
        var parts = ["Receipt \(receiptID): \(outcome.rawValue)\(reason.map { ", \($0)" } ?? "")"]
        if !subscriptions.isEmpty { parts.append(Listing(subscriptions: subscriptions).table) }
        let changes = Listing(changes: self)
        if changes.rows.isEmpty {
            if outcome == .verified { parts.append("Nothing changed.") }
        } else {
            parts.append("Changes:\n\(changes.table)")
        }
        parts.append(nextCheckAt.map { "Next check: \($0.iso8601)" } ?? "No further check is planned.")
        return parts.joined(separator: "\n")
    }

    /// The reason why the check did not verify the receipt; nil when it did.
    var failure: Failure? {
        switch outcome {
        case .verified: nil
        case .rejected: Failure("Apple does not vouch for receipt \(receiptID): \(reason ?? "it gave no reason.")")
        case .indeterminate:
            Failure("Apple gave no usable answer about receipt \(receiptID): \(reason ?? "try again.")")
        }
    }
}

extension Listing {
    fileprivate init(subscriptions: [Settled.SubscriptionOutcome]) {
        self.init(columns: [
            "subscription", "environment", "product", "state", "reason", "entitled", "until", "flags", "ownership",
        ])
        rows = subscriptions.map { outcome in
            let verdict = outcome.verdict
            return [
                .string(outcome.id.text), .string(outcome.environment.rawValue), .string(verdict.productID.text),
                .string(verdict.state.rawValue), .optional(verdict.reason?.rawValue), .bool(verdict.entitled),
                .optional(verdict.entitledUntil), .array(verdict.flags.map { .string($0.rawValue) }),
                .string(
                    outcome.ownership.sorted { $0.key.text < $1.key.text }.map { "\($0.key.text) \($0.value.text)" }
                        .joined(separator: ", ")),
            ]
        }
    }

    fileprivate init(changes settled: Settled) {
        self.init(columns: ["occurred_at", "kind", "subscription", "product"])
        for subscription in settled.subscriptions {
            rows += subscription.events.map { Self.row(of: $0, in: subscription.id.text) }
        }
        rows += settled.purchaseEvents.map { Self.row(of: $0, in: nil) }
    }

    private static func row(of event: Event, in subscription: String?) -> [JSONValue] {
        [
            .string(event.occurredAt.iso8601), .string(event.kind.rawValue), .optional(subscription),
            .string(event.productID.text),
        ]
    }
}

extension OwnershipAnswer {
    fileprivate var text: String {
        switch self {
        case .held: "held"
        case .assigned: "assigned"
        case .transferred: "transferred"
        case .refused(let reason): "refused (\(reason))"
        }
    }
}
