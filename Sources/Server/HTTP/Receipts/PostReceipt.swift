import Hummingbird
import Ledger
import Subscriptions
import Tracking

/// `POST /v1/apps/{bundle}/receipts`: stores a receipt, asks Apple at once, and returns the result.
struct PostReceipt: Sendable {
    let uploads: ReceiptUploads

    func addRoute(to routes: RouterGroup<KeyContext>) {
        routes.ofApp(needing: .write).post("/v1/apps/{bundle}/receipts") { request, context in
            let body = try await uploads.limits.json(Body.self, of: request)
            try Upload.requireValidCustomerID(body.customer)
            var submission = try body.submission(for: context.bundleID)
            let question = try body.question
            submission.order = try await reference(question, of: body.customer, in: context.bundleID)
            let answer = try await uploads.answer(
                to: submission, of: body.customer, asking: question, by: .key(context.key.id))
            return try await response(to: submission, body.customer, answer)
        }
    }

    /// Returns the order that the sender names. Throws a problem where the customer has no such order.
    private func reference(
        _ question: UploadQuestion, of customer: String, in bundleID: BundleID
    ) async throws -> OrderReference? {
        guard let id = question.orderID else { return nil }
        guard let order = try await uploads.tracker.ledger.orders.read(id, of: bundleID, orderedBy: customer) else {
            throw Problem(.notFound, "The customer has no order \(id).")
        }
        return OrderReference(
            id: order.id, isProved: false, transactionID: question.transactionID.map { TransactionID($0) })
    }

    private func response(to submission: Submission, _ customer: String, _ answer: UploadAnswer) async throws
        -> Response
    {
        switch answer {
        case .verified(let settled, let owner, let result):
            return try await verified(submission, customer, settled, of: owner ?? customer, result)
        case .waiting(let receiptID, let outcome, let reason, let result):
            return accepted(submission, customer, receiptID, outcome: outcome, reason: reason, result)
        case .rejected(let settled, let result):
            throw Problem(
                .receiptRejected, settled.reason ?? "Apple does not vouch for the receipt.",
                headers: [.location: GetReceipt.path(of: settled.receiptID, in: submission.bundleID)],
                members: result.members.merging([
                    "receipt_id": .string(settled.receiptID.description),
                    "outcome": .string(settled.outcome.rawValue),
                ]) { _, own in own })
        }
    }

    private func verified(
        _ submission: Submission, _ customer: String, _ settled: Settled, of owner: String, _ result: UploadResult
    ) async throws -> Response {
        let entitlements = try await uploads.tracker.ledger.customers.entitlements(
            app: submission.bundleID, customer: customer, fromPrimary: true)
        let members = result.members
        let text = JSONText {
            $0.member("advice", members["advice"] ?? .null)
            $0.member("app", submission.bundleID.text)
            $0.member("customer", customer)
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
            $0.member("subscriptions", .array(settled.subscriptions.map { $0.json(for: owner) }))
            $0.member("vouching", settled.vouching.rawValue)
        }
        return Response(text, status: result.word == .absent ? .accepted : .ok)
    }

    private func accepted(
        _ submission: Submission, _ customer: String, _ receiptID: ReceiptID, outcome: String, reason: String,
        _ result: UploadResult
    ) -> Response {
        let own: [String: JSONValue] = [
            "app": .string(submission.bundleID.text),
            "customer": .string(customer),
            "receipt_id": .string(receiptID.description),
            "outcome": .string(outcome),
            "reason": .string(reason),
        ]
        return Response(
            .object(own.merging(result.members) { own, _ in own }), status: .accepted,
            headers: [.location: GetReceipt.path(of: receiptID, in: submission.bundleID)])
    }
}

extension PostReceipt {
    /// The body of the request.
    struct Body: KnownFields {
        /// The operator's own id of the customer.
        let customer: String
        /// The receipt in base64, in the form that the device gave.
        let receipt: String?
        /// A signed transaction of StoreKit 2 in compact form.
        let signedTransaction: String?
        /// The id of a transaction.
        let transactionID: String?
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
            case signedTransaction = "signed_transaction"
            case transactionID = "transaction_id"
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
                guard forTransactionID.map(Self.isTransactionID) ?? true else {
                    throw Problem(.invalid, "The body's for_transaction_id is not an id of Apple's.")
                }
                return UploadQuestion(purpose: purpose, orderID: order, transactionID: forTransactionID)
            }
        }

        private static let storefrontCharactersMax = 32
        /// The longest id of a transaction, in bytes.
        private static let transactionBytesMax = 64

        /// Returns the submission for an app. Throws a problem when a field cannot be stored.
        func submission(for bundleID: BundleID) throws -> Submission {
            guard currency.map(Self.isCurrency) ?? true else {
                throw Problem(.invalid, "The body's currency is not an ISO 4217 code of three letters, like USD.")
            }
            guard storefront.map(Self.isStorefront) ?? true else {
                throw Problem(
                    .invalid, "The body's storefront is not a storefront of the App Store, like USA or 143441.")
            }
            let subject = Submission.Subject(
                receipt: receipt, signedTransaction: signedTransaction, transactionID: transactionID)
            guard let subject else {
                throw Problem(.invalid, "The body has exactly one of receipt, signed_transaction and transaction_id.")
            }
            return Submission(
                bundleID: bundleID, customer: customer, subject: subject, storefront: storefront,
                priceMilliunits: price?.count, currency: currency?.uppercased())
        }

        private static func isCurrency(_ text: String) -> Bool {
            text.utf8.count == 3 && text.utf8.allSatisfy { (UInt8(ascii: "a")...UInt8(ascii: "z")).contains($0 | 0x20) }
        }

        private static func isTransactionID(_ text: String) -> Bool {
            (1...transactionBytesMax).contains(text.utf8.count) && text.utf8.allSatisfy { (0x21...0x7E).contains($0) }
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
