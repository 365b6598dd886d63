import AppStore
import Foundation
import JSON
import Postgres
package import Subscriptions

/// A stored verified answer from Apple: one body, which was true from its first to its last clock.
package struct KeptAnswer: Sendable {
    package let observation: Observation
    package let bundleID: BundleID
    package let environment: StoreEnvironment
    /// Apple's answer as it came at the first clock.
    package var body: [UInt8]
}

/// The number and receipt of a stored answer, and Apple's clocks between which it was given.
package struct Observation: Sendable, Hashable {
    package let id: Int64
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
    /// Returns the same answer at another of Apple's clocks. Apple signs texts anew; a device's snapshot keeps its age.
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
    init(row: Row) throws {
        id = try row.int8("observation_id")
        receiptID = ReceiptID(try row.int8("receipt_id"))
        firstAsOf = try row.instant("first_as_of")
        lastAsOf = try row.instant("last_as_of")
    }

    /// Returns the path of a fact across all observations: the observation's number, then the path within its body.
    func path(to path: String) -> String { "\(id)/\(path)" }

    /// Returns the observation's number and the path within its body; nil when the path leads into no observation.
    static func split(_ path: String) -> (id: Int64, path: String)? {
        guard let slash = path.firstIndex(of: "/"), let id = Int64(path[..<slash]) else { return nil }
        // A legacy answer's row is the top level itself: its path is empty.
        return (id, String(path[path.index(after: slash)...].drop { $0 == "." }))
    }
}

/// The facts of a subscription or a purchase, stored and rebuilt: text by name, without the answer that each came from.
struct FactComparison {
    private var stored: [String: String] = [:]
    private var rebuilt: [String: String] = [:]

    /// Returns the differing facts, by name.
    func differences(of subject: String) -> [RebuildDifference] {
        Set(stored.keys).union(rebuilt.keys).sorted().compactMap { name in
            guard stored[name] != rebuilt[name] else { return nil }
            return RebuildDifference(subject: subject, fact: name, stored: stored[name], rebuilt: rebuilt[name])
        }
    }

    private mutating func note(_ name: String, _ stored: String?, _ rebuilt: String?) {
        (self.stored[name], self.rebuilt[name]) = (stored, rebuilt)
    }

    /// Compares a subscription's stored facts, timeline and columns with those that would be written.
    init(
        _ state: SubscriptionState?, _ spans: [StoredSpan], columns row: Row, with rebuilt: SubscriptionState,
        outageAllowance: Delay
    ) throws {
        stored = Self.describe(state, spans)
        self.rebuilt = Self.describe(rebuilt, rebuilt.storedSpans(outageAllowance: outageAllowance))
        note("as_of", try row.instantIfPresent("as_of")?.iso8601, rebuilt.asOf.iso8601)
        note("group_id", try row.textIfPresent("group_id"), rebuilt.facts.groupID?.text)
        note("will_renew", try row.boolIfPresent("will_renew").map { "\($0)" }, rebuilt.willRenew.map { "\($0)" })
        note("next_payment", try row.boolIfPresent("next_payment").map { "\($0)" }, rebuilt.nextPayment.map { "\($0)" })
        note("sale", try row.jsonIfPresent("sale")?.rendered(), rebuilt.storedSale?.rendered())
        note("renews_to_product_id", try row.textIfPresent("renews_to_product_id"), rebuilt.renewsToProductID?.text)
        note("flags", try row.texts("flags").joined(separator: ","), rebuilt.flagsOfToday)
        note("expires_at", try row.instantIfPresent("expires_at")?.iso8601, rebuilt.expiresAt.iso8601)
        note("head_starts_at", try row.instantIfPresent("head_starts_at")?.iso8601, rebuilt.headStartsAt.iso8601)
        note("started_at", try row.instantIfPresent("started_at")?.iso8601, rebuilt.startedAt.iso8601)
        note("periods", "\(try row.int4("periods"))", "\(rebuilt.periods)")
        note("leeway_ms", "\(try row.int8("leeway_ms"))", "\(rebuilt.leeway.milliseconds)")
        note("app_account_token", try row.textIfPresent("app_account_token"), rebuilt.facts.appAccountToken)
        let allowance = rebuilt.outageAllowance
        note("access_ends_at", try row.instantIfPresent("access_ends_at")?.iso8601, allowance.accessEndsAt?.iso8601)
        let isExpected = try row.boolIfPresent("renewal_expected")
        note("renewal_expected", isExpected.map { "\($0)" }, "\(allowance.expected)")
    }

    private static func describe(_ state: SubscriptionState?, _ spans: [StoredSpan]) -> [String: String] {
        var facts: [String: String] = [:]
        facts["renewal"] = state?.facts.renewal?.value.json.rendered()
        for retraction in state?.retractions ?? [] {
            facts["retracted \(retraction.transactionID) \(retraction.what)"] = retraction.end?.iso8601 ?? "gone"
        }
        for period in state?.facts.records ?? [] { describe(period, in: &facts) }
        for span in spans {
            let reason = span.reason.map { " (\($0.rawValue))" } ?? ""
            let flags = span.flags.map { ", \($0.rawValue)" }.joined()
            let held = span.allowedUntil.map { ", held until \($0.iso8601)" } ?? ""
            let access = span.entitled ? "with access" : "without access"
            facts["timeline from \(span.from.iso8601)"] =
                "\(span.state.rawValue)\(reason) \(access) to \(span.to?.iso8601 ?? "further notice"), "
                + "\(span.productID)\(flags)\(held)"
        }
        return facts
    }

