/// What can be bought once or again and again, without renewing.
package enum OneTimeProduct: String, Codable, Sendable, CaseIterable {
    /// A non-consumable: owned for good.
    case lifetime
    /// A consumable: used up, and then gone from Apple's answers.
    case coins

    func identifier(in bundleID: String) -> String { bundleID + "." + rawValue }
}
