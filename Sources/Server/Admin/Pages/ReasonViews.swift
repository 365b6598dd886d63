import Foundation
import Ledger
import Subscriptions
import Tracking

/// The reasons for what a customer may use, as the page of the customer shows them.
struct ReasonViews {
    /// An entitlement with its answer and what did not decide.
    struct Right {
        let name: String
        let answer: String
        /// `yes` or `no`, for the style sheet.
        let style: String
        let source: String
        let losers: [String]
    }

    /// A subscription or a purchase with its conclusion.
    struct Thing {
        let title: String
        let conclusion: String
        let steps: [Step]
        let notes: [String]
    }

    /// One field of an answer that decided.
    struct Step {
        let sentence: String
        let field: String
        /// Where the field was seen, and since when.
        let source: String
        /// The part of Apple's answer that has the field; nil when the answer is no longer kept.
        let json: String?
        /// The receipt's page; nil likewise.
        let link: String?
        let linkTitle: String?
    }

    let summary: String
    let rights: [Right]
    let things: [Thing]
    let receipts: [String]

    /// Creates the views. `bodies` has Apple's answers by their numbers.
    init(_ explanation: CustomerExplanation, bodies: [Int64: [UInt8]]) {
        let reasons = explanation.reasons
        summary = explanation.summary.joined(separator: " ")
        rights = explanation.rights.map { right in
            let winner = right.winner
            let until = winner.until.map { "until \(readable($0)) unless something changes" } ?? "without an end"
            return Right(
                name: right.name, answer: winner.granted ? "yes, \(until)" : "no",
                style: winner.granted ? "yes" : "no",
                source: "\(winner.granted ? "It comes from" : "What decides is") \(explanation.name(of: winner))."
                    .withReadableInstants,
                losers: right.losers.map {
                    "Not from \(explanation.name(of: $0)): \($0.loss(to: winner)).".withReadableInstants
                })
        }
        things =
            explanation.subscriptions.map { Thing($0, explanation, bodies) }
            + explanation.purchases.map { Thing($0, at: reasons.at, for: reasons.customer, bodies) }
        receipts = reasons.receipts.map { $0.sentence.withReadableInstants }
    }
}

extension ReasonViews.Thing {
    fileprivate init(
        _ one: SubscriptionReasons, _ explanation: CustomerExplanation, _ bodies: [Int64: [UInt8]]
    ) {
        let reasons = explanation.reasons
        let verdict = one.verdict(at: reasons.at)
        let rule = one.rule(of: verdict).map { " (The rule: \($0).)" } ?? ""
        let owner = one.ownership.sentence(for: reasons.customer, accountToken: one.state.facts.appAccountToken)
        let clocks =
            "Known as of Apple's clock \(readable(one.state.asOf)); the last answer came at "
            + "\(readable(one.checkedAt))."
        title =
            "Subscription \(one.state.facts.originalTransactionID): \(verdict.productID), "
            + one.environment.rawValue
        conclusion = (one.conclusion(of: verdict) + rule).withReadableInstants
        steps = one.steps(of: verdict).map { ReasonViews.Step($0, bodies) }
        notes = [one.gap, owner, explanation.next(of: one, verdict), clocks].compactMap { $0?.withReadableInstants }
    }

    fileprivate init(
        _ one: PurchaseReasons, at instant: Instant, for customer: String, _ bodies: [Int64: [UInt8]]
    ) {
        let facts = one.state.facts
        title = "Purchase \(one.state.transactionID): \(facts.key.productID), \(one.environment.rawValue)"
        conclusion = one.conclusion(at: instant).withReadableInstants
        steps = one.steps(at: instant).map { ReasonViews.Step($0, bodies) }
        let owner = one.ownership.sentence(for: customer, accountToken: facts.appAccountToken?.value)
        notes = [one.gap, owner].compactMap { $0?.withReadableInstants }
    }
}

extension ReasonViews.Step {
    fileprivate init(_ step: CustomerExplanation.Step, _ bodies: [Int64: [UInt8]]) {
        sentence = step.sentence.withReadableInstants
        field = "\(step.path) = \(step.value)"
        guard let seen = step.observation else {
            source = "In an answer that is no longer kept."
            (json, link, linkTitle) = (nil, nil, nil)
            return
        }
        source = "In an answer seen from \(readable(seen.firstAsOf)) to \(readable(seen.lastAsOf))."
        json = bodies[seen.id].flatMap { AppleAnswer(body: $0)?.row(of: step.path) }
        link = ReceiptPage.path(of: seen.receiptID)
        linkTitle = "Receipt \(seen.receiptID)"
    }
}

extension CustomerExplanation {
    /// The numbers of the answers that decided.
    var observations: Set<Int64> {
        let steps =
            subscriptions.flatMap { $0.steps(of: $0.verdict(at: reasons.at)) }
            + purchases.flatMap { $0.steps(at: reasons.at) }
        return Set(steps.compactMap { $0.observation?.id })
    }
}

extension String {
    /// The text with its instants in ISO 8601 written for people.
    var withReadableInstants: String {
        replacing(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z/) { match in
            Instant(iso8601: String(match.output)).map(readable) ?? String(match.output)
        }
    }
}
