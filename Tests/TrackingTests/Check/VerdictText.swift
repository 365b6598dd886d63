import Subscriptions

@testable import Tracking

/// What one answer means, in few lines that a person can read: the form of the goldens.
struct VerdictText {
    /// Answers without a clock of their own are looked at on this day.
    static let now = Instant(milliseconds: 1_782_864_000_000)

    /// What an answer is called, then what it means, line by line.
    static func block(
        of name: String, body: [UInt8], bundleID: BundleID?, previous: [UInt8]? = nil
    ) -> String {
        let explanation = AnswerExplanation(body: body, bundleID: bundleID, at: nil, previous: previous, now: now)
        var lines = [name, "  " + heading(explanation)]
        lines += explanation.subscriptions.flatMap { text(of: $0, in: explanation) }
        lines += explanation.purchases.map(text(of:))
        lines += explanation.unreadableRows.map { "  unreadable: \($0)" }
        if let events = explanation.events {
            lines += events.isEmpty ? ["  since then: nothing"] : events.map(text(of:))
        }
        lines += (explanation.held ?? []).map { "  held: \($0.what) of \($0.transactionID) (\($0.id))" }
        return lines.joined(separator: "\n")
    }

    private static func heading(_ explanation: AnswerExplanation) -> String {
        let status = explanation.status.map(String.init) ?? "without status"
        guard let reason = explanation.finding.reasonSentence else {
            let app = explanation.bundleID?.text ?? "no app named"
            let store = explanation.environment?.rawValue ?? "no environment named"
            return "verified \(status), \(app), \(store), at \(explanation.at.short)"
        }
        let again = explanation.finding.isRetryable ? "ask again" : "do not ask again"
        return "\(explanation.finding.outcomeWord) \(status), \(again): \(reason)"
    }

    private static func text(
        of subscription: AnswerExplanation.ExplainedSubscription, in explanation: AnswerExplanation
    ) -> [String] {
        let (state, verdict) = (subscription.state, subscription.verdict)
        let renewal =
            switch state.willRenew {
            case true? where state.renewsToProductID == verdict.productID: "renews"
            case true?: "renews to \(state.renewsToProductID?.text ?? "an unnamed product")"
            case false?: "will not renew"
            case nil: "renewal unknown"
            }
        let count = state.facts.periods.count
        let facts = [
            verdict.productID.text, "expires \(verdict.expiresAt.short)", renewal,
            verdict.flags.map(\.rawValue).joined(separator: " "),
            "\(count) \(count == 1 ? "period" : "periods") since \(state.startedAt.short)",
        ]
        var lines = [
            "  \(state.facts.originalTransactionID): \(text(of: verdict))",
            "    \(facts.filter { !$0.isEmpty }.joined(separator: ", "))", "    \(grounds(of: verdict))",
        ]
        // Explained without leeway, but kept with it.
        let policy = Policy.standard(for: explanation.environment ?? .production)
        let lenient = Subscriptions.verdict(of: state.facts, at: explanation.at, policy: policy)
        if (lenient.state, lenient.entitledUntil) != (verdict.state, verdict.entitledUntil) {
            lines.append("    with leeway: \(text(of: lenient)), \(grounds(of: lenient))")
        }
        return lines
    }

    private static func text(of verdict: Verdict) -> String {
        let reason = verdict.reason.map { " (\($0.rawValue))" } ?? ""
        let access = verdict.entitledUntil.map { "access until \($0.short)" } ?? "no access"
        return "\(verdict.state.rawValue)\(reason), \(access)"
    }

    private static func grounds(of verdict: Verdict) -> String {
        let rule = verdict.because.first?.rule ?? "no rule"
        return "because \(rule): \(verdict.because.map { "\($0.path) = \($0.value)" }.joined(separator: ", "))"
    }

    private static func text(of purchase: PurchaseState) -> String {
        let key = purchase.facts.key
        let name =
            purchase.transactionID.text == key.originalTransactionID.text
            ? key.originalTransactionID.text : "\(purchase.transactionID) of \(key.originalTransactionID)"
        let refund = purchase.revokedAt.map { ", refunded \($0.short)" } ?? ""
        return
            "  purchase \(name): \(purchase.quantity) \(key.productID), bought \(purchase.purchasedAt.short)\(refund)"
    }

    private static func text(of explained: AnswerExplanation.ExplainedEvent) -> String {
        let event = explained.event
        return "  since then: \(event.kind.rawValue) \(event.productID) at \(event.occurredAt.short) (\(explained.id))"
    }
}

extension Instant {
    /// ISO 8601, without milliseconds where there are none.
    fileprivate var short: String { iso8601.replacing(".000Z", with: "Z") }
}
