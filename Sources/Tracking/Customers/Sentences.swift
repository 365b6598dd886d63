package import Subscriptions

/// The plain-language sentence for a field of Apple's answer, in the explanation of a customer.
enum FieldSentence {
    /// Returns the sentence for a path such as `latest_receipt_info[0].expires_date_ms` and Apple's value there.
    static func of(_ path: String, _ value: String) -> String {
        let field = path.split(separator: ".").last.map(String.init) ?? path
        switch field {
        case "expires_date_ms", "expires_date": return "Apple says the paid period ends at \(instant(value))."
        case "cancellation_date_ms", "cancellation_date": return "Apple took the purchase back at \(instant(value))."
        case "purchase_date_ms", "purchase_date": return "Apple says it was bought at \(instant(value))."
        case "original_purchase_date_ms", "original_purchase_date":
            return "Apple says it was bought first at \(instant(value)), and this row is a copy of it."
        case "grace_period_expires_date_ms", "grace_period_expires_date":
            return "The payment failed, and Apple grants access without payment until \(instant(value))."
        case "in_app_ownership_type":
            switch value {
            case "PURCHASED": return "The customer bought it themselves."
            case "FAMILY_SHARED": return "A member of the family bought it and shares it."
            case "ASSIGNED": return "A group bought it and gave the customer a seat."
            default: return "Apple says of its ownership: \(value). Another customer may have paid."
            }
        case "original_transaction_id": return "Apple shows the purchase under the original transaction \(value) now."
        case "is_upgraded": return "The customer changed to another product, which replaced this purchase."
        case "is_in_billing_retry_period":
            return value == "1"
                ? "The payment failed and Apple keeps trying to charge the customer."
                : "Apple no longer tries to charge the customer."
        case "auto_renew_status":
            return value == "1" ? "Renewal is switched on." : "The customer switched renewal off."
        case "expiration_intent": return intent(value)
        default: return "Apple's field \(field) says \(value)."
        }
    }

    private static func instant(_ value: String) -> String {
        Int64(value).map { Instant(milliseconds: $0).iso8601 } ?? value
    }

    private static func intent(_ value: String) -> String {
        switch value {
        case "1": "Apple says why it ended: the customer cancelled."
        case "2": "Apple says why it ended: the payment failed."
        case "3": "Apple says why it ended: the customer did not agree to a higher price."
        case "4": "Apple says why it ended: the product was not for sale when it should have renewed."
        default: "Apple says why it ended with the code \(value), which has no name."
        }
    }
}

extension Rule {
    /// The conclusion of the rule, in plain words.
    var sentence: String {
        switch self {
        case .runningPeriod: "A period that is paid for is running, so there is access until it ends."
        case .chargedAhead: "The next period is paid for already, so access goes on until that ends."
        case .refunded: "Apple refunded the last period, so there is no access."
        case .familyRevoked: "The family member's purchase is no longer shared, so there is no access."
        case .revokedOtherwise:
            "Apple took the last period back in words that this version does not know, so there is no access."
        case .replacementAwaited:
            "The purchase was replaced by another that Apple does not show yet; until then there is access."
        case .replacedElsewhere: "Another subscription of the same group took over; access comes from that one."
        case .grace: "The payment failed, but Apple's grace period still gives access."
        case .billingRetry: "The payment failed and there is no grace period, so there is no access until it succeeds."
        case .renewalAwaited:
            "The period is just over and should renew any moment, so access goes on for a little while."
        case .renewalOff: "The period is over and renewal was switched off, so it ended."
        case .intentVoluntary: "The period is over because the customer cancelled."
        case .intentBilling: "The period is over because the payment failed for good."
        case .intentPriceIncrease: "The period is over because the customer did not agree to a higher price."
        case .intentProductUnavailable: "The period is over because the product was not for sale."
        case .intentOther: "The period is over for a reason Apple does not name."
        case .nothingSaid: "The period is over and Apple does not say why."
        case .notStarted: "It had not begun at that moment."
        }
    }
}

extension Verdict {
    /// Whether it is that of a period which Apple shows under another original transaction now.
    var isOfMoved: Bool { because.first?.path.hasSuffix("original_transaction_id") == true }
}

extension SubscriptionReasons {
    /// Returns the conclusion of the rule that decided, in plain words.
    package func conclusion(of verdict: Verdict) -> String {
        guard let allowedUntil else {
            guard let rule = verdict.because.first.flatMap({ Rule(rawValue: $0.rule) }) else { return "" }
            guard verdict.isOfMoved else { return rule.sentence }
            return rule == .replacementAwaited
                ? "Apple shows the purchase as another subscription now; who paid keeps access until the period ends."
                : "The period is over, and Apple shows the purchase as another subscription now."
        }
        return
            "It should have renewed, and Apple could not be asked since; that alone cuts off no customer, so access goes on "
            + "until \(allowedUntil.iso8601) at the latest."
    }
}

