import Hummingbird
import Ledger
import Logging
import Subscriptions
import Tracking

/// `POST /v1/apps/{bundle}/receipts`: stores a receipt, asks Apple at once, and returns the result.
struct PostReceipt: Sendable {
    let tracker: Tracker
    let limits: ServerLimits

    func addRoute(to routes: RouterGroup<KeyContext>) {
        routes.ofApp(needing: .write).post("/v1/apps/{bundle}/receipts") { request, context in
            let body = try await limits.json(Body.self, of: request)
            try Upload.requireValidCustomerID(body.customer)
            return try await answer(to: body.submission(for: context.bundleID), of: .key(context.key.id))
        }
    }

    private func answer(to submission: Submission, of actor: Actor) async throws -> Response {
        switch try await submitted(submission, by: actor) {
        case .pending(let receiptID, let reason):
            // The reason may name the database. The caller only needs to know that the receipt is stored.
            tracker.logger.debug("a receipt waits", metadata: ["receipt": "\(receiptID)", "reason": "\(reason)"])
            return accepted(
                submission, receiptID, outcome: "pending", reason: "Apple has not answered yet; it will be asked again."
            )
        case .settled(let settled, let customer):
            switch settled.outcome {
            case .verified: return try await verified(submission, settled, of: customer)
            case .rejected where try await isPaused(submission.bundleID):
                let reason =
                    settled.reason ?? "Apple refused the app's shared secret; the receipt will be asked about again."
                return accepted(submission, settled.receiptID, outcome: "pending", reason: reason)
            case .rejected: throw rejected(submission, settled)
            case .indeterminate:
                let reason = settled.reason ?? "Apple's answer says nothing about the receipt; it will be asked again."
                return accepted(submission, settled.receiptID, outcome: settled.outcome.rawValue, reason: reason)
            }
        }
    }

    private func submitted(_ submission: Submission, by actor: Actor) async throws -> SubmissionAnswer {
        do {
            return try await tracker.acting(as: actor).submit(submission, within: limits.submission)
        } catch let error as LedgerError where error.kind == .notFound {
            throw Problem.unknownApp(submission.bundleID.text)
        }
    }

    /// Returns whether the app's checks are paused. Then Apple refused our secret (21004), which says nothing about the
    /// receipt.
    private func isPaused(_ bundleID: BundleID) async throws -> Bool {
        try await tracker.ledger.apps.app(bundleID).pause != nil
    }

    private func verified(
        _ submission: Submission, _ settled: Settled, of customer: String
    ) async throws -> Response {
        let entitlements = try await tracker.ledger.customers.entitlements(
            app: submission.bundleID, customer: submission.customer, fromPrimary: true)
        return Response(
            JSONText {
                $0.member("app", submission.bundleID.text)
                $0.member("customer", submission.customer)
                $0.member("entitlements", each: entitlements) { $0.write($1) }
                $0.member("next_check_at", settled.nextCheckAt)
                $0.member("outcome", settled.outcome.rawValue)
                $0.member("receipt_id", settled.receiptID.description)
                $0.member("subscriptions", .array(settled.subscriptions.map { $0.json(for: customer) }))
            })
    }

    private func accepted(
        _ submission: Submission, _ receiptID: ReceiptID, outcome: String, reason: String
    ) -> Response {
        Response(
            [
                "app": .string(submission.bundleID.text),
                "customer": .string(submission.customer),
                "receipt_id": .string(receiptID.description),
                "outcome": .string(outcome),
                "reason": .string(reason),
            ],
            status: .accepted, headers: [.location: GetReceipt.path(of: receiptID, in: submission.bundleID)])
    }

    private func rejected(_ submission: Submission, _ settled: Settled) -> Problem {
        Problem(
            .receiptRejected, settled.reason ?? "Apple does not vouch for the receipt.",
            headers: [.location: GetReceipt.path(of: settled.receiptID, in: submission.bundleID)],
            members: [
                "receipt_id": .string(settled.receiptID.description),
                "outcome": .string(settled.outcome.rawValue),
            ])
    }
}

extension PostReceipt {
    /// The body of the request.
    struct Body: KnownFields {
        /// The operator's own id of the customer.
        let customer: String
        /// The receipt in base64, in the form that the device gave.
        let receipt: String
        /// The storefront the device saw.
        let storefront: String?
        /// The price the device saw.
        let price: Milliunits?
        /// The currency of that price, ISO 4217.
        let currency: String?

        enum CodingKeys: CodingKey, CaseIterable {
            case customer, receipt, storefront, price, currency
        }

        private static let storefrontCharactersMax = 32

        /// Returns the submission for an app. Throws a problem when a field cannot be stored.
        func submission(for bundleID: BundleID) throws -> Submission {
            guard currency.map(Self.isCurrency) ?? true else {
                throw Problem(.invalid, "The body's currency is not an ISO 4217 code of three letters, like USD.")
            }
            guard storefront.map(Self.isStorefront) ?? true else {
                throw Problem(
                    .invalid, "The body's storefront is not a storefront of the App Store, like USA or 143441.")
            }
            return Submission(
                bundleID: bundleID, customer: customer, receipt: receipt, storefront: storefront,
                priceMilliunits: price?.count, currency: currency?.uppercased())
        }

        private static func isCurrency(_ text: String) -> Bool {
            text.utf8.count == 3 && text.utf8.allSatisfy { (UInt8(ascii: "a")...UInt8(ascii: "z")).contains($0 | 0x20) }
        }

        private static func isStorefront(_ text: String) -> Bool {
            (1...storefrontCharactersMax).contains(text.utf8.count)
                && text.utf8.allSatisfy { (0x21...0x7E).contains($0) }
        }
    }
}

extension Settled.SubscriptionOutcome {
    /// Returns the subscription as POST receipts reports it to the customer who sent the receipt.
    func json(for customer: String) -> JSONValue {
        [
            "original_transaction_id": .string(id.text),
            "environment": .string(environment.rawValue),
            "product_id": .string(verdict.productID.text),
            "state": .string(verdict.state.rawValue),
            "reason": .optional(verdict.reason?.rawValue),
            "entitled": .bool(verdict.entitled),
            "expires_at": .optional(verdict.expiresAt.iso8601),
            "entitled_until": .optional(verdict.entitledUntil?.iso8601),
            "flags": .array(verdict.flags.map { .string($0.rawValue) }),
            "ownership": ownership[AppCustomerID(customer)]?.json ?? nil,
        ]
    }
}

extension OwnershipAnswer {
    /// The result of the customer's claim, with the reason of a refusal.
    var json: JSONValue {
        switch self {
        case .held: ["answer": "held", "reason": nil]
        case .assigned: ["answer": "assigned", "reason": nil]
        case .transferred: ["answer": "transferred", "reason": nil]
        case .refused(let reason): ["answer": "refused", "reason": .string(reason)]
        }
    }
}
