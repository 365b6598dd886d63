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
            let submission = try body.submission(for: context.bundleID)
            return try await answer(to: submission, asking: try body.question, of: .key(context.key.id))
        }
    }

    private func answer(
        to submission: Submission, asking question: UploadQuestion, of actor: Actor
    ) async throws -> Response {
        let order = { try await self.order(question.orderID, of: submission.bundleID) }
        switch try await submitted(submission, by: actor) {
        case .pending(let receiptID, let reason):
            // The reason may name the database. The caller only needs to know that the receipt is stored.
            tracker.logger.debug("a receipt waits", metadata: ["receipt": "\(receiptID)", "reason": "\(reason)"])
            return accepted(
                submission, receiptID, outcome: "pending",
                reason: "Apple has not answered yet; it will be asked again.", .pending(order: try await order()))
        case .settled(let settled, let customer):
            switch settled.outcome {
            case .verified: return try await verified(submission, question, settled, of: customer)
            case .rejected where try await isPaused(submission.bundleID):
                let reason =
                    settled.reason ?? "Apple refused the app's shared secret; the receipt will be asked about again."
                return accepted(
                    submission, settled.receiptID, outcome: "pending", reason: reason,
                    .pending(order: try await order()))
            case .rejected: throw rejected(submission, settled, .refused(settled.refusal, order: try await order()))
            case .indeterminate:
                let reason = settled.reason ?? "Apple's answer says nothing about the receipt; it will be asked again."
                return accepted(
                    submission, settled.receiptID, outcome: settled.outcome.rawValue, reason: reason,
                    .pending(order: try await order()))
            }
        }
    }

    private func order(_ id: String?, of bundleID: BundleID) async throws -> Order? {
        guard let id else { return nil }
        return try await tracker.ledger.orders.read(id, of: bundleID)
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

    /// Answers about a receipt that Apple vouches for. Where it lacks what the device has just bought, Apple is asked
    /// once more after a while: its answers lag behind the purchase.
    private func verified(
        _ submission: Submission, _ question: UploadQuestion, _ settled: Settled, of customer: String
    ) async throws -> Response {
        var (settled, result) = (settled, try await result(question, submission, settled))
        if result.word == .absent {
            try await Task.sleep(for: .seconds(limits.absentSeconds))
            if let again = try? await tracker.check(settled.receiptID), again.outcome == .verified { settled = again }
            result = try await self.result(question, submission, settled)
        }
        let entitlements = try await tracker.ledger.customers.entitlements(
            app: submission.bundleID, customer: submission.customer, fromPrimary: true)
        let members = result.members
        let text = JSONText {
            $0.member("advice", members["advice"] ?? .null)
            $0.member("app", submission.bundleID.text)
            $0.member("customer", submission.customer)
            $0.member("deliveries", members["deliveries"] ?? [])
            $0.member("entitlements", each: entitlements) { $0.write($1) }
            $0.member("may_finish", members["may_finish"] ?? [])
            $0.member("may_finish_restored", members["may_finish_restored"] ?? [])
            $0.member("next_check_at", settled.nextCheckAt)
            $0.member("order", members["order"] ?? .null)
            $0.member("outcome", settled.outcome.rawValue)
            $0.member("purchases", members["purchases"] ?? [])
            $0.member("receipt_id", settled.receiptID.description)
            $0.member("result", members["result"] ?? .null)
            $0.member("retry_after_s", members["retry_after_s"] ?? .null)
            $0.member("subscriptions", .array(settled.subscriptions.map { $0.json(for: customer) }))
        }
        return Response(text, status: result.word == .absent ? .accepted : .ok)
    }

    private func result(
        _ question: UploadQuestion, _ submission: Submission, _ settled: Settled
    ) async throws -> UploadResult {
        let contents = try await tracker.ledger.intake.purchases(
            in: settled.receiptID, of: submission.bundleID, for: submission.customer)
        return UploadResult(
            question, in: contents, order: try await order(question.orderID, of: submission.bundleID))
    }

    private func accepted(
        _ submission: Submission, _ receiptID: ReceiptID, outcome: String, reason: String, _ result: UploadResult
    ) -> Response {
        let own: [String: JSONValue] = [
            "app": .string(submission.bundleID.text),
            "customer": .string(submission.customer),
            "receipt_id": .string(receiptID.description),
            "outcome": .string(outcome),
            "reason": .string(reason),
        ]
        return Response(
            .object(own.merging(result.members) { own, _ in own }), status: .accepted,
            headers: [.location: GetReceipt.path(of: receiptID, in: submission.bundleID)])
    }

    private func rejected(_ submission: Submission, _ settled: Settled, _ result: UploadResult) -> Problem {
        Problem(
            .receiptRejected, settled.reason ?? "Apple does not vouch for the receipt.",
            headers: [.location: GetReceipt.path(of: settled.receiptID, in: submission.bundleID)],
            members: result.members.merging([
                "receipt_id": .string(settled.receiptID.description),
                "outcome": .string(settled.outcome.rawValue),
            ]) { _, own in own })
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
        /// Why the device sends it; `launch` if absent.
        let purpose: String?
        /// The order whose payment the device waits for.
        let order: String?
        /// The transaction that the device waits for.
        let forTransactionID: String?

        enum CodingKeys: String, CodingKey, CaseIterable {
            case customer, receipt, storefront, price, currency, purpose, order
            case forTransactionID = "for_transaction_id"
        }

        /// What the device asks. Throws a problem for an unknown purpose, and for a purchase that names nothing.
        var question: UploadQuestion {
            get throws {
                guard let purpose = UploadPurpose(rawValue: purpose ?? "launch") else {
                    throw Problem(.invalid, "The body's purpose is purchase, launch or restore.")
                }
                guard purpose != .purchase || order != nil || forTransactionID != nil else {
                    throw Problem(.invalid, "A purchase names its order or its for_transaction_id.")
                }
                return UploadQuestion(purpose: purpose, orderID: order, transactionID: forTransactionID)
            }
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
