/// Where a receipt was made. The two have separate namespaces of identifiers.
package enum StoreEnvironment: String, Sendable, Hashable, CaseIterable {
    /// Real purchases.
    case production = "Production"
    /// Test purchases: sandbox testers, TestFlight and App Review.
    case sandbox = "Sandbox"
}

/// Which list of an answer a row stands in; it decides what the row's silence means.
package enum EvidenceSource: Hashable, Sendable {
    /// `latest_receipt_info`: Apple's own knowledge at `request_date`; no cancellation there means not cancelled.
    case latestReceiptInfo
    /// `receipt.in_app`: a frozen snapshot of a device at `receipt_creation_date`; its silence means nothing.
    case deviceReceipt
}

/// Apple's `in_app_ownership_type`.
package enum Ownership: Hashable, Sendable {
    /// `PURCHASED`: the customer bought it.
    case purchased
    /// `FAMILY_SHARED`: a family member shares it.
    case familyShared
    /// A word Apple may add one day, kept raw.
    case unknown(String)

    /// The ownership with Apple's word for it.
    package init(raw: String) {
        switch raw {
        case "PURCHASED": self = .purchased
        case "FAMILY_SHARED": self = .familyShared
        default: self = .unknown(raw)
        }
    }

    /// Apple's word.
    package var raw: String {
        switch self {
        case .purchased: "PURCHASED"
        case .familyShared: "FAMILY_SHARED"
        case .unknown(let word): word
        }
    }
}
