import Foundation
import HTTPTypes
import Ledger
import Subscriptions
import Tracking

/// Lookups about the present that can be answered from the cached key, app and customer.
///
/// A less simple request, and one to be refused, goes the usual way, so that each refusal is written in one place.
struct EntitlementsAtOnce: Sendable {
    let lookups: GetEntitlements
    let authenticator: APIKeyAuthenticator
    let counters: RequestCounters
    let date = DateField()

    /// Returns the answer to a request if all of it is cached, else nil.
    func answer(_ request: HTTPRequest) -> WrittenAnswer? {
        let start = ContinuousClock.now
        guard let (bundleID, customer) = Self.names(in: request.path ?? ""),
            let key = authenticator.knownKey(in: request.headerFields, for: bundleID, needs: .read),
            let app = lookups.apps.known(bundleID, at: start), (try? Upload.requireValidCustomerID(customer)) != nil,
            let rights = lookups.rights.remembered(of: CustomerName(AppCustomerID(customer), of: bundleID)),
            authenticator.takeRequest(of: key)
        else { return nil }
        let now = Instant(milliseconds: Int64(Date.now.timeIntervalSince1970 * 1000))
        let lookup = EntitlementLookup(
            bundleID: bundleID, customer: customer, time: nil, knownAt: nil, now: now,
            terms: lookups.tracker.terms(of: app), rights: rights)
        let answer = lookup.answer(ifNoneMatch: request.headerFields[values: .ifNoneMatch]).complete(
            requestID: request.headerFields.givenRequestID ?? RequestID.random(),
            date: date.text(atMilliseconds: now.milliseconds))
        counters.count(
            .init(method: .get, route: GetEntitlements.path, status: answer.head.status.code),
            elapsed: ContinuousClock.now - start)
        return answer
    }

    /// Returns the app and the customer of a lookup path, if neither is percent-encoded and there is no query.
    private static func names(in path: String) -> (BundleID, String)? {
        guard path.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: "%") && $0 != UInt8(ascii: "?") })
        else { return nil }
        let parts = path.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false).map(Substring.init)
        guard parts.count == 7, parts[1] == "v1", parts[2] == "apps", parts[4] == "customers",
            parts[6] == "entitlements", !parts[3].isEmpty, !parts[5].isEmpty
        else { return nil }
        return (BundleID(String(parts[3])), String(parts[5]))
    }
}
