/// The environment in which a receipt was made. The two have separate namespaces of identifiers.
package enum StoreEnvironment: String, Sendable, Hashable, CaseIterable {
    /// Real purchases.
    case production = "Production"
    /// Test purchases: sandbox testers, TestFlight and App Review.
    case sandbox = "Sandbox"
}

/// The list of an answer that contains a row; it decides the meaning of a missing cancellation.
package enum EvidenceSource: Hashable, Sendable {
    /// `latest_receipt_info`: Apple's own knowledge at `request_date`; no cancellation there means not cancelled.
    case latestReceiptInfo
    /// `receipt.in_app`: a frozen snapshot of a device at `receipt_creation_date`; its silence means nothing.
    case deviceReceipt
    /// A signed transaction: Apple's own knowledge at its `signedDate`. Without a revocation it says that there is none,
    /// except that an upgraded transaction need not state its date.
    case signedText
    /// A signed transaction inside statuses, which may lag behind the history: its silence means nothing.
    case statuses
}

/// Apple's `in_app_ownership_type`.
package enum Ownership: Hashable, Sendable {
    /// `PURCHASED`: the customer bought it.
    case purchased
    /// `FAMILY_SHARED`: a family member shares it.
    case familyShared
    /// `ASSIGNED`: a seat that a group or an organisation gave.
    case assigned
    /// A value that Apple may add one day, kept raw.
    case unknown(String)

    /// Creates the ownership of Apple's value.
    package init(raw: String) {
        switch raw {
        case "PURCHASED": self = .purchased
        case "FAMILY_SHARED": self = .familyShared
        case "ASSIGNED": self = .assigned
        default: self = .unknown(raw)
        }
    }

    /// Whether the customer paid. What is shared, assigned or unknown gives access and costs nothing.
    package var isPayer: Bool {
        switch self {
        case .purchased: true
        case .familyShared, .assigned, .unknown: false
        }
    }

    /// Apple's value.
    package var raw: String {
        switch self {
        case .purchased: "PURCHASED"
        case .familyShared: "FAMILY_SHARED"
        case .assigned: "ASSIGNED"
        case .unknown(let word): word
        }
    }
}
