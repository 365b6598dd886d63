import Postgres
import SQL
package import Subscriptions

/// A product that a customer can be offered.
package struct ProductOnOffer: Sendable, Hashable {
    /// A promotional offer of the product, and why the customer may not have it; nil: the customer may.
    package struct Offer: Sendable, Hashable {
        /// The offer's identifier in App Store Connect.
        package let id: String
        package let refusal: OfferRefusal?
    }

    package let product: CatalogProduct
    /// Whether the customer has it now: it runs (in grace and retry too), or is a non-consumable not taken back.
    package let isOwned: Bool
    /// The product of the customer's present subscription that a purchase of this one replaces.
    package let replaces: ProductID?
    /// Whether Apple gives the customer the introductory offer; nil where the product's group is unknown.
    package let isIntroductoryEligible: Bool?
    package let offers: [Offer]
}

/// Why a customer may not have a promotional offer; the raw value is the word that callers see.
package enum OfferRefusal: String, Sendable, CaseIterable {
    case ended
    case notBegun = "not_begun"
    /// The customer redeemed the offer, and may only once.
    case redeemed
    /// The customer never subscribed, and Apple gives promotional offers only to those who did.
    case neverSubscribed = "never_subscribed"
    /// The offer is for current subscribers, and the customer is none.
    case notCurrent = "not_current"
    /// The offer is for lapsed subscribers, and the customer is none.
    case notLapsed = "not_lapsed"
}

/// An app's catalog as one buyer sees it. All rules of what is on offer are here, as pure functions.
struct Shop: Sendable {
    private let catalog: [CatalogProduct]
    private let buyer: Buyer
    private let own: [Holding]
    private let taken: [Holding]
    private let groups: [ProductID: String]

    init(_ catalog: [CatalogProduct], for buyer: Buyer) {
        self.catalog = catalog
        self.buyer = buyer
        (own, taken) = (buyer.own, buyer.ofAnother)
        groups = catalog.reduce(into: [:]) { $0[$1.id] = $1.group }
    }

    /// The products with a kind; of each slot the first one that is free on the customer's Apple account.
    var productsOnOffer: [ProductOnOffer] {
        let sold = catalog.filter { $0.kind != nil }
        let free = sold.filter { !isTaken($0) }.sorted { ($0.slot?.place ?? 0) < ($1.slot?.place ?? 0) }
        let firsts = free.reduce(into: [String: ProductID]()) { firsts, product in
            guard let slot = product.slot, firsts[slot.name] == nil else { return }
            firsts[slot.name] = product.id
        }
        return sold.filter { product in product.slot.map { firsts[$0.name] == product.id } ?? true }.map { product in
            ProductOnOffer(
                product: product, isOwned: isOwned(product), replaces: replaced(by: product),
                isIntroductoryEligible: isIntroductoryEligible(for: product),
                offers: product.offers.map { .init(id: $0.id, refusal: refusal(of: $0, for: product)) })
        }
    }

    /// Why the customer may not have an offer of a product; nil: the customer may.
    func refusal(of offer: PromotionalOffer, for product: CatalogProduct) -> OfferRefusal? {
        if let until = offer.until, until <= buyer.now { return .ended }
        if let from = offer.from, buyer.now < from { return .notBegun }
        if offer.once, own.contains(where: { $0.redeemed.contains(offer.id) }) { return .redeemed }
        guard !own.isEmpty else { return .neverSubscribed }
        let mayHave = offer.audience.contains { audience in
            switch audience {
            case .current: own.contains(where: \.isCurrent)
            case .lapsed: isLapsed(for: product)
            }
        }
        if mayHave { return nil }
        return offer.audience.contains(.lapsed) ? .notLapsed : .notCurrent
    }

    /// Whether the customer had a subscription that ended, and has none that runs in the product's group.
    private func isLapsed(for product: CatalogProduct) -> Bool {
        own.contains { !$0.isCurrent } && !own.contains { $0.isCurrent && isAlike($0, product) }
    }

    /// Whether Apple would continue the subscription of another customer on the same Apple account.
    private func isTaken(_ product: CatalogProduct) -> Bool {
        taken.contains { isAlike($0, product) }
    }

    private func isOwned(_ product: CatalogProduct) -> Bool {
        buyer.bought.contains(product.id) || own.contains { $0.isCurrent && $0.product == product.id }
    }

    private func replaced(by product: CatalogProduct) -> ProductID? {
        guard product.kind == .autoRenewable else { return nil }
        let present = own.first { $0.isCurrent && !$0.isShared && isAlike($0, product) }?.product
        return present == product.id ? nil : present
    }

    /// Apple's rule: one introductory offer in a subscription group, for an Apple account, and none for who subscribes
    /// there. A receipt counts, whichever customer owns what it shows; what a family member shares does not.
    private func isIntroductoryEligible(for product: CatalogProduct) -> Bool? {
        guard product.kind == .autoRenewable else { return false }
        guard product.group != nil else { return nil }
        return !buyer.holdings.contains {
            ($0.isOwn || $0.isInReceipt) && ($0.hadIntroductory || $0.isCurrent && !$0.isShared)
                && isAlike($0, product)
        }
    }

