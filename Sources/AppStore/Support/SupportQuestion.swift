import Foundation
import JSON
import NIOHTTP1

/// What a person who supports customers asks of the App Store Server API.
package enum SupportQuestion: Sendable, Hashable {
    /// Request a Test Notification.
    case testNotification
    /// Get Test Notification Status.
    case testStatus(token: String)
    /// Get Transaction Info.
    case transaction(id: String)
    /// Get Transaction History, of the customer who has a transaction.
    case history(id: String)
    /// Get Refund History, of the customer who has a transaction.
    case refunds(id: String)
    /// Get Status of Subscription Renewal Date Extensions.
    case extensionStatus(productID: String, requestID: String)
    /// A call that changes something at Apple's.
    case change(SupportChange, requestID: String)
}

/// A call that changes something at Apple's.
package enum SupportChange: Sendable, Hashable {
    /// Extend a Subscription Renewal Date.
    case extend(originalTransactionID: String, RenewalExtension)
    /// Extend Subscription Renewal Dates for All Active Subscribers of a product, in all countries where none is named.
    case extendAll(productID: String, countries: [String], RenewalExtension)
    /// Send Consumption Information.
    case consumption(transactionID: String, ConsumptionReport)
    /// Set App Account Token.
    case accountToken(originalTransactionID: String, token: String)

    /// The transaction or product that it is about.
    package var subject: String {
        switch self {
        case .extend(let id, _), .extendAll(let id, _, _), .consumption(let id, _), .accountToken(let id, _): id
        }
    }
}

/// By how much and why renewal dates are extended.
package struct RenewalExtension: Sendable, Hashable {
    /// Apple: "extendByDays".
    package static let days = 1...90

    /// Apple's `extendReasonCode`, by its names.
    package enum Reason: String, Sendable, CaseIterable {
        case undeclared, satisfaction, other, outage

        var code: Int64 {
            switch self {
            case .undeclared: 0
            case .satisfaction: 1
            case .other: 2
            case .outage: 3
            }
        }
    }

    package let days: Int
    package let reason: Reason

    /// Creates an extension; nil for a number of days that Apple does not take.
    package init?(days: Int, reason: Reason) {
        guard Self.days.contains(days) else { return nil }
        (self.days, self.reason) = (days, reason)
    }
}

/// What an app says, with a customer's consent, of a purchase to be refunded (Apple: "ConsumptionRequest", version 2).
package struct ConsumptionReport: Sendable, Hashable {
    /// How much of a purchase can be consumed, in percent.
    package static let percents = 0...100

    /// Whether the app delivered what was bought.
    package enum Delivery: String, Sendable, CaseIterable {
        case delivered
        case qualityIssue = "quality_issue"
        case wrongItem = "wrong_item"
        case serverOutage = "server_outage"
        case other

        /// Apple's word, such as `UNDELIVERED_QUALITY_ISSUE`.
        var word: String { self == .delivered ? "DELIVERED" : "UNDELIVERED_\(rawValue.uppercased())" }
    }

    package enum Preference: String, Sendable, CaseIterable {
        case decline, full, prorated

        /// Apple's word, such as `GRANT_FULL`.
        var word: String { self == .decline ? "DECLINE" : "GRANT_\(rawValue.uppercased())" }
    }

    package let delivery: Delivery
    /// Whether the customer could try it before.
    package let sampled: Bool
    /// The percentage that the customer used; nil: not said, as for subscriptions that renew.
    package let consumedPercent: Int?
    /// What the app would like; nil: nothing.
    package let preference: Preference?

    /// Creates a report; nil for a percentage that Apple does not take: what was not delivered was not used.
    package init?(delivery: Delivery, sampled: Bool, consumedPercent: Int? = nil, preference: Preference? = nil) {
        let percents = delivery == .delivered ? Self.percents : 0...0
        guard consumedPercent.map(percents.contains) ?? true else { return nil }
        (self.delivery, self.sampled) = (delivery, sampled)
        (self.consumedPercent, self.preference) = (consumedPercent, preference)
    }
}

extension SupportQuestion {
    /// The request that asks it; a history from a revision on.
    func call(from revision: String? = nil) -> ServerCall {
        switch self {
        case .testNotification: ServerCall(method: .POST, path: "v1/notifications/test")
        case .testStatus(let token): ServerCall(path: "v1/notifications/test/\(ServerCall.encoded(token))")
        case .transaction(let id): .transaction(id)
        case .history(let id): .history(of: id, from: revision)
        case .refunds(let id):
            ServerCall(
                path: "v2/refund/lookup/\(ServerCall.encoded(id))"
                    + (revision.map { "?revision=\(ServerCall.encoded($0))" } ?? ""))
        case .extensionStatus(let product, let request):
            ServerCall(
                path: "v1/subscriptions/extend/mass/\(ServerCall.encoded(product))/\(ServerCall.encoded(request))")
        case .change(let change, let request): change.call(requestID: request)
        }
    }
}

extension SupportChange {
    /// What is asked for as JSON with sorted keys, without the request's own id: a repetition is the same text.
    package var body: String { String(decoding: JSONText(.object(members)).bytes, as: UTF8.self) }

    fileprivate func call(requestID: String) -> ServerCall {
        let id = ServerCall.encoded(subject)
        let identified = members.merging(["requestIdentifier": .string(requestID)]) { $1 }
        let (method, path, sent): (HTTPMethod, String, [String: JSONValue]) =
            switch self {
            case .extend: (.PUT, "v1/subscriptions/extend/\(id)", identified)
            case .extendAll: (.POST, "v1/subscriptions/extend/mass", identified)
            case .consumption: (.PUT, "v2/transactions/consumption/\(id)", members)
            case .accountToken: (.PUT, "v1/transactions/\(id)/appAccountToken", members)
            }
        return ServerCall(method: method, path: path, body: JSONText(.object(sent)).bytes)
    }

    /// The members of its body by Apple's names.
    private var members: [String: JSONValue] {
        switch self {
        case .extend(_, let how): return how.members
        case .extendAll(let product, let countries, let how):
            var members = how.members
            members["productId"] = .string(product)
            if !countries.isEmpty { members["storefrontCountryCodes"] = .array(countries.map { .string($0) }) }
            return members
        case .consumption(_, let report): return report.members
        case .accountToken(_, let token): return ["appAccountToken": .string(token)]
        }
    }
}

extension RenewalExtension {
    fileprivate var members: [String: JSONValue] {
        ["extendByDays": .integer(Int64(days)), "extendReasonCode": .integer(reason.code)]
    }
}

extension ConsumptionReport {
    fileprivate var members: [String: JSONValue] {
        var members: [String: JSONValue] = [
            "customerConsented": true, "deliveryStatus": .string(delivery.word),
            "sampleContentProvided": .bool(sampled),
        ]
        // In thousandths of a percent.
        members["consumptionPercentage"] = consumedPercent.map { .integer(1_000 * Int64($0)) }
        members["refundPreference"] = preference.map { .string($0.word) }
        return members
    }
}
