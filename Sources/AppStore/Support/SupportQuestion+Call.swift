import Foundation
import NIOHTTP1

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
    package var body: String { String(decoding: members.jsonText, as: UTF8.self) }

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
                method: .PUT, path: "/inApps/v2/transactions/consumption/\(id)", body: members.jsonText)
        case .accountToken:
            return ServerCall(
                method: .PUT, path: "/inApps/v1/transactions/\(id)/appAccountToken", body: members.jsonText)
        }
    }

    private func identified(by requestID: String) -> [UInt8] {
        var members = members
        members.requestIdentifier = requestID
        return members.jsonText
    }

    private var members: SupportBody {
        switch self {
        case .extend(_, let how): SupportBody(how)
        case .extendAll(let product, let countries, let how):
            SupportBody(how, of: product, in: countries)
        case .consumption(_, let report): SupportBody(report)
        case .accountToken(_, let token): SupportBody(appAccountToken: token)
        }
    }
}

/// The members of the bodies by Apple's names; nil ones are left out.
private struct SupportBody: Encodable {
    var extendByDays: Int?
    var extendReasonCode: Int?
    var requestIdentifier: String?
    var productId: String?
    var storefrontCountryCodes: [String]?
    var customerConsented: Bool?
    var deliveryStatus: String?
    var sampleContentProvided: Bool?
    /// In thousandths of a percent.
    var consumptionPercentage: Int?
    var refundPreference: String?
    var appAccountToken: String?

    init(appAccountToken: String) { self.appAccountToken = appAccountToken }

    init(_ how: RenewalExtension) {
        extendByDays = how.days
        extendReasonCode = how.reason.code
    }

    init(_ how: RenewalExtension, of product: String, in countries: [String]) {
        self.init(how)
        productId = product
        storefrontCountryCodes = countries.isEmpty ? nil : countries
    }

    init(_ report: ConsumptionReport) {
        customerConsented = true
        deliveryStatus = report.delivery.word
        sampleContentProvided = report.sampled
        consumptionPercentage = report.consumedPercent.map { 1_000 * $0 }
        refundPreference = report.preference?.word
    }

    var jsonText: [UInt8] {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        // Texts, numbers and booleans alone always encode.
        return (try? encoder.encode(self)).map { Array($0) } ?? []
    }
}
