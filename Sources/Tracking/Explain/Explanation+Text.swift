import Subscriptions

extension Explanation {
    /// The most unreadable rows that are named.
    private static let unreadableShownMax = 10

    /// The explanation in lines, for a human reader.
    package var text: String {
        var lines = ["\(finding.outcomeWord)\(finding.reasonSentence.map { ": \($0)" } ?? "")"]
        if finding.evidence == nil {
            lines.append(finding.isRetryable ? "Asking again can help." : "Asking again cannot help.")
        } else {
            let (app, store) = (bundleID?.text ?? "no bundle id", environment?.rawValue ?? "no environment named")
            lines.append("\(app), \(store), at \(at.iso8601)")
            lines += subscriptions.flatMap(\.lines)
            lines += purchases.map(line(of:))
            let isEmpty = subscriptions.isEmpty && purchases.isEmpty && unreadableRows.isEmpty
            if isEmpty { lines.append("The receipt holds no purchases.") }
            lines += unreadableRows.prefix(Self.unreadableShownMax).map { "left out, because it cannot be read: \($0)" }
        }
        if let events {
            lines.append(events.isEmpty ? "nothing changed" : "changed:")
            lines += events.map(line(of:))
        }
        lines += (held ?? []).map { held in
            "\(held.shown): what was stated stands until a second answer says so, too, ten minutes after the newest statement "
                + "of it at the earliest"
        }
        return lines.map(\.visible).joined(separator: "\n")
    }

    private func line(of purchase: PurchaseState) -> String {
        let refund = purchase.revokedAt.map { ", refunded \($0.iso8601)" } ?? ""
        let product = purchase.facts.key.productID
        return "purchase \(purchase.transactionID): \(product), bought \(purchase.purchasedAt.iso8601)\(refund)"
    }

    private func line(of explained: ExplainedEvent) -> String {
        let event = explained.event
        return "  \(event.occurredAt.iso8601) \(event.kind.rawValue) \(event.productID) (\(explained.id))"
    }
}

extension Explanation.HeldStatement {
    fileprivate var shown: String {
        switch what {
        case .end: "transaction \(transactionID) ends earlier here"
        case .revocation: "the refund of transaction \(transactionID) is missing here"
        case .upgrade: "the replacement of transaction \(transactionID) is missing here"
        }
    }
}

extension Explanation.ExplainedSubscription {
    fileprivate var lines: [String] {
        let reason = verdict.reason.map { " (\($0.rawValue))" } ?? ""
        let end = verdict.entitledUntil?.iso8601 ?? "further notice"
        let access = verdict.entitled ? "has access until \(end)" : "has no access"
        let renewal =
            switch state.willRenew {
            case true?: "renews to \(state.renewsToProductID?.text ?? "an unnamed product")"
            case false?: "will not renew"
            case nil: "renewal unknown"
            }
        let sale = state.sale.words.map { ["  \($0)"] } ?? []
        let flags = verdict.flags.isEmpty ? "" : ", " + verdict.flags.map(\.rawValue).joined(separator: ", ")
        return [
            "subscription \(state.facts.originalTransactionID): \(verdict.productID)",
            "  \(verdict.state.rawValue)\(reason): \(access)",
            "  expires \(verdict.expiresAt.iso8601), \(renewal)\(flags)",
            "  \(state.periods.of("period", "periods")) since \(state.startedAt.iso8601)",
        ] + sale + verdict.because.map { "  because \($0.rule): \($0.path) = \($0.value)" }
    }
}

extension SaleStanding {
    /// The payment of a term and the seats of a group in words; nil without either.
    package var words: String? {
        var words: [String] = []
        if let paymentNumber, let payments {
            let end = termEndsAt.map { " of a term until \($0.iso8601)" } ?? ""
            words.append("payment \(paymentNumber) of \(payments)\(end)")
        }
        if let seats { words.append(seats.of("seat", "seats")) }
        return words.isEmpty ? nil : words.joined(separator: ", ")
    }
}

extension Finding {
    /// The outcome in a word.
    package var outcomeWord: String {
        switch self {
        case .verified: "verified"
        case .rejected: "rejected"
        case .indeterminate: "indeterminate"
        }
    }

    /// The reason why it proves nothing; nil when it is verified.
    package var reasonSentence: String? {
        switch self {
        case .verified: nil
        case .rejected(let refusal): refusal.reason
        case .indeterminate(let failure): failure.reason
        }
    }

    /// Whether asking again can help.
    package var isRetryable: Bool {
        switch self {
        case .verified: false
        case .rejected(let refusal): refusal.retryable
        case .indeterminate(let failure): failure.retryable
        }
    }

    /// What Apple vouched for; nil unless it is verified.
    var evidence: Evidence? {
        switch self {
        case .verified(let evidence): evidence
        case .rejected, .indeterminate: nil
        }
    }
}
