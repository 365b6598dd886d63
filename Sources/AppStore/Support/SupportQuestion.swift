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
        case undeclared
        case satisfaction
        case other
        case outage

        /// Apple's number.
        var code: Int {
            switch self {
            case .undeclared: 0
            case .satisfaction: 1
            case .other: 2
            case .outage: 3
            }
        }
    }

    /// The days, 1 to 90.
    package let days: Int
    /// Why.
    package let reason: Reason

    /// Creates an extension; nil for a number of days that Apple does not take.
    package init?(days: Int, reason: Reason) {
        guard Self.days.contains(days) else { return nil }
        (self.days, self.reason) = (days, reason)
    }
}

/// What an app says of a purchase whose refund a customer asks for (Apple: "ConsumptionRequest", version 2). The customer
/// has consented to it.
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

        /// Apple's word.
        var word: String {
            switch self {
            case .delivered: "DELIVERED"
            case .qualityIssue: "UNDELIVERED_QUALITY_ISSUE"
            case .wrongItem: "UNDELIVERED_WRONG_ITEM"
            case .serverOutage: "UNDELIVERED_SERVER_OUTAGE"
            case .other: "UNDELIVERED_OTHER"
            }
        }
    }

    /// What the app would like Apple to decide.
    package enum Preference: String, Sendable, CaseIterable {
        case decline
        case full
        case prorated

        /// Apple's word.
        var word: String {
            switch self {
            case .decline: "DECLINE"
            case .full: "GRANT_FULL"
            case .prorated: "GRANT_PRORATED"
            }
        }
    }

    /// Whether the app delivered it.
    package let delivery: Delivery
    /// Whether the customer could try it before.
    package let sampled: Bool
    /// The percentage that the customer used; nil: not said, as for subscriptions that renew.
    package let consumedPercent: Int?
    /// What the app would like; nil: nothing.
    package let preference: Preference?

    /// Creates a report; nil for a percentage that Apple does not take: what was not delivered was not used.
    package init?(delivery: Delivery, sampled: Bool, consumedPercent: Int? = nil, preference: Preference? = nil) {
        if let consumedPercent {
            guard Self.percents.contains(consumedPercent), delivery == .delivered || consumedPercent == 0 else {
                return nil
            }
        }
        self.delivery = delivery
        self.sampled = sampled
        self.consumedPercent = consumedPercent
        self.preference = preference
    }
}

extension SupportQuestion {
    /// The request that asks it; a history from a revision on.
    func call(from revision: String? = nil) -> ServerCall {
        switch self {
        case .testNotification: ServerCall(method: .POST, path: "/inApps/v1/notifications/test")
        case .testStatus(let token): Self.get("v1/notifications/test/\(ServerCall.encoded(token))")
        case .transaction(let id): Self.get("v1/transactions/\(ServerCall.encoded(id))")
        case .history(let id): .history(of: id, from: revision)
        case .refunds(let id):
            Self.get(
                "v2/refund/lookup/\(ServerCall.encoded(id))"
                    + (revision.map { "?revision=\(ServerCall.encoded($0))" } ?? ""))
        case .extensionStatus(let product, let request):
            Self.get("v1/subscriptions/extend/mass/\(ServerCall.encoded(product))/\(ServerCall.encoded(request))")
        case .change(let change, let request): change.call(requestID: request)
        }
    }

    private static func get(_ path: String) -> ServerCall { ServerCall(method: .GET, path: "/inApps/\(path)") }
}

extension SupportChange {
    /// What is asked for as JSON with sorted keys, without the request's own id: a repetition is the same text.
    package var body: String { String(decoding: JSONText(.object(members)).bytes, as: UTF8.self) }

    fileprivate func call(requestID: String) -> ServerCall {
        let id = ServerCall.encoded(subject)
        switch self {
        case .extend:
            return ServerCall(
                method: .PUT, path: "/inApps/v1/subscriptions/extend/\(id)", body: identified(by: requestID))
        case .extendAll:
            return ServerCall(
                method: .POST, path: "/inApps/v1/subscriptions/extend/mass", body: identified(by: requestID))
        case .consumption:
            return ServerCall(
                method: .PUT, path: "/inApps/v2/transactions/consumption/\(id)", body: JSONText(.object(members)).bytes)
        case .accountToken:
            return ServerCall(
                method: .PUT, path: "/inApps/v1/transactions/\(id)/appAccountToken",
                body: JSONText(.object(members)).bytes)
        }
    }

    private func identified(by requestID: String) -> [UInt8] {
        JSONText(.object(members.merging(["requestIdentifier": .string(requestID)]) { $1 })).bytes
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
        ["extendByDays": .integer(Int64(days)), "extendReasonCode": .integer(Int64(reason.code))]
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
