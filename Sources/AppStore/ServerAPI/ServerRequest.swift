/// The App Store Server API as Perennial sees it: checks, and the calls of support. A struct with closures, as
/// ``AppStoreClient`` is.
package struct ServerAPIClient: Sendable {
    /// Asks Apple about the customer of a transaction. Never throws: an outage is an answer too.
    package var read: @Sendable (ServerRequest) async -> AppStoreAnswer
    /// Makes one support call. Never throws either.
    package var support: @Sendable (SupportRequest) async -> SupportAnswer

    /// Creates a client that answers checks with `read`, and support calls with `support` where there is one.
    package init(
        support: @escaping @Sendable (SupportRequest) async -> SupportAnswer = { _ in
            SupportAnswer(.failed("This process does not ask the Server API.", code: nil))
        },
        read: @escaping @Sendable (ServerRequest) async -> AppStoreAnswer
    ) {
        self.read = read
        self.support = support
    }

    /// A client of a process that asks no Server API.
    package static let none = ServerAPIClient { request in
        AppStoreAnswer(
            environment: request.askFirst,
            server: .noAnswer("This process does not ask the Server API.", code: nil), httpStatus: nil, calls: 0)
    }
}

/// The endpoints that a check asks, in this order. Apple limits each on its own.
package enum ServerEndpoint: Sendable, Hashable {
    /// The status of all subscriptions of a customer.
    case statuses
    /// The history of a customer's transactions.
    case history
    /// One transaction, where both do not list the id that was asked about.
    case transaction
}

/// A request to Apple about the customer of one transaction.
package struct ServerRequest: Sendable {
    /// The key that signs the requests.
    package var key: ServerKey
    /// Apple's number of the app; texts of production that name another one are of another app.
    package var appleAppID: Int64?
    /// Any transaction id of the customer in this app.
    package var transactionID: String
    /// The signed text of that transaction, where the device sent one.
    package var signedText: [UInt8]?
    /// The revision after which the history is read; nil: from its start.
    package var revision: String?
    /// The environment to ask first: the one remembered for this receipt, else production.
    package var askFirst: Endpoint
    /// Whether nothing of this receipt was verified before: the answer must hold the id, or the purchase that it
    /// names under another one, and the other environment may know it.
    package var isFirstSight: Bool
    /// Whether sandbox purchases are accepted. If false, the sandbox is never asked.
    package var sandboxAllowed: Bool
    /// Takes a call of an endpoint from its budget: returns nil when it may be made, else the seconds to wait before
    /// another question.
    package var turn: @Sendable (Endpoint, ServerEndpoint) async -> Double?

    /// Creates a request; the app's budget is `turn`.
    package init(
        key: ServerKey, appleAppID: Int64? = nil, transactionID: String, signedText: [UInt8]? = nil,
        revision: String? = nil,
        askFirst: Endpoint = .production, isFirstSight: Bool = true, sandboxAllowed: Bool = true,
        turn: @escaping @Sendable (Endpoint, ServerEndpoint) async -> Double? = { _, _ in nil }
    ) {
        self.key = key
        self.appleAppID = appleAppID
        self.transactionID = transactionID
        self.signedText = signedText
        self.revision = revision
        self.askFirst = askFirst
        self.isFirstSight = isFirstSight
        self.sandboxAllowed = sandboxAllowed
        self.turn = turn
    }
}
