/// A name given by Apple or by the operator, kept as text so that leading zeros and future formats survive.
///
/// The tag makes two kinds of names different types.
public struct Identifier<Tag>: Hashable, Comparable, Sendable, ExpressibleByStringLiteral, CustomStringConvertible {
    /// The name as it was given.
    public let text: String

    /// An identifier with the given text.
    public init(_ text: String) {
        self.text = text
    }

    /// An identifier from a literal.
    public init(stringLiteral text: String) {
        self.text = text
    }

    /// The name as it was given.
    public var description: String { text }

    /// Orders identifiers by the Unicode scalars of their text.
    public static func < (left: Identifier, right: Identifier) -> Bool {
        left.text.unicodeScalars.lexicographicallyPrecedes(right.text.unicodeScalars)
    }
}

/// Tags of `Identifier`.
public enum IdentifierTag {
    /// Names a product of App Store Connect.
    public enum Product {}
    /// Names a delivery of a purchase; Apple may issue several for one purchase.
    public enum Transaction {}
    /// Names a subscription across renewals, within one environment of one app.
    public enum OriginalTransaction {}
    /// Names a billing period.
    public enum WebOrderLineItem {}
    /// Names a subscription group.
    public enum SubscriptionGroup {}
    /// Names an app.
    public enum Bundle {}
}

/// Apple's `product_id`.
public typealias ProductID = Identifier<IdentifierTag.Product>
/// Apple's `transaction_id`.
public typealias TransactionID = Identifier<IdentifierTag.Transaction>
/// Apple's `original_transaction_id`.
public typealias OriginalTransactionID = Identifier<IdentifierTag.OriginalTransaction>
/// Apple's `web_order_line_item_id`.
public typealias WebOrderLineItemID = Identifier<IdentifierTag.WebOrderLineItem>
/// Apple's `subscription_group_identifier`.
public typealias SubscriptionGroupID = Identifier<IdentifierTag.SubscriptionGroup>
/// Apple's `bundle_id`.
public typealias BundleID = Identifier<IdentifierTag.Bundle>
