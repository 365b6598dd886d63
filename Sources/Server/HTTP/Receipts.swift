import Hummingbird
import JSON
import Logging
import Subscriptions
import Tracking

/// `POST /v1/apps/{bundle}/receipts`: stores a receipt, asks Apple at once, and returns the result.
struct PostReceipt: Sendable {
    let uploads: ReceiptUploads

    func addRoute(to routes: KeyedRoutes) {
        routes.ofApp(needing: .write).post("/v1/apps/{bundle}/receipts") { request, context in
            let body = try await uploads.limits.json(Body.self, of: request)
            try Upload.requireValidCustomerID(body.customer)
            var submission = try body.submission(for: context.bundleID)
            let question = try body.question(about: context.bundleID)
            submission.order = try await reference(question)
            let answer = try await uploads.answer(to: submission, asking: question, by: .key(context.key.id))
            return try await response(to: question, answer)
        }
    }

    /// Returns the order that the sender names. Throws a problem where the customer has no such order.
    private func reference(_ question: UploadQuestion) async throws -> OrderReference? {
        guard let id = question.orderID else { return nil }
        let orders = uploads.tracker.ledger.orders
        guard let order = try await orders.read(id, of: question.bundleID, orderedBy: question.customer) else {
            throw Problem(.notFound, "The customer has no order \(id).")
        }
        return OrderReference(
            id: order.id, isProved: false, transactionID: question.transactionID.map { TransactionID($0) })
    }

    private func response(to question: UploadQuestion, _ answer: UploadAnswer) async throws -> Response {
        switch answer {
        case .verified(let settled, let owner, let result):
            return try await verified(question, settled, of: owner ?? question.customer, result)
        case .waiting(let receiptID, let outcome, let reason, let result):
            return accepted(question, receiptID, outcome: outcome, reason: reason, result)
        case .rejected(let settled, let result):
            let path = GetReceipt.path(of: settled.receiptID, in: question.bundleID)
            throw Problem(rejecting: settled, result.members, headers: [.location: path])
        }
    }

    private func verified(
        _ question: UploadQuestion, _ settled: Settled, of owner: String, _ result: UploadResult
    ) async throws -> Response {
        let entitlements = try await uploads.tracker.ledger.customers.entitlements(
            app: question.bundleID, customer: question.customer, fromPrimary: true)
        let members = result.members
        let text = JSONText {
            $0.member("advice", members["advice"] ?? .null)
            $0.member("app", question.bundleID.text)
            $0.member("customer", question.customer)
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
        guard result.word == .absent else { return Response(text) }
        let path = GetReceipt.path(of: settled.receiptID, in: question.bundleID)
        return Response(text, status: .accepted, headers: [.location: path])
    }

    private func accepted(
        _ question: UploadQuestion, _ receiptID: ReceiptID, outcome: String, reason: String, _ result: UploadResult
    ) -> Response {
        let own: [String: JSONValue] = [
            "app": .string(question.bundleID.text), "customer": .string(question.customer),
            "receipt_id": .string(receiptID.description), "outcome": .string(outcome), "reason": .string(reason),
        ]
        return Response(
            .object(own.merging(result.members) { own, _ in own }), status: .accepted,
            headers: [.location: GetReceipt.path(of: receiptID, in: question.bundleID)])
    }
}

extension PostReceipt {
    struct Body: KnownFields {
        /// The operator's own id of the customer.
        let customer: String
        /// The receipt in base64, in the form that the device gave.
        let receipt: String?
        /// A signed transaction of StoreKit 2 in compact form.
        let signedTransaction: String?
        let transactionID: String?
        let storefront: String?
        let price: Milliunits?
        /// The currency of that price, ISO 4217.
        let currency: String?
        /// Why the device sends it; `launch` if absent.
        let purpose: String?
        let order: String?
        let forTransactionID: String?

