/// A product that does not renew, bought once or repeatedly.
package enum OneTimeProduct: String, Codable, Sendable, CaseIterable {
    /// A non-consumable: owned permanently.
    case lifetime
    /// A consumable: once used up it disappears from Apple's responses.
    case coins

    func identifier(in bundleID: String) -> String { bundleID + "." + rawValue }
}

/// One delivery of a one-time product. Its later events are decided at the purchase.
struct OneTimePurchase: Sendable {
    /// The number of the purchase in its account, from 0; the row's id derives from it.
    let ordinal: Int
    let product: OneTimeProduct
    /// When the store first showed it.
    let bookedAt: StoreTime
    var refundAt: StoreTime?
    /// When the app finished a consumable: Apple does not list it from then on.
    var finishedAt: StoreTime?

    /// Apple's purchase date.
    var at: StoreTime { bookedAt.wholeSecond }

    func isListed(at moment: StoreTime) -> Bool {
        guard bookedAt <= moment else { return false }
        return finishedAt.map { $0 > moment } ?? true
    }

    func refund(asOf moment: StoreTime) -> StoreTime? { refundAt.flatMap { $0 <= moment ? $0 : nil } }

    /// Returns the first later instant at which Apple's response about it changes.
    func nextChange(after moment: StoreTime) -> StoreTime? {
        [refundAt, finishedAt].compactMap { $0 }.filter { $0 > moment }.min()
    }
}
