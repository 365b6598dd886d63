import Foundation
import JSON
import Postgres
package import Subscriptions

/// A stored verified answer from Apple: one body, which was true from its first to its last clock.
package struct KeptAnswer: Sendable {
    /// The observation that stores it.
    package let observation: Observation
    /// The app asked about.
    package let bundleID: BundleID
    /// The environment in which it was verified.
    package let environment: StoreEnvironment
    /// Apple's answer as it came at the first clock.
    package var body: [UInt8]
}

/// The number and receipt of a stored answer, and Apple's clocks between which it was given.
package struct Observation: Sendable, Hashable {
    /// Its number.
    package let id: Int64
    /// The receipt it is about.
    package let receiptID: ReceiptID
    /// Apple's clock at the first such answer.
    package let firstAsOf: Instant
    /// Apple's clock at the last such answer.
    package let lastAsOf: Instant
}

/// Reads the evidence in what is stored, by the present rules.
package struct EvidenceReader: Sendable {
    let answer: @Sendable (KeptAnswer) -> Evidence?
    let notification: ReadNotification
}

extension Evidence {
    /// Returns the same answer, given again at another of Apple's clocks. Apple signs texts anew each time; a device's snapshot
    /// keeps its age.
    func given(at instant: Instant) -> Evidence {
        var again = self
        again.asOf = instant
        again.transactions = transactions.map { row in
            var row = row
            switch row.source {
            case .latestReceiptInfo: row.asOf = instant
            case .signedText, .statuses: row.asOf = row.asOf + (instant - asOf)
            case .deviceReceipt: row.asOf = min(receiptCreatedAt ?? instant, instant)
            }
            return row
        }
        again.renewals = renewals.map { row in
            var row = row
            row.asOf = instant
            return row
        }
        return again
    }

    /// Returns the same answer with every path in it prefixed by the observation that stores it.
    func kept(in observation: Observation) -> Evidence {
        var kept = self
        kept.transactions = transactions.map { row in
            var row = row
            row.path = observation.path(to: row.path)
            return row
        }
        kept.renewals = renewals.map { row in
            var row = row
            row.path = observation.path(to: row.path)
            return row
        }
        return kept
    }
}

extension Observation {
    /// Returns the path of a fact across all observations: the observation's number, then the path within its body.
    func path(to path: String) -> String { "\(id)/\(path)" }

    /// Returns the observation's number and the path within its body; nil when the path leads into no observation.
    static func split(_ path: String) -> (id: Int64, path: String)? {
        guard let slash = path.firstIndex(of: "/"), let id = Int64(path[..<slash]) else { return nil }
        // A legacy answer's row is the top level itself: its path is empty.
        return (id, String(path[path.index(after: slash)...].drop { $0 == "." }))
    }
}

/// The facts of a subscription or a purchase to compare, as text by name, without the answer that each fact came from.
struct FactSnapshot {
    private(set) var facts: [String: String] = [:]

    /// Returns the differing facts, by name.
    func differences(from rebuilt: FactSnapshot, of subject: String) -> [RebuildDifference] {
        Set(facts.keys).union(rebuilt.facts.keys).sorted().compactMap { name in
            guard facts[name] != rebuilt.facts[name] else { return nil }
            return RebuildDifference(subject: subject, fact: name, stored: facts[name], rebuilt: rebuilt.facts[name])
        }
    }

    private subscript(name: String) -> String? {
        get { facts[name] }
        set { facts[name] = newValue }
    }
}

extension FactSnapshot {
    /// Describes a subscription by its stored facts, timeline and columns.
    init(stored state: SubscriptionState?, _ spans: [StoredSpan], columns row: Row) throws {
        if let state { describe(state.facts, state.retractions) }
        describe(spans)
        self["as_of"] = try row.instantIfPresent("as_of")?.iso8601
        self["group_id"] = try row.textIfPresent("group_id")
        self["will_renew"] = try row.boolIfPresent("will_renew").map { "\($0)" }
        self["next_payment"] = try row.boolIfPresent("next_payment").map { "\($0)" }
        self["sale"] = try row.jsonIfPresent("sale")?.rendered()
        self["renews_to_product_id"] = try row.textIfPresent("renews_to_product_id")
        self["flags"] = try row.texts("flags").joined(separator: ",")
        self["expires_at"] = try row.instantIfPresent("expires_at")?.iso8601
        self["head_starts_at"] = try row.instantIfPresent("head_starts_at")?.iso8601
        self["started_at"] = try row.instantIfPresent("started_at")?.iso8601
        self["periods"] = "\(try row.int4("periods"))"
        self["leeway_ms"] = "\(try row.int8("leeway_ms"))"
        self["app_account_token"] = try row.textIfPresent("app_account_token")
        self["access_ends_at"] = try row.instantIfPresent("access_ends_at")?.iso8601
        self["renewal_expected"] = try row.boolIfPresent("renewal_expected").map { "\($0)" }
    }