    private static func describe(_ period: PeriodRecord, in facts: inout [String: String]) {
        let name =
            "period " + (period.webOrderLineItemID?.text ?? period.transactionIDs.min()?.text ?? "without a number")
        facts["\(name).product_id"] = period.terms.productID.text
        facts["\(name).quantity"] = "\(period.terms.quantity)"
        facts["\(name).purchased_at"] = period.terms.purchasedAt.iso8601
        facts["\(name).expires_at"] = period.terms.expiresAt.iso8601
        facts["\(name).cancelled_at"] = period.revocation.value.cancelledAt?.iso8601
        facts["\(name).cancellation_reason"] = period.revocation.value.reason
        facts["\(name).is_upgraded"] = "\(period.upgrade.value)"
        var details = FactWords<PeriodRecord.FactName>()
        period.details.each(beside: period.details, &details)
        for (fact, words) in details.words { facts["\(name).\(fact.rawValue)"] = words }
        facts["\(name).transaction_ids"] = period.transactionIDs.sorted().map(\.text).joined(separator: ",")
        facts["\(name).ending"] = period.ending?.renewal.json.rendered()
    }

    /// Compares a purchase as it is stored with what would be written.
    init(_ state: PurchaseState?, columns row: Row, with rebuilt: PurchaseState) throws {
        stored = state.map(Self.describe) ?? [:]
        self.rebuilt = Self.describe(rebuilt)
        note("as_of", try row.instantIfPresent("as_of")?.iso8601, rebuilt.asOf.iso8601)
        note("transaction_id", try row.textIfPresent("transaction_id"), rebuilt.transactionID.text)
        note("quantity", try row.intIfPresent("quantity").map { "\($0)" }, "\(rebuilt.quantity)")
        note("purchased_at", try row.instantIfPresent("purchased_at")?.iso8601, rebuilt.purchasedAt.iso8601)
        note("revoked_at", try row.instantIfPresent("revoked_at")?.iso8601, rebuilt.revokedAt?.iso8601)
        note("app_account_token", try row.textIfPresent("app_account_token"), rebuilt.facts.appAccountToken?.value)
    }

    private static func describe(_ state: PurchaseState) -> [String: String] {
        let known = state.facts
        var facts: [String: String] = [:]
        facts["facts.transaction_id"] = known.terms.value.transactionID.text
        facts["facts.quantity"] = "\(known.terms.value.quantity)"
        facts["facts.purchased_at"] = known.terms.value.purchasedAt.iso8601
        facts["facts.revoked_at"] = known.revocation.value.cancelledAt?.iso8601
        facts["facts.revocation_reason"] = known.revocation.value.reason
        var details = FactWords<PurchaseFacts.Name>()
        known.each(beside: known, &details)
        for (fact, words) in details.words { facts["facts.\(fact.rawValue)"] = words }
        facts["transaction_ids"] = known.transactionIDs.sorted().map(\.text).joined(separator: ",")
        return facts
    }
}

/// The values of facts as a reader sees them; a flag that no source states is one denied. A sale is shown as it is stored.
private struct FactWords<Name: Hashable>: FactStep {
    var words: [Name: String] = [:]

    mutating func fact<Value>(_ name: Name, _ fact: Fact<Value>?, _: Fact<Value>?) -> Fact<Value>? {
        let value = fact?.value ?? Value.unstated
        words[name] = (value as? Sale).map { $0.json.rendered() } ?? value?.words
        return nil
    }
}

extension EvidenceReader {
    /// Reads what is stored by the rules of this program.
    package static let present = EvidenceReader(answer: { $0.evidence }, notification: { $0.evidence })
}

extension KeptNotification {
    /// The evidence in the notification; nil where it holds none.
    var evidence: Evidence? {
        let notification =
            texts.flatMap(SignedNotification.init(packed:)) ?? claims.flatMap(SignedNotification.init(claims:))
        return notification.flatMap { Evidence(in: $0, environment: environment) }
    }
}

extension SignedReducer {
    /// Reduces what is stored where this program reads the same in it afterwards.
    package static let present = SignedReducer(
        notification: { kept in
            guard let claims = kept.texts.flatMap(SignedNotification.keptClaims(ofPacked:)) else { return nil }
            let after = SignedNotification(claims: claims).flatMap { Evidence(in: $0, environment: kept.environment) }
            // A notification that is no fact says nothing before and after; its claims stay for later versions.
            guard let before = kept.evidence else { return after == nil ? claims : nil }
            return after?.saysTheSame(as: before) == true ? claims : nil
        },
        answer: { kept in
            var reduced = kept
            reduced.body = ShortText.reducedStrings(of: kept.body)
            guard let before = kept.evidence, reduced.evidence?.saysTheSame(as: before) == true else { return nil }
            return reduced.body
        })
}
