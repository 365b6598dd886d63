package import Subscriptions

/// One product of an app's catalog.
package struct CatalogProduct: Sendable, Hashable {
    /// What a consumable adds when it is delivered.
    package struct Credit: Sendable, Hashable {
        /// The largest number of units.
        package static let unitsMax: Int32 = 1_000_000_000

        /// The name of what it adds to, such as coins.
        package var name: String
        /// The number of units that one of it adds.
        package var units: Int32

        /// Creates a credit.
        package init(name: String, units: Int32) {
            (self.name, self.units) = (name, units)
        }
    }

    /// The place of a product among products that replace one another on sale.
    package struct Slot: Sendable, Hashable {
        /// The name of the slot.
        package var name: String
        /// The place; 1 is offered first.
        package var place: Int32

        /// Creates a place in a slot.
        package init(name: String, place: Int32) {
            (self.name, self.place) = (name, place)
        }
    }

    /// The product.
    package var id: ProductID
    /// What the product is; nil: the catalog does not say, so a purchase of it is kept for good and delivers nothing.
    package var kind: ProductKind?
    /// Its subscription group.
    package var group: String?
    /// Its level in the group; 1 is the highest, as in App Store Connect.
    package var level: Int32?
    /// Its period as an ISO 8601 duration, such as P1M; of a non-renewing subscription, how long one lasts.
    package var period: String?
    /// What a consumable adds; nil for every other kind.
    package var credit: Credit?
    /// What was bought before is not delivered; nil: before it got its kind.
    package var deliversSince: Instant?
    /// Its place among products that replace one another on sale.
    package var slot: Slot?
    /// Its price in thousandths of the currency's unit.
    package var priceMilliunits: Int64?
    /// The currency of the price.
    package var currency: String?
    /// The entitlements it grants.
    package var entitlements: [String]
    /// Its promotional offers.
    package var offers: [PromotionalOffer] = []

    /// Creates a product.
    package init(
        id: ProductID, kind: ProductKind? = nil, group: String? = nil, level: Int32? = nil, period: String? = nil,
        priceMilliunits: Int64? = nil, currency: String? = nil, entitlements: [String]
    ) {
        self.id = id
        self.kind = kind
        self.group = group
        self.level = level
        self.period = period
        self.priceMilliunits = priceMilliunits
        self.currency = currency
        self.entitlements = entitlements
    }
}

/// A promotional offer of a subscription, as App Store Connect has it.
package struct PromotionalOffer: Sendable, Hashable {
    /// Customers who may have an offer.
    package enum Audience: String, Sendable, CaseIterable {
        /// Who subscribes to a product of the app.
        case current
        /// Who subscribed to one, and subscribes to none of the product's group.
        case lapsed
    }

    /// The offer's identifier in App Store Connect.
    package var id: String
    /// Who may have it.
    package var audience: [Audience]
    /// When it may be signed first; nil: no such limit.
    package var from: Instant?
    /// When it may not be signed any more; nil: no such limit.
    package var until: Instant?
    /// Whether a customer may redeem it only once.
    package var once: Bool

    /// Creates an offer.
    package init(id: String, audience: [Audience], from: Instant? = nil, until: Instant? = nil, once: Bool = false) {
        self.id = id
        self.audience = audience
        self.from = from
        self.until = until
        self.once = once
    }
}
