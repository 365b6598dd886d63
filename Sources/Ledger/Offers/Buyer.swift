import Postgres
import Subscriptions

/// What counts for what a customer is offered. A newcomer has no holdings.
struct Buyer: Sendable {
    /// The most holdings that are looked at.
    static let holdingsMax: Int32 = 1_000

    /// The database's clock.
    let now: Instant
    /// Subscriptions, the customer's own ones first, production before the sandbox, the newest purchase first.
    let holdings: [Holding]
    /// The non-consumables that the customer owns, and the non-renewing subscriptions that run.
    var bought: Set<ProductID> = []

    /// The subscriptions that the customer owns.
    var own: [Holding] { holdings.filter(\.isOwn) }

    /// What other customers on the same Apple account subscribe or subscribed to.
    ///
    /// A receipt that the customer sent shows everything of the account. Where none shows another customer, those count
    /// who ordered from the same device.
    var ofAnother: [Holding] {
        let others = holdings.filter(\.isOfAnother)
        let shown = others.filter(\.isInReceipt)
        return shown.isEmpty ? others : shown
    }
}

/// A subscription that counts for what a customer is offered, or another customer's non-renewing one.
struct Holding: Sendable, Hashable {
    /// Whether the customer owns it.
    var isOwn: Bool
    /// Whether another customer owns it.
    var isOfAnother: Bool
    /// Whether it is in a receipt that the customer sent.
    var isInReceipt: Bool
    /// The product of the running or last period.
    var product: ProductID
    /// Whether it gives access, or is in grace or billing retry.
    var isCurrent: Bool
    /// Whether a family member shares its running or last period: the Apple account did not buy it.
    var isShared: Bool
    /// The products of all its periods.
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
    /// Reads a buyer from rows, at least one.
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
        product = ProductID(try row.text("product_id"))
        isCurrent = try row.bool("is_current")
        isShared = try row.bool("is_shared")
        products = Set(try row.texts("product_ids").map { ProductID($0) })
        groups = Set(try row.texts("group_ids"))
        hadIntroductory = try row.bool("had_introductory")
        redeemed = Set(try row.texts("offer_ids"))
        transactionID = try row.textIfPresent("transaction_id")
    }
}
