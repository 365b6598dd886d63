import Hummingbird
import Ledger
import Subscriptions
import Tracking

/// `POST /v1/apps/{bundle}/receipts`: stores a receipt, asks Apple at once, and returns the result.
struct PostReceipt: Sendable {
    let tracker: Tracker
    let limits: ServerLimits

    func addRoute(to routes: RouterGroup<KeyContext>) {
        routes.ofApp(needing: .write).post("/v1/apps/{bundle}/receipts") { request, context in
            let upload = try await limits.json(ReceiptUpload.self, of: request)
            try Upload.requireCustomer(upload.customer)
            return try await answer(to: upload.submission(for: context.bundleID), of: .key(context.key.id))
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
        try await tracker.ledger.app(bundleID).pause != nil
    }

    private func verified(
        _ submission: Submission, _ settled: Settled, of customer: String
    ) async throws -> Response {
        let entitlements = try await tracker.ledger.entitlements(
            app: submission.bundleID, customer: submission.customer, fromPrimary: true)
        return Response([
            "app": .string(submission.bundleID.text),
            "customer": .string(submission.customer),
            "receipt_id": .string(settled.receiptID.description),
            "outcome": .string(settled.outcome.rawValue),
            "subscriptions": .array(settled.subscriptions.map { $0.json(for: customer) }),
            "entitlements": .array(entitlements.map(\.json)),
            "next_check_at": .optional(settled.nextCheckAt?.iso8601),
        ])
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
