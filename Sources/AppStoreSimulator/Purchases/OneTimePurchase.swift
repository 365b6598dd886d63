import Foundation

/// What is to be bought: a one-time product, how many pieces of it, and for whom.
struct PurchaseOrder: Sendable {
    let product: OneTimeProduct
    var quantity = PurchaseQuantity.one
    var buyer = Buyer()
}

/// A purchase that waits for the approval of the family organiser.
struct PendingPurchase: Sendable {
    let id: String
    let askedAt: StoreTime
    let order: PurchaseOrder
}

/// One purchase of a one-time product. The later events of a drawn one are decided at the purchase.
struct OneTimePurchase: Sendable {
    struct Refund: Sendable {
        let at: StoreTime
        var reversedAt: StoreTime?

        func isInEffect(at moment: StoreTime) -> Bool { at <= moment && reversedAt.map { $0 > moment } ?? true }
    }

    /// The number of the purchase in its account, from 0; the row's id derives from it.
    let ordinal: Int
    var order: PurchaseOrder
    /// When the store first showed it.
    let bookedAt: StoreTime
    var refunds: [Refund] = []
    /// When the app finished it: Apple does not list a consumable from then on.
    var finishedAt: StoreTime?

    var product: OneTimeProduct { order.product }
    var buyer: Buyer { order.buyer }

    var at: StoreTime { bookedAt.wholeSecond }

    /// Returns whether Apple lists it: a consumable only until the app has finished it.
    func isListed(at moment: StoreTime) -> Bool {
        bookedAt <= moment && (product.kind != .consumable || finishedAt.map { $0 > moment } ?? true)
    }

    /// Returns the date of the refund in effect at an instant.
    func refund(asOf moment: StoreTime) -> StoreTime? { refunds.last { $0.isInEffect(at: moment) }?.at }

    /// Returns when what Apple signs about it last changed until an instant.
    func modifiedAt(asOf moment: StoreTime) -> StoreTime {
        let changes = refunds.flatMap { [$0.at, $0.reversedAt ?? $0.at] }.filter { $0 <= moment }
        return changes.reduce(bookedAt) { max($0, $1) }
    }

    /// Returns the first later instant at which Apple's response about it changes.
    func nextChange(after moment: StoreTime) -> StoreTime? {
        (refunds.map(\.at) + [finishedAt].compactMap { $0 }).filter { $0 > moment }.min()
    }
}

/// A product that does not renew.
package enum OneTimeProduct: String, Codable, Sendable, CaseIterable {
    /// A non-consumable: owned permanently.
    case lifetime
    /// A consumable: once the app finished it, it disappears from Apple's responses.
    case coins
    /// A non-renewing subscription: Apple gives it no expiry and lists it permanently.
    case season

    func identifier(in bundleID: String) -> String { bundleID + "." + rawValue }

    var kind: DeliveryKind {
        switch self {
        case .lifetime: .nonConsumable
        case .coins: .consumable
        case .season: .nonRenewing
        }
    }
}

/// What kind of product was bought.
package enum DeliveryKind: String, Codable, Sendable, CaseIterable {
    /// Used up by the app.
    case consumable
    /// Owned permanently, and restored on other devices.
    case nonConsumable = "non_consumable"
    /// Lasts as long as the app says.
    case nonRenewing = "non_renewing"
    /// Renews by itself.
    case subscription
}

/// How many pieces of a product one purchase has: 1 to 10, as Apple allows.
package struct PurchaseQuantity: Codable, Sendable, Hashable {
    package static let one = PurchaseQuantity(count: 1)

    package let count: Int

}

extension PurchaseQuantity {
    /// Creates a quantity; nil for a number that Apple refuses.
    package init?(_ count: Int) {
        guard (1...10).contains(count) else { return nil }
        self.count = count
    }

    package init(from decoder: any Decoder) throws {
        self = try decoder.value("a purchase has 1 to 10 pieces") { PurchaseQuantity($0) }
    }

    package func encode(to encoder: any Encoder) throws { try count.encode(to: encoder) }
}

extension Decoder {
    /// Reads a single value; `rule` is what one breaks that `made` refuses.
    fileprivate func value<Raw: Decodable, Value>(_ rule: String, _ made: (Raw) -> Value?) throws -> Value {
        let value = try singleValueContainer()
        guard let found = made(try value.decode(Raw.self)) else {
            throw DecodingError.dataCorruptedError(in: value, debugDescription: rule)
        }
        return found
    }
}

/// The customer who made a purchase, and the token the app passed with it.
struct Buyer: Sendable {
    var seat = Seat.first
    /// Nil when the purchase names none; a first customer then has the token of the account, if the app passes tokens.
    var token: AccountToken?
}

/// The `app_account_token` that an app passes with a purchase: a UUID. Apple returns it in lower case.
package struct AccountToken: Codable, Sendable, Hashable {
    /// The UUID in lower case.
    package let text: String

    /// Reads a UUID in any case; nil for any other text.
    package init?(_ text: String) {
        guard let uuid = UUID(uuidString: text) else { return nil }
        self.text = uuid.uuidString.lowercased()
    }

    package init(from decoder: any Decoder) throws {
        self = try decoder.value("a token is a UUID") { AccountToken($0) }
    }

    package func encode(to encoder: any Encoder) throws { try text.encode(to: encoder) }
}

/// What restores do to one-time purchases: a non-consumable gets a new row, a consumable does not come back.
extension Account {
    /// Returns whether the device's receipt lists a purchase.
    func holds(_ purchase: OneTimePurchase, in receipt: ReceiptIdentity) -> Bool {
        guard purchase.isListed(at: receipt.creation) else { return false }
        guard purchase.product.kind == .consumable, let restoredAt = restoredAt(receipt) else { return true }
        return purchase.bookedAt >= restoredAt
    }

    /// Returns when the device of a receipt restored a purchase; nil where the receipt shows it as it was made.
    func restored(_ purchase: OneTimePurchase, in receipt: ReceiptIdentity) -> StoreTime? {
        guard purchase.product.kind == .nonConsumable, let restoredAt = restoredAt(receipt) else { return nil }
        return purchase.bookedAt <= restoredAt ? restoredAt : nil
    }

    /// Returns when the device of a receipt restored: where the script does not say, when the receipt was written.
    private func restoredAt(_ receipt: ReceiptIdentity) -> StoreTime? {
        switch receipt.restore {
        case 0: nil
        case 1 where script.hasRestored: min(firstReceiptCreation, receipt.creation)
        case Seat.secondRestore: min(secondCustomerAt ?? receipt.creation, receipt.creation)
        default: receipt.creation
        }
    }
}