extension PurchaseReasons {
    /// Returns the access the purchase gives at an instant, in plain words.
    package func conclusion(at instant: Instant) -> String {
        guard state.purchasedAt <= instant else { return "It had not been bought at that moment." }
        guard let revokedAt = state.revokedAt else { return "It was bought once and does not end." }
        guard !state.facts.isShared else {
            return revokedAt <= instant
                ? "Another customer bought it and shares it no longer, so it gives nothing any more."
                : "Another customer bought it; sharing it ended after that moment."
        }
        return revokedAt <= instant
            ? "It was bought once and Apple refunded it, so it gives nothing any more."
            : "It was bought once; Apple refunded it after that moment."
    }
}

extension Reasons.Source {
    package var isByHand: Bool { manualGrant != nil }

    /// Returns the reason why this source lost to the one that decides.
    package func loss(to winner: Reasons.Source) -> String {
        if isByHand, !granted { return "it was granted manually and is over" }
        if isProvisional != winner.isProvisional {
            let speaker = winner.isByHand ? "a person" : "Apple"
            return "it is only what was said with the upload, and \(speaker) has said more"
        }
        if granted != winner.granted { return "it gives no access at that moment" }
        if environment != winner.environment {
            return "a purchase in Apple's test environment (Sandbox) counts only where there is no real one"
        }
        if granted, until != winner.until { return "it ends earlier" }
        if isByHand != winner.isByHand { return "what Apple says comes first" }
        if checkedAt != winner.checkedAt { return "the other one was checked more recently" }
        return "both say the same, so only one of them is shown"
    }
}

extension Reasons.Ownership {
    /// Returns the owner and the reason for the ownership as a sentence, for the customer asked about.
    package func sentence(for customer: String, accountToken: String?) -> String {
        guard let owner else { return "It has no owner: no customer uploaded a receipt that holds it." }
        let begin = since.map { " since \($0.iso8601)" } ?? ""
        let how = way(isNamed: accountToken?.lowercased() == owner.lowercased())
        guard isCustomer else {
            return "\(owner) owns it\(begin), so it gives \(customer) nothing: \(how)."
        }
        return "\(customer) owns it\(begin): \(how)."
    }

    /// How the owner came to own it.
    private func way(isNamed: Bool) -> String {
        switch cause {
        case .proof: "a device sent it with the proof of their order"
        case .merge: "it belonged to a name that is theirs now"
        case .split: "the merge that took it from them was undone"
        case .assignment: "a person assigned it to them"
        case .pointer: "they only pointed at it, and no other customer claims it"
        case .token where !isNamed:
            "the purchase itself names an order of theirs, or a name that is theirs now (app_account_token)"
        case .token, .upload, .imported, nil:
            if isNamed {
                "the purchase itself names them (app_account_token)"
            } else if cause == .imported {
                "an import named them as its owner"
            } else if wasTransferred {
                "they uploaded it after another customer owned it, and the app's policy transferred it"
            } else if wasPointedAt {
                "they showed it; another customer had only pointed at it"
            } else if !hasSent {
                "they own what else is in the receipt that holds it"
            } else {
                "they were the first to upload a receipt that holds it"
            }
        }
    }
}

extension Reasons.ReceiptStanding {
    /// The receipt's standing: `never_verified`, `verified` or `suspect`.
    package var word: String {
        guard verifiedAt != nil else { return "never_verified" }
        return rejections > 0 ? "suspect" : "verified"
    }

    /// The receipt's standing, in plain words.
    package var sentence: String {
        let next = nextCheckAt.map { "Apple will be asked at \($0.iso8601)." } ?? "Apple will not be asked again."
        guard let verifiedAt else {
            let answer = reason.map { " The last answer: \($0)" } ?? ""
            guard nextCheckAt != nil else {
                return
                    "Receipt \(id) of \(receivedAt.iso8601) proves nothing: Apple never vouched for it.\(answer) \(next)"
            }
            return
                "Receipt \(id) has waited since \(receivedAt.iso8601) for Apple to vouch for it; until then it proves "
                + "nothing.\(answer) \(next)"
        }
        guard rejections > 0, let rejectedSince else {
            return "Receipt \(id): Apple vouched for it last at \(verifiedAt.iso8601). \(next)"
        }
        let times = rejections == 1 ? "once" : "\(rejections) times in a row"
        return "Receipt \(id) is suspect: Apple vouched for it at \(verifiedAt.iso8601), but refused it \(times) since "
            + "\(rejectedSince.iso8601) (\(reason ?? "no reason given")). What it proved stays as it is until Apple "
            + "says otherwise. \(next)"
    }
}
