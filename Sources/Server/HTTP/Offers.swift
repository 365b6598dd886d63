import Hummingbird
import JSON
import Subscriptions
import Tracking

/// `GET …/products` and `POST …/offers:sign`: what a customer can be offered, and the signature that Apple wants for it.
/// Neither writes anything.
struct OfferRoutes: Sendable {
    let ledger: SubscriptionLedger
    let apps: KnownApps
    let limits: ServerLimits

    func addRoutes(to routes: KeyedRoutes) {
        routes.ofApp(needing: .read, query: ["customer", "device"]).get("/v1/apps/{bundle}/products", use: list)
        routes.ofApp(needing: .write).post("/v1/apps/{bundle}/offers:sign", use: sign)
    }

    private func list(_ request: Request, _ context: AppContext) async throws -> Response {
        try await apps.require(context.bundleID)
        let query = request.uri.queryParameters
        let products = try await ledger.offers.products(
            for: query.get("customer"), on: query.get("device"), of: context.bundleID)
        return Response(["products": .array(products.map(\.json))])
    }

    private func sign(_ request: Request, _ context: AppContext) async throws -> Response {
        let body = try await limits.json(SignBody.self, of: request)
        try await apps.require(context.bundleID)
        guard let form = OfferForm(rawValue: body.form) else {
            throw Problem(.invalid, "The body's form is classic or jws.")
        }
        let answer = try await ledger.offers.sign(
            body.offerID, of: ProductID(body.productID), for: body.customer, order: body.order, as: form,
            app: context.bundleID)
        return Response(answer.json)
    }
}

private struct SignBody: KnownFields {
    let customer: String
    let productID: String
    let offerID: String
    let order: String?
    let form: String

    enum CodingKeys: String, CodingKey, CaseIterable {
        case customer
        case productID = "product_id"
        case offerID = "offer_id"
        case order, form
    }
}

extension ProductOnOffer {
    fileprivate var json: JSONValue {
        [
            "product_id": .string(product.id.text),
            "kind": .optional(product.kind?.rawValue),
            "group": .optional(product.group),
            "level": .optional(product.level.map { Int64($0) }),
            "period": .optional(product.period),
            "owned": .bool(isOwned),
            "credit": .optional(product.credit?.name),
            "units": .optional(product.credit.map { Int64($0.units) }),
            "replaces": .optional(replaces?.text),
            "introductory_eligible": .optional(isIntroductoryEligible),
            "offers": .array(offers.map(\.json)),
        ]
    }
}

extension ProductOnOffer.Offer {
    fileprivate var json: JSONValue {
        ["offer_id": .string(id), "eligible": .bool(refusal == nil), "reason": .optional(refusal?.rawValue)]
    }
}

extension OfferAnswer {
    /// The answer as the route reports it: every key, null where there is nothing to say.
    fileprivate var json: JSONValue {
        let (signature, refusal): (OfferSignature?, OfferRefusal?) =
            switch self {
            case .signed(let signature): (signature, nil)
            case .refused(let refusal): (nil, refusal)
            }
        return [
            "eligible": .bool(refusal == nil),
            "reason": .optional(refusal?.rawValue),
            "key_id": .optional(signature?.keyID),
            "nonce": .optional(signature?.nonce),
            "timestamp": .optional(signature?.signedAt.milliseconds),
            "signature": .optional(signature?.form == .classic ? signature?.text : nil),
            "app_account_token": .optional(signature?.appAccountToken),
            "jws": .optional(signature?.form == .jws ? signature?.text : nil),
        ]
    }
}
