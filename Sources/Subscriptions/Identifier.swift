/// A name given by Apple or by the operator, kept as text so that leading zeros and future formats survive.
///
/// The tag makes two kinds of names different types. Identifiers are compared byte by byte, as PostgreSQL and Apple do.
/// Swift would treat texts that are canonically equivalent in Unicode as equal, such as an é of one character and one
/// of two.
package struct Identifier<Tag>: Hashable, Comparable, Sendable, ExpressibleByStringInterpolation,
    CustomStringConvertible
{
    /// The name as given.
    package let text: String

    /// Creates an identifier with the given text.
    package init(_ text: String) { self.text = text }

    package init(stringLiteral text: String) { self.text = text }

    /// The name as given.
    package var description: String { text }

    /// Returns whether the bytes are the same.
    package static func == (left: Identifier, right: Identifier) -> Bool {
        left.text.utf8.count == right.text.utf8.count && left.text.utf8.elementsEqual(right.text.utf8)
    }

    /// Hashes the bytes.
    package func hash(into hasher: inout Hasher) {
        var text = text
        text.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
        hasher.combine(text.utf8.count)
    }

    /// Orders identifiers by the Unicode scalars of their text.
    package static func < (left: Identifier, right: Identifier) -> Bool {
        left.text.unicodeScalars.lexicographicallyPrecedes(right.text.unicodeScalars)
    }
}

/// Tags of `Identifier`, which tell kinds of names apart.
package enum IdentifierTag {
    package enum Product {}
    package enum Transaction {}
    package enum OriginalTransaction {}
    package enum WebOrderLineItem {}
    package enum SubscriptionGroup {}
    package enum Bundle {}
    package enum Customer {}
}

/// Apple's `product_id`, which names a product of App Store Connect.
package typealias ProductID = Identifier<IdentifierTag.Product>
/// Apple's `transaction_id`, which names a delivery of a purchase; Apple may issue several for one purchase.
package typealias TransactionID = Identifier<IdentifierTag.Transaction>
/// Apple's `original_transaction_id`, which names a subscription across renewals, within one environment of one app.
package typealias OriginalTransactionID = Identifier<IdentifierTag.OriginalTransaction>
/// Apple's `web_order_line_item_id`, which names a billing period.
package typealias WebOrderLineItemID = Identifier<IdentifierTag.WebOrderLineItem>
/// Apple's `subscription_group_identifier`.
package typealias SubscriptionGroupID = Identifier<IdentifierTag.SubscriptionGroup>
/// Apple's `bundle_id`, which names an app.
package typealias BundleID = Identifier<IdentifierTag.Bundle>
/// The operator's own id of a customer of an app.
package typealias AppCustomerID = Identifier<IdentifierTag.Customer>

/// One of Apple's two stores, and the environment in which a receipt was made. They have separate namespaces of identifiers.
package enum StoreEnvironment: String, Sendable, Hashable, CaseIterable {
    /// Real purchases.
    case production = "Production"
    /// Test purchases: sandbox testers, TestFlight and App Review.
    case sandbox = "Sandbox"

    /// Parses Apple's name of an environment, in any case; nil for any other name.
    package init?(named name: String?) {
        switch name?.lowercased() {
        case "production": self = .production
        case "sandbox": self = .sandbox
        default: return nil
        }
    }
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

/// Apple's status of a subscription (Apple: "status" of the App Store Server API).
package enum AppleStatus: Int, Sendable, Hashable, CaseIterable {
    /// The subscription is active.
    case active = 1
    /// It is expired.
    case expired = 2
    /// Apple tries to charge again, without access.
    case billingRetry = 3
    /// Apple tries to charge again, with access.
    case gracePeriod = 4
    /// It was refunded, or revoked from the family.
    case revoked = 5
}

/// The bytes of ids, keys and numbers.
extension UInt8 {
    /// Whether it is an ASCII digit.
    package var isDigit: Bool { self &- 48 < 10 }
    /// Whether it is an ASCII letter.
    package var isLetter: Bool { (self | 0x20) &- 97 < 26 }
    /// Whether it is a hexadecimal digit in lower case.
    package var isLowerHex: Bool { isDigit || self &- 97 < 6 }
}

extension String {
    /// Whether it has the form of an ISO 4217 code, in either case.
    package var isCurrency: Bool { utf8.count == 3 && utf8.allSatisfy(\.isLetter) }
}