    /// Whether a subscription is or was of the product, or is in its group, by Apple's word or the catalog's.
    private func isAlike(_ holding: Holding, _ product: CatalogProduct) -> Bool {
        if holding.products.contains(product.id) { return true }
        guard let group = product.group else { return false }
        return holding.groups.contains(group) || holding.products.contains { groups[$0] == group }
    }
}

extension LedgerOffers {
    /// Returns what an app offers a customer on a device, by product id; nil and an unknown customer get a newcomer's.
    /// Nothing is written. Throws `unknownApp` for an unknown app, `invalid` for what is no customer's or device's id.
    package func products(
        for customer: String?, on device: String?, of bundleID: BundleID
    ) async throws -> [ProductOnOffer] {
        if let customer { try Upload.requireValidCustomerID(customer) }
        if let device { try OrderRequest.requireValidDevice(device) }
        let hash = try device.map { device in
            guard let seal = ledger.seal else { throw LedgerError(.mismatch, "Devices need PERENNIAL_MASTER_KEY.") }
            return try seal.hash(device: device, of: bundleID)
        }
        async let catalog = catalog(of: bundleID, fromPrimary: false)
        let buyer = try await buyer(customer, deviceHash: hash, of: bundleID, fromPrimary: false)
        return Shop(try await catalog, for: buyer).productsOnOffer
    }

    /// Returns the catalog of an app; an unknown app has none.
    func catalog(of bundleID: BundleID, fromPrimary: Bool) async throws -> [CatalogProduct] {
        let app: [Parameter] = [.text(bundleID.text)]
        async let offers = read(Queries.listOffers, app, fromPrimary: fromPrimary)
        return try CatalogProduct.all(
            try await read(Queries.listProducts, app, fromPrimary: fromPrimary), offers: try await offers)
    }

    /// Returns what counts for what a customer is offered; throws `unknownApp` for an unknown app.
    func buyer(
        _ customer: String?, deviceHash: [UInt8]? = nil, of bundleID: BundleID, fromPrimary: Bool
    ) async throws -> Buyer {
        let rows = try await read(
            Queries.readBuyer,
            [.text(bundleID.text), .text(customer), .bytea(deviceHash), .int4(Buyer.holdingsMax)],
            fromPrimary: fromPrimary)
        guard let buyer = try Buyer(rows: rows) else {
            throw LedgerError.unknownApp(bundleID)
        }
        return buyer
    }
}

/// What counts for what a customer is offered. A newcomer has no holdings.
struct Buyer: Sendable {
    /// The most holdings that are looked at.
    static let holdingsMax: Int32 = 1_000

    let now: Instant
    /// Subscriptions, the customer's own ones first, production before the sandbox, the newest purchase first.
    let holdings: [Holding]
    /// The non-consumables that the customer owns, and the non-renewing subscriptions that run.
    var bought: Set<ProductID> = []

    var own: [Holding] { holdings.filter(\.isOwn) }

    /// What other customers on the same Apple account subscribe or subscribed to. A receipt that the customer sent shows
    /// everything of the account. Where none shows another customer, those count who ordered from the same device.
    var ofAnother: [Holding] {
        let others = holdings.filter(\.isOfAnother)
        let shown = others.filter(\.isInReceipt)
        return shown.isEmpty ? others : shown
    }
}

/// A subscription that counts for what a customer is offered, or another customer's non-renewing one.
struct Holding: Sendable, Hashable {
    var isOwn: Bool
    var isOfAnother: Bool
    /// Whether it is in a receipt that the customer sent.
    var isInReceipt: Bool
    /// The product of the running or last period.
    var product: ProductID
    /// Whether it gives access, or is in grace or billing retry.
    var isCurrent: Bool
    /// Whether a family member shares its running or last period: the Apple account did not buy it.
    var isShared: Bool
    var products: Set<ProductID>
    /// Its subscription group as Apple names it; no element where Apple does not.
    var groups: Set<String>
    /// Whether a period that no family member shared was a free trial or had an introductory price.
    var hadIntroductory: Bool
    /// The promotional offers that were redeemed, for the next period too.
    var redeemed: Set<String>
    /// A transaction of the newest period.
    var transactionID: String?
}

extension Buyer {
    init?(rows: [Row]) throws {
        guard let first = rows.first else { return nil }
        now = try first.instant("now")
        bought = Set(try first.texts("bought").map { ProductID($0) })
        holdings = try rows.filter { try $0.isNull("is_own") == false }.map(Holding.init(row:))
    }
}

extension Holding {
    fileprivate init(row: Row) throws {
        isOwn = try row.bool("is_own")
        isOfAnother = try row.bool("is_of_another")
        isInReceipt = try row.bool("in_receipt")
        product = try row.id("product_id")
        isCurrent = try row.bool("is_current")
        isShared = try row.bool("is_shared")
        products = Set(try row.texts("product_ids").map { ProductID($0) })
        groups = Set(try row.texts("group_ids"))
        hadIntroductory = try row.bool("had_introductory")
        redeemed = Set(try row.texts("offer_ids"))
        transactionID = try row.textIfPresent("transaction_id")
    }
}
