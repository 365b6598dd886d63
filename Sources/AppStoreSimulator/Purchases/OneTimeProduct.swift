/// A product that does not renew, bought once or repeatedly.
package enum OneTimeProduct: String, Codable, Sendable, CaseIterable {
    /// A non-consumable: owned permanently.
    case lifetime
    /// A consumable: once used up it disappears from Apple's responses.
    case coins

    func identifier(in bundleID: String) -> String { bundleID + "." + rawValue }
}
