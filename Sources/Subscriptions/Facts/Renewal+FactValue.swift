extension Renewal: FactValue {
    /// Orders renewals. Any total order suffices: no two different renewals of one instant are known to occur.
    package func yields(to other: Renewal) -> Bool {
        orderedFields.lexicographicallyPrecedes(other.orderedFields)
    }

    private var orderedFields: [String] {
        func text<Value>(_ value: Value?) -> String { value.map { "=\($0)" } ?? "" }
        return [
            text(graceExpiresAt?.milliseconds), text(willRenew), text(expirationIntent), text(inBillingRetry),
            text(productID), text(renewsToProductID), text(priceConsentStatus), text(priceIncreaseStatus),
            text(promotionalOfferID), text(offerCodeRefName),
        ]
    }
}
