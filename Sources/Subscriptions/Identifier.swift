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
    package init(_ text: String) {
        self.text = text
    }

    /// Creates an identifier from a literal.
    package init(stringLiteral text: String) {
        self.text = text
    }

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

/// Tags of `Identifier`.
package enum IdentifierTag {
    /// Names a product of App Store Connect.
    package enum Product {}
    /// Names a delivery of a purchase; Apple may issue several for one purchase.
    package enum Transaction {}
    /// Names a subscription across renewals, within one environment of one app.
    package enum OriginalTransaction {}
    /// Names a billing period.
    package enum WebOrderLineItem {}
    /// Names a subscription group.
    package enum SubscriptionGroup {}
    /// Names an app.
    package enum Bundle {}
    /// Names a customer of an app.
    package enum Customer {}
}

/// Apple's `product_id`.
package typealias ProductID = Identifier<IdentifierTag.Product>
/// Apple's `transaction_id`.
package typealias TransactionID = Identifier<IdentifierTag.Transaction>
/// Apple's `original_transaction_id`.
package typealias OriginalTransactionID = Identifier<IdentifierTag.OriginalTransaction>
/// Apple's `web_order_line_item_id`.
package typealias WebOrderLineItemID = Identifier<IdentifierTag.WebOrderLineItem>
/// Apple's `subscription_group_identifier`.
package typealias SubscriptionGroupID = Identifier<IdentifierTag.SubscriptionGroup>
/// Apple's `bundle_id`.
package typealias BundleID = Identifier<IdentifierTag.Bundle>
/// The operator's own id of a customer.
package typealias AppCustomerID = Identifier<IdentifierTag.Customer>
