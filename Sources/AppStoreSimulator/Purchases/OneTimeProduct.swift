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
