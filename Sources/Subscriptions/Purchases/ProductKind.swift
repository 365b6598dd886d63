/// What a product is, in the words of App Store Connect.
package enum ProductKind: String, Sendable, CaseIterable, Codable {
    /// A subscription that Apple renews.
    case autoRenewable = "auto_renewable"
    /// A subscription that ends after the catalog's period. Apple knows no end of it.
    case nonRenewing = "non_renewing"
    /// What is used up, such as coins. Apple stops listing it when the app finishes its transaction.
    case consumable
    /// What a customer keeps.
    case nonConsumable = "non_consumable"

    /// Whether a purchase stays with the customer who bought it, on every device: what was used up, or runs for that
    /// customer, cannot move with an Apple account.
    package var staysWithCustomer: Bool {
        switch self {
        case .consumable, .nonRenewing: true
        case .autoRenewable, .nonConsumable: false
        }
    }
}