    /// Describes a subscription by the facts, timeline and columns that would be written.
    init(rebuilt state: SubscriptionState, outageAllowance: Delay) {
        describe(state.facts, state.retractions)
        describe(state.storedSpans(outageAllowance: outageAllowance))
        self["as_of"] = state.asOf.iso8601
        self["group_id"] = state.facts.groupID?.text
        self["will_renew"] = state.willRenew.map { "\($0)" }
        self["next_payment"] = state.nextPayment.map { "\($0)" }
        self["sale"] = state.storedSale?.rendered()
        self["renews_to_product_id"] = state.renewsToProductID?.text
        self["flags"] = state.flagsOfToday
        self["expires_at"] = state.expiresAt.iso8601
        self["head_starts_at"] = state.headStartsAt.iso8601
        self["started_at"] = state.startedAt.iso8601
        self["periods"] = "\(state.periods)"
        self["leeway_ms"] = "\(state.leeway.milliseconds)"
        self["app_account_token"] = state.facts.appAccountToken
        self["access_ends_at"] = state.outageAllowance.accessEndsAt?.iso8601
        self["renewal_expected"] = "\(state.outageAllowance.expected)"
    }

    private mutating func describe(_ facts: SubscriptionFacts, _ retractions: [Retraction]) {
        self["renewal"] = facts.renewal?.value.json.rendered()
        for retraction in retractions {
            self["retracted \(retraction.transactionID) \(retraction.what)"] = retraction.end?.iso8601 ?? "gone"
        }
        for record in facts.records { describe(record) }
    }

    private mutating func describe(_ period: PeriodRecord) {
        let name =
            "period " + (period.webOrderLineItemID?.text ?? period.transactionIDs.min()?.text ?? "without a number")
        self["\(name).product_id"] = period.terms.productID.text
        self["\(name).quantity"] = "\(period.terms.quantity)"
        self["\(name).purchased_at"] = period.terms.purchasedAt.iso8601
        self["\(name).expires_at"] = period.terms.expiresAt.iso8601
        self["\(name).cancelled_at"] = period.revocation.value.cancelledAt?.iso8601
        self["\(name).cancellation_reason"] = period.revocation.value.reason
        self["\(name).is_upgraded"] = "\(period.upgrade.value)"
        var details = FactWords<PeriodRecord.FactName>()
        period.details.each(beside: period.details, &details)
        for (fact, words) in details.words { self["\(name).\(fact.rawValue)"] = words }
        self["\(name).transaction_ids"] = period.transactionIDs.sorted().map(\.text).joined(separator: ",")
        self["\(name).ending"] = period.ending?.renewal.json.rendered()
    }

    private mutating func describe(_ spans: [StoredSpan]) {
        for span in spans {
            let reason = span.reason.map { " (\($0.rawValue))" } ?? ""
            let flags = span.flags.map { ", \($0.rawValue)" }.joined()
            let held = span.allowedUntil.map { ", held until \($0.iso8601)" } ?? ""
            let access = span.entitled ? "with access" : "without access"
            self["timeline from \(span.from.iso8601)"] =
                "\(span.state.rawValue)\(reason) \(access) to \(span.to?.iso8601 ?? "further notice"), "
                + "\(span.productID)\(flags)\(held)"
        }
    }
}

extension FactSnapshot {
    /// Describes a purchase as it is stored.
    init(stored state: PurchaseState?, columns row: Row) throws {
        if let state { describe(state) }
        self["as_of"] = try row.instantIfPresent("as_of")?.iso8601
        self["transaction_id"] = try row.textIfPresent("transaction_id")
        self["quantity"] = try row.intIfPresent("quantity").map { "\($0)" }
        self["purchased_at"] = try row.instantIfPresent("purchased_at")?.iso8601
        self["revoked_at"] = try row.instantIfPresent("revoked_at")?.iso8601
        self["app_account_token"] = try row.textIfPresent("app_account_token")
    }

    /// Describes a purchase as it would be written.
    init(rebuilt state: PurchaseState) {
        describe(state)
        self["as_of"] = state.asOf.iso8601
        self["transaction_id"] = state.transactionID.text
        self["quantity"] = "\(state.quantity)"
        self["purchased_at"] = state.purchasedAt.iso8601
        self["revoked_at"] = state.revokedAt?.iso8601
        self["app_account_token"] = state.facts.appAccountToken?.value
    }

    private mutating func describe(_ state: PurchaseState) {
        let facts = state.facts
        self["facts.transaction_id"] = facts.terms.value.transactionID.text
        self["facts.quantity"] = "\(facts.terms.value.quantity)"
        self["facts.purchased_at"] = facts.terms.value.purchasedAt.iso8601
        self["facts.revoked_at"] = facts.revocation.value.cancelledAt?.iso8601
        self["facts.revocation_reason"] = facts.revocation.value.reason
        var details = FactWords<PurchaseFacts.Name>()
        facts.each(beside: facts, &details)
        for (fact, words) in details.words { self["facts.\(fact.rawValue)"] = words }
        self["transaction_ids"] = facts.transactionIDs.sorted().map(\.text).joined(separator: ",")
    }
}

/// The values of facts as a reader sees them; a flag that no source states is one denied.
private struct FactWords<Name: Hashable>: FactStep {
    var words: [Name: String] = [:]

    mutating func fact<Value>(_ name: Name, _ fact: Fact<Value>?, _: Fact<Value>?) -> Fact<Value>? {
        let value = fact?.value ?? Value.unstated
        words[name] = (value as? Sale).map { $0.json.rendered() } ?? value?.words
        return nil
    }
}
