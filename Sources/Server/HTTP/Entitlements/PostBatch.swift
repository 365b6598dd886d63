import Hummingbird
import Ledger
import Subscriptions
import Tracking

/// `POST /v1/apps/{bundle}/entitlements:batch`: the entitlements of many customers, in the order of the request.
struct PostBatch: Sendable {
    /// The most customers of one request.
    static let customersMax = 1000

    let tracker: Tracker
    let apps: KnownApps
    let counters: LookupCounters
    let limits: ServerLimits

    /// The body of the request.
    private struct Question: KnownFields {
        let customers: [String]
        let at: String?
        let knownAt: String?

        enum CodingKeys: String, CodingKey, CaseIterable {
            case customers, at
            case knownAt = "known_at"
        }
    }

    func addRoute(to routes: RouterGroup<KeyContext>) {
        routes.ofApp(needing: .read).post("/v1/apps/{bundle}/entitlements:batch") { request, context in
            let question = try await limits.json(Question.self, of: request)
            guard (1...Self.customersMax).contains(question.customers.count) else {
                throw Problem(.invalid, "The body's customers are 1 to \(Self.customersMax) customer ids.")
            }
            for customer in question.customers { try Upload.requireValidCustomerID(customer) }
            let time = try question.at.map { try Instant(asked: $0, as: "The body's at") }
            let knownAt = try question.knownAt.map { try Instant(asked: $0, as: "The body's known_at") }
            let terms = tracker.terms(of: try await apps.require(context.bundleID))
            let found = try await tracker.ledger.customers.entitlements(
                of: question.customers.map { CustomerName(AppCustomerID($0), of: context.bundleID) }, at: time,
                knownAt: knownAt)
            for answer in found { counters.count(answer.source) }
            let answers = zip(question.customers, found).map { customer, found in
                EntitlementLookup(
                    bundleID: context.bundleID, customer: customer, time: time, knownAt: knownAt, terms: terms,
                    found: found)
            }
            let now = answers[0].found.now
            return Response(
                JSONText {
                    $0.member("app", context.bundleID.text)
                    $0.member("at", time ?? now)
                    $0.member("customers", each: answers) { $1.writeEntry(to: &$0) }
                    $0.member("known_at", knownAt ?? now)
                })
        }
    }
}