        enum CodingKeys: String, CodingKey, CaseIterable {
            case customer, receipt, storefront, price, currency, purpose, order
            case signedTransaction = "signed_transaction"
            case transactionID = "transaction_id"
            case forTransactionID = "for_transaction_id"
        }

        /// Returns what the device asks. Throws a problem for an unknown purpose, or a purchase that names nothing.
        func question(about bundleID: BundleID) throws -> UploadQuestion {
            guard let purpose = UploadPurpose(rawValue: purpose ?? "launch") else {
                throw Problem(.invalid, "The body's purpose is purchase, launch or restore.")
            }
            guard purpose != .purchase || order != nil || forTransactionID != nil else {
                throw Problem(.invalid, "A purchase names its order or its for_transaction_id.")
            }
            guard forTransactionID?.isVisibleASCII(bytesMax: Self.transactionBytesMax) ?? true else {
                throw Problem(.invalid, "The body's for_transaction_id is not an id of Apple's.")
            }
            return UploadQuestion(
                bundleID: bundleID, customer: customer, purpose: purpose, orderID: order,
                transactionID: forTransactionID)
        }

        private static let storefrontBytesMax = 32
        private static let transactionBytesMax = 64

        /// Returns the submission for an app. Throws a problem when a field cannot be stored.
        func submission(for bundleID: BundleID) throws -> Submission {
            let currency = try currency?.asCurrency()
            guard storefront?.isVisibleASCII(bytesMax: Self.storefrontBytesMax) ?? true else {
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
                priceMilliunits: price?.count, currency: currency)
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

extension Problem {
    /// Creates the problem of a receipt that Apple does not vouch for, with what its sender may know.
    init(rejecting settled: Settled, _ members: [String: JSONValue], headers: HTTPFields = [:]) {
        let own: [String: JSONValue] = [
            "receipt_id": .string(settled.receiptID.description), "outcome": .string(settled.outcome.rawValue),
        ]
        self.init(
            .receiptRejected, settled.reason ?? "Apple does not vouch for the receipt.", headers: headers,
            members: own.merging(members) { own, _ in own })
    }
}

/// `GET /v1/apps/{bundle}/receipts/{id}`: the status of one stored receipt, never the receipt itself.
struct GetReceipt: Sendable {
    let ledger: SubscriptionLedger
    let apps: KnownApps

    func addRoute(to routes: KeyedRoutes) {
        routes.ofApp(needing: .read).get("/v1/apps/{bundle}/receipts/{id}") { _, context in
            try await apps.require(context.bundleID)
            let id = try context.parameters.decoded("id")
            guard let number = Int64.ofDigits(id),
                let receipt = try await ledger.customers.receipts(
                    app: context.bundleID, id: ReceiptID(number), limit: 1
                ).first
            else { throw Problem(.notFound, "The app \(context.bundleID) has no receipt \(id).") }
            return Response(receipt.json)
        }
    }

    /// Returns the path of a receipt, as `Location` names it.
    static func path(of receiptID: ReceiptID, in bundleID: BundleID) -> String {
        "/v1/apps/\(bundleID.text.percentEncoded)/receipts/\(receiptID)"
    }
}

extension StoredReceipt {
    /// The receipt as GET receipts reports it; its outcome is `pending` until Apple's first answer.
    var json: JSONValue {
        [
            "receipt_id": .string(id.description),
            "app": .string(bundleID.text),
            "customers": .array(customers.map { .string($0) }),
            "subscriptions": .array(subscriptions.map { .string($0.text) }),
            "form": .string(form.rawValue),
            "vouching": .string(vouching.rawValue),
            "environment": .optional(environment?.rawValue),
            "outcome": .string(outcome ?? "pending"),
            "reason": .optional(reason),
            "received_at": .string(receivedAt.iso8601),
            "asked_at": .optional(askedAt?.iso8601),
            "verified_at": .optional(verifiedAt?.iso8601),
            "next_check_at": .optional(nextCheckAt?.iso8601),
        ]
    }
}
